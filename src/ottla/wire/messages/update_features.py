"""UpdateFeatures: raise or lower finalized feature levels of the cluster."""

from ottla.wire.schema import Message, array, boolean, i8, i16, i32, string


class FeatureUpdateKey(Message):
    feature: str = string("0+", default="")
    max_version_level: int = i16("0+", default=0)
    allow_downgrade: bool = boolean("0", default=False)
    upgrade_type: int = i8("1+", default=1)


class UpdateFeaturesRequest(Message):
    API_KEY = 57
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 0

    timeout_ms: int = i32("0+", default=60000)
    feature_updates: list[FeatureUpdateKey] = array(FeatureUpdateKey, "0+", default=())
    validate_only: bool = boolean("1+", default=False)


class UpdatableFeatureResult(Message):
    feature: str = string("0+", default="")
    error_code: int = i16("0+", default=0)
    error_message: str | None = string("0+", nullable="0+", default="")


class UpdateFeaturesResponse(Message):
    API_KEY = 57
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 0

    throttle_time_ms: int = i32("0+", default=0)
    error_code: int = i16("0+", default=0)
    error_message: str | None = string("0+", nullable="0+", default="")
    results: list[UpdatableFeatureResult] = array(UpdatableFeatureResult, "0-1", default=(), ignorable=True)
