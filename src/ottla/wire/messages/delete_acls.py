"""DeleteAcls: delete the access rules that match filters."""

from ottla.wire.schema import Message, array, i8, i16, i32, string


class DeleteAclsFilter(Message):
    resource_type_filter: int = i8("0+", default=0)
    resource_name_filter: str | None = string("0+", nullable="0+", default="")
    pattern_type_filter: int = i8("1+", default=3)
    principal_filter: str | None = string("0+", nullable="0+", default="")
    host_filter: str | None = string("0+", nullable="0+", default="")
    operation: int = i8("0+", default=0)
    permission_type: int = i8("0+", default=0)


class DeleteAclsRequest(Message):
    API_KEY = 31
    MIN_VERSION = 1
    MAX_VERSION = 3
    FLEXIBLE_FROM = 2

    filters: list[DeleteAclsFilter] = array(DeleteAclsFilter, "0+", default=())


class DeleteAclsMatchingAcl(Message):
    error_code: int = i16("0+", default=0)
    error_message: str | None = string("0+", nullable="0+", default="")
    resource_type: int = i8("0+", default=0)
    resource_name: str = string("0+", default="")
    pattern_type: int = i8("1+", default=3)
    principal: str = string("0+", default="")
    host: str = string("0+", default="")
    operation: int = i8("0+", default=0)
    permission_type: int = i8("0+", default=0)


class DeleteAclsFilterResult(Message):
    error_code: int = i16("0+", default=0)
    error_message: str | None = string("0+", nullable="0+", default="")
    matching_acls: list[DeleteAclsMatchingAcl] = array(DeleteAclsMatchingAcl, "0+", default=())


class DeleteAclsResponse(Message):
    API_KEY = 31
    MIN_VERSION = 1
    MAX_VERSION = 3
    FLEXIBLE_FROM = 2

    throttle_time_ms: int = i32("0+", default=0)
    filter_results: list[DeleteAclsFilterResult] = array(DeleteAclsFilterResult, "0+", default=())
