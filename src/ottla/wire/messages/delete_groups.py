"""DeleteGroups: delete empty groups and their offsets."""

from ottla.wire.schema import Message, array, i16, i32, string


class DeleteGroupsRequest(Message):
    API_KEY = 42
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2

    groups_names: list[str] = array(string, "0+", default=())


class DeletableGroupResult(Message):
    group_id: str = string("0+", default="")
    error_code: int = i16("0+", default=0)


class DeleteGroupsResponse(Message):
    API_KEY = 42
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2

    throttle_time_ms: int = i32("0+", default=0)
    results: list[DeletableGroupResult] = array(DeletableGroupResult, "0+", default=())
