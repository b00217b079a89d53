"""AlterConfigs: replace all configs of a resource."""

from ottla.wire.schema import Message, array, boolean, i8, i16, i32, string


class AlterableConfig(Message):
    name: str = string("0+", default="")
    value: str | None = string("0+", nullable="0+", default="")


class AlterConfigsResource(Message):
    resource_type: int = i8("0+", default=0)
    resource_name: str = string("0+", default="")
    configs: list[AlterableConfig] = array(AlterableConfig, "0+", default=())


class AlterConfigsRequest(Message):
    API_KEY = 33
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2

    resources: list[AlterConfigsResource] = array(AlterConfigsResource, "0+", default=())
    validate_only: bool = boolean("0+", default=False)


class AlterConfigsResourceResponse(Message):
    error_code: int = i16("0+", default=0)
    error_message: str | None = string("0+", nullable="0+", default="")
    resource_type: int = i8("0+", default=0)
    resource_name: str = string("0+", default="")


class AlterConfigsResponse(Message):
    API_KEY = 33
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2

    throttle_time_ms: int = i32("0+", default=0)
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse, "0+", default=())
