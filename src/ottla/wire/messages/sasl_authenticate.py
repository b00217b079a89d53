"""SaslAuthenticate: one step of a SASL exchange."""

from ottla.wire.schema import Message, binary, i16, i64, string


class SaslAuthenticateRequest(Message):
    API_KEY = 36
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2

    auth_bytes: bytes = binary("0+", default=b"")


class SaslAuthenticateResponse(Message):
    API_KEY = 36
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2

    error_code: int = i16("0+", default=0)
    error_message: str | None = string("0+", nullable="0+", default="")
    auth_bytes: bytes = binary("0+", default=b"")
    session_lifetime_ms: int = i64("1+", default=0, ignorable=True)
