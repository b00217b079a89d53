"""JoinGroup: join a classic group; the response comes with the next generation."""

from ottla.wire.schema import Message, array, binary, boolean, i16, i32, string


class JoinGroupRequestProtocol(Message):
    name: str = string("0+", default="")
    metadata: bytes = binary("0+", default=b"")


class JoinGroupRequest(Message):
    API_KEY = 11
    MIN_VERSION = 0
    MAX_VERSION = 9
    FLEXIBLE_FROM = 6

    group_id: str = string("0+", default="")
    session_timeout_ms: int = i32("0+", default=0)
    rebalance_timeout_ms: int = i32("1+", default=-1, ignorable=True)
    member_id: str = string("0+", default="")
    group_instance_id: str | None = string("5+", nullable="5+", default=None)
    protocol_type: str = string("0+", default="")
    protocols: list[JoinGroupRequestProtocol] = array(JoinGroupRequestProtocol, "0+", default=())
    reason: str | None = string("8+", nullable="8+", default=None, ignorable=True)


class JoinGroupResponseMember(Message):
    member_id: str = string("0+", default="")
    group_instance_id: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    metadata: bytes = binary("0+", default=b"")


class JoinGroupResponse(Message):
    API_KEY = 11
    MIN_VERSION = 0
    MAX_VERSION = 9
    FLEXIBLE_FROM = 6

    throttle_time_ms: int = i32("2+", default=0, ignorable=True)
    error_code: int = i16("0+", default=0)
    generation_id: int = i32("0+", default=-1)
    protocol_type: str | None = string("7+", nullable="7+", default=None, ignorable=True)
    protocol_name: str | None = string("0+", nullable="7+", default="")
    leader: str = string("0+", default="")
    skip_assignment: bool = boolean("9+", default=False)
    member_id: str = string("0+", default="")
    members: list[JoinGroupResponseMember] = array(JoinGroupResponseMember, "0+", default=())
