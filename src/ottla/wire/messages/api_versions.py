"""ApiVersions: the APIs, versions and features of a node; a client's first request."""

from ottla.wire.schema import Message, array, boolean, i16, i32, i64, string


class ApiVersionsRequest(Message):
    API_KEY = 18
    MIN_VERSION = 0
    MAX_VERSION = 4
    FLEXIBLE_FROM = 3

    client_software_name: str = string("3+", default="", ignorable=True)
    client_software_version: str = string("3+", default="", ignorable=True)


class ApiVersion(Message):
    api_key: int = i16("0+", default=0)
    min_version: int = i16("0+", default=0)
    max_version: int = i16("0+", default=0)


class SupportedFeatureKey(Message):
    name: str = string("3+", default="")
    min_version: int = i16("3+", default=0)
    max_version: int = i16("3+", default=0)


class FinalizedFeatureKey(Message):
    name: str = string("3+", default="")
    max_version_level: int = i16("3+", default=0)
    min_version_level: int = i16("3+", default=0)


class ApiVersionsResponse(Message):
    API_KEY = 18
    MIN_VERSION = 0
    MAX_VERSION = 4
    FLEXIBLE_FROM = 3

    error_code: int = i16("0+", default=0)
    api_keys: list[ApiVersion] = array(ApiVersion, "0+", default=())
    throttle_time_ms: int = i32("1+", default=0, ignorable=True)
    supported_features: list[SupportedFeatureKey] = array(SupportedFeatureKey, "3+", default=(), tag=0, ignorable=True)
    finalized_features_epoch: int = i64("3+", default=-1, tag=1, ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = array(FinalizedFeatureKey, "3+", default=(), tag=2, ignorable=True)
    zk_migration_ready: bool = boolean("3+", default=False, tag=3, ignorable=True)
