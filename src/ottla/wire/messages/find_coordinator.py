"""FindCoordinator: the node that coordinates a group, a transactional id or a share group's partition."""

from ottla.wire.schema import Message, array, i8, i16, i32, string


class FindCoordinatorRequest(Message):
    API_KEY = 10
    MIN_VERSION = 0
    MAX_VERSION = 6
    FLEXIBLE_FROM = 3

    key: str = string("0-3", default="")
    key_type: int = i8("1+", default=0)
    coordinator_keys: list[str] = array(string, "4+", default=())


class Coordinator(Message):
    key: str = string("4+", default="")
    node_id: int = i32("4+", default=0)
    host: str = string("4+", default="")
    port: int = i32("4+", default=0)
    error_code: int = i16("4+", default=0)
    error_message: str | None = string("4+", nullable="4+", default="", ignorable=True)


class FindCoordinatorResponse(Message):
    API_KEY = 10
    MIN_VERSION = 0
    MAX_VERSION = 6
    FLEXIBLE_FROM = 3

    throttle_time_ms: int = i32("1+", default=0, ignorable=True)
    error_code: int = i16("0-3", default=0)
    error_message: str | None = string("1-3", nullable="1-3", default="", ignorable=True)
    node_id: int = i32("0-3", default=0)
    host: str = string("0-3", default="")
    port: int = i32("0-3", default=0)
    coordinators: list[Coordinator] = array(Coordinator, "4+", default=())
