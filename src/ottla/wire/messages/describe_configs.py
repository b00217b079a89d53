"""DescribeConfigs: the configs of topics, brokers and groups, with the source of each value."""

from ottla.wire.schema import Message, array, boolean, i8, i16, i32, string


class DescribeConfigsResource(Message):
    resource_type: int = i8("0+", default=0)
    resource_name: str = string("0+", default="")
    configuration_keys: list[str] | None = array(string, "0+", nullable="0+", default=())


class DescribeConfigsRequest(Message):
    API_KEY = 32
    MIN_VERSION = 1
    MAX_VERSION = 4
    FLEXIBLE_FROM = 4

    resources: list[DescribeConfigsResource] = array(DescribeConfigsResource, "0+", default=())
    include_synonyms: bool = boolean("1+", default=False)
    include_documentation: bool = boolean("3+", default=False)


class DescribeConfigsSynonym(Message):
    name: str = string("1+", default="")
    value: str | None = string("1+", nullable="0+", default="")
    source: int = i8("1+", default=0)


class DescribeConfigsResourceResult(Message):
    name: str = string("0+", default="")
    value: str | None = string("0+", nullable="0+", default="")
    read_only: bool = boolean("0+", default=False)
    config_source: int = i8("1+", default=-1, ignorable=True)
    is_sensitive: bool = boolean("0+", default=False)
    synonyms: list[DescribeConfigsSynonym] = array(DescribeConfigsSynonym, "1+", default=(), ignorable=True)
    config_type: int = i8("3+", default=0, ignorable=True)
    documentation: str | None = string("3+", nullable="0+", default="", ignorable=True)


class DescribeConfigsResult(Message):
    error_code: int = i16("0+", default=0)
    error_message: str | None = string("0+", nullable="0+", default="")
    resource_type: int = i8("0+", default=0)
    resource_name: str = string("0+", default="")
    configs: list[DescribeConfigsResourceResult] = array(DescribeConfigsResourceResult, "0+", default=())


class DescribeConfigsResponse(Message):
    API_KEY = 32
    MIN_VERSION = 1
    MAX_VERSION = 4
    FLEXIBLE_FROM = 4

    throttle_time_ms: int = i32("0+", default=0)
    results: list[DescribeConfigsResult] = array(DescribeConfigsResult, "0+", default=())
