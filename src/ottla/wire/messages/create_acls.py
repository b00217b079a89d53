"""CreateAcls: add access rules."""

from ottla.wire.schema import Message, array, i8, i16, i32, string


class AclCreation(Message):
    resource_type: int = i8("0+", default=0)
    resource_name: str = string("0+", default="")
    resource_pattern_type: int = i8("1+", default=3)
    principal: str = string("0+", default="")
    host: str = string("0+", default="")
    operation: int = i8("0+", default=0)
    permission_type: int = i8("0+", default=0)


class CreateAclsRequest(Message):
    API_KEY = 30
    MIN_VERSION = 1
    MAX_VERSION = 3
    FLEXIBLE_FROM = 2

    creations: list[AclCreation] = array(AclCreation, "0+", default=())


class AclCreationResult(Message):
    error_code: int = i16("0+", default=0)
    error_message: str | None = string("0+", nullable="0+", default="")


class CreateAclsResponse(Message):
    API_KEY = 30
    MIN_VERSION = 1
    MAX_VERSION = 3
    FLEXIBLE_FROM = 2

    throttle_time_ms: int = i32("0+", default=0)
    results: list[AclCreationResult] = array(AclCreationResult, "0+", default=())
