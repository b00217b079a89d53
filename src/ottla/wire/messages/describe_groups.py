"""DescribeGroups: the state and the members of classic groups."""

from ottla.wire.schema import Message, array, binary, boolean, i16, i32, string


class DescribeGroupsRequest(Message):
    API_KEY = 15
    MIN_VERSION = 0
    MAX_VERSION = 6
    FLEXIBLE_FROM = 5

    groups: list[str] = array(string, "0+", default=())
    include_authorized_operations: bool = boolean("3+", default=False)


class DescribedGroupMember(Message):
    member_id: str = string("0+", default="")
    group_instance_id: str | None = string("4+", nullable="4+", default=None, ignorable=True)
    client_id: str = string("0+", default="")
    client_host: str = string("0+", default="")
    member_metadata: bytes = binary("0+", default=b"")
    member_assignment: bytes = binary("0+", default=b"")


class DescribedGroup(Message):
    error_code: int = i16("0+", default=0)
    error_message: str | None = string("6+", nullable="6+", default=None)
    group_id: str = string("0+", default="")
    group_state: str = string("0+", default="")
    protocol_type: str = string("0+", default="")
    protocol_data: str = string("0+", default="")
    members: list[DescribedGroupMember] = array(DescribedGroupMember, "0+", default=())
    authorized_operations: int = i32("3+", default=-2147483648)


class DescribeGroupsResponse(Message):
    API_KEY = 15
    MIN_VERSION = 0
    MAX_VERSION = 6
    FLEXIBLE_FROM = 5

    throttle_time_ms: int = i32("1+", default=0, ignorable=True)
    groups: list[DescribedGroup] = array(DescribedGroup, "0+", default=())
