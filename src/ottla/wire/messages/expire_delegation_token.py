"""ExpireDelegationToken: expire a token now or earlier."""

from ottla.wire.schema import Message, binary, i16, i32, i64


class ExpireDelegationTokenRequest(Message):
    API_KEY = 40
    MIN_VERSION = 1
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2

    hmac: bytes = binary("0+", default=b"")
    expiry_time_period_ms: int = i64("0+", default=0)


class ExpireDelegationTokenResponse(Message):
    API_KEY = 40
    MIN_VERSION = 1
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2

    error_code: int = i16("0+", default=0)
    expiry_timestamp_ms: int = i64("0+", default=0)
    throttle_time_ms: int = i32("0+", default=0)
