"""ListConfigResources: list the resources that have configs."""

from ottla.wire.schema import Message, array, i8, i16, i32, string


class ListConfigResourcesRequest(Message):
    API_KEY = 74
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0

    resource_types: list[int] = array(i8, "1+", default=())


class ConfigResource(Message):
    resource_name: str = string("0+", default="")
    resource_type: int = i8("1+", default=16, ignorable=True)


class ListConfigResourcesResponse(Message):
    API_KEY = 74
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0

    throttle_time_ms: int = i32("0+", default=0)
    error_code: int = i16("0+", default=0)
    config_resources: list[ConfigResource] = array(ConfigResource, "0+", default=())
