"""SaslHandshake: select a SASL mechanism."""

from ottla.wire.schema import NEVER, Message, array, i16, string


class SaslHandshakeRequest(Message):
    API_KEY = 17
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = NEVER

    mechanism: str = string("0+", default="")


class SaslHandshakeResponse(Message):
    API_KEY = 17
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = NEVER

    error_code: int = i16("0+", default=0)
    mechanisms: list[str] = array(string, "0+", default=())
