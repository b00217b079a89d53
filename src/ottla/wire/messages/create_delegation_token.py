"""CreateDelegationToken: create a token that authenticates as its owner."""

from ottla.wire.schema import Message, array, binary, i16, i32, i64, string


class CreatableRenewers(Message):
    principal_type: str = string("0+", default="")
    principal_name: str = string("0+", default="")


class CreateDelegationTokenRequest(Message):
    API_KEY = 38
    MIN_VERSION = 1
    MAX_VERSION = 3
    FLEXIBLE_FROM = 2

    owner_principal_type: str | None = string("3+", nullable="3+", default="")
    owner_principal_name: str | None = string("3+", nullable="3+", default="")
    renewers: list[CreatableRenewers] = array(CreatableRenewers, "0+", default=())
    max_lifetime_ms: int = i64("0+", default=0)


class CreateDelegationTokenResponse(Message):
    API_KEY = 38
    MIN_VERSION = 1
    MAX_VERSION = 3
    FLEXIBLE_FROM = 2

    error_code: int = i16("0+", default=0)
    principal_type: str = string("0+", default="")
    principal_name: str = string("0+", default="")
    token_requester_principal_type: str = string("3+", default="")
    token_requester_principal_name: str = string("3+", default="")
    issue_timestamp_ms: int = i64("0+", default=0)
    expiry_timestamp_ms: int = i64("0+", default=0)
    max_timestamp_ms: int = i64("0+", default=0)
    token_id: str = string("0+", default="")
    hmac: bytes = binary("0+", default=b"")
    throttle_time_ms: int = i32("0+", default=0)
