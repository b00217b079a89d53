"""DescribeAcls: list the access rules that match a filter."""

from ottla.wire.schema import Message, array, i8, i16, i32, string


class DescribeAclsRequest(Message):
    API_KEY = 29
    MIN_VERSION = 1
    MAX_VERSION = 3
    FLEXIBLE_FROM = 2

    resource_type_filter: int = i8("0+", default=0)
    resource_name_filter: str | None = string("0+", nullable="0+", default="")
    pattern_type_filter: int = i8("1+", default=3)
    principal_filter: str | None = string("0+", nullable="0+", default="")
    host_filter: str | None = string("0+", nullable="0+", default="")
    operation: int = i8("0+", default=0)
    permission_type: int = i8("0+", default=0)


class AclDescription(Message):
    principal: str = string("0+", default="")
    host: str = string("0+", default="")
    operation: int = i8("0+", default=0)
    permission_type: int = i8("0+", default=0)


class DescribeAclsResource(Message):
    resource_type: int = i8("0+", default=0)
    resource_name: str = string("0+", default="")
    pattern_type: int = i8("1+", default=3)
    acls: list[AclDescription] = array(AclDescription, "0+", default=())


class DescribeAclsResponse(Message):
    API_KEY = 29
    MIN_VERSION = 1
    MAX_VERSION = 3
    FLEXIBLE_FROM = 2

    throttle_time_ms: int = i32("0+", default=0)
    error_code: int = i16("0+", default=0)
    error_message: str | None = string("0+", nullable="0+", default="")
    resources: list[DescribeAclsResource] = array(DescribeAclsResource, "0+", default=())
