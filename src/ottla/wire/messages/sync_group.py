"""SyncGroup: the leader sends the assignments of a generation, and each member gets its own."""

from ottla.wire.schema import Message, array, binary, i16, i32, string


class SyncGroupRequestAssignment(Message):
    member_id: str = string("0+", default="")
    assignment: bytes = binary("0+", default=b"")


class SyncGroupRequest(Message):
    API_KEY = 14
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_FROM = 4

    group_id: str = string("0+", default="")
    generation_id: int = i32("0+", default=0)
    member_id: str = string("0+", default="")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    protocol_type: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = array(SyncGroupRequestAssignment, "0+", default=())


class SyncGroupResponse(Message):
    API_KEY = 14
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_FROM = 4

    throttle_time_ms: int = i32("1+", default=0, ignorable=True)
    error_code: int = i16("0+", default=0)
    protocol_type: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    assignment: bytes = binary("0+", default=b"")
