"""LeaveGroup: remove members from a classic group, by member id or instance id."""

from ottla.wire.schema import Message, array, i16, i32, string


class MemberIdentity(Message):
    member_id: str = string("3+", default="")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    reason: str | None = string("5+", nullable="5+", default=None, ignorable=True)


class LeaveGroupRequest(Message):
    API_KEY = 13
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_FROM = 4

    group_id: str = string("0+", default="")
    member_id: str = string("0-2", default="")
    members: list[MemberIdentity] = array(MemberIdentity, "3+", default=())


class MemberResponse(Message):
    member_id: str = string("3+", default="")
    group_instance_id: str | None = string("3+", nullable="3+", default="")
    error_code: int = i16("3+", default=0)


class LeaveGroupResponse(Message):
    API_KEY = 13
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_FROM = 4

    throttle_time_ms: int = i32("1+", default=0, ignorable=True)
    error_code: int = i16("0+", default=0)
    members: list[MemberResponse] = array(MemberResponse, "3+", default=())
