"""ListGroups: the groups that a node coordinates, filtered by state and type."""

from ottla.wire.schema import Message, array, i16, i32, string


class ListGroupsRequest(Message):
    API_KEY = 16
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_FROM = 3

    states_filter: list[str] = array(string, "4+", default=())
    types_filter: list[str] = array(string, "5+", default=())


class ListedGroup(Message):
    group_id: str = string("0+", default="")
    protocol_type: str = string("0+", default="")
    group_state: str = string("4+", default="", ignorable=True)
    group_type: str = string("5+", default="", ignorable=True)


class ListGroupsResponse(Message):
    API_KEY = 16
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_FROM = 3

    throttle_time_ms: int = i32("1+", default=0, ignorable=True)
    error_code: int = i16("0+", default=0)
    groups: list[ListedGroup] = array(ListedGroup, "0+", default=())
