"""Heartbeat: keep a classic group's member alive, and tell it whether a rebalance has begun."""

from ottla.wire.schema import Message, i16, i32, string


class HeartbeatRequest(Message):
    API_KEY = 12
    MIN_VERSION = 0
    MAX_VERSION = 4
    FLEXIBLE_FROM = 4

    group_id: str = string("0+", default="")
    generation_id: int = i32("0+", default=0)
    member_id: str = string("0+", default="")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)


class HeartbeatResponse(Message):
    API_KEY = 12
    MIN_VERSION = 0
    MAX_VERSION = 4
    FLEXIBLE_FROM = 4

    throttle_time_ms: int = i32("1+", default=0, ignorable=True)
    error_code: int = i16("0+", default=0)
