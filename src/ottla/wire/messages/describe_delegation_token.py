"""DescribeDelegationToken: the tokens of some owners."""

from ottla.wire.schema import Message, array, binary, i16, i32, i64, string


class DescribeDelegationTokenOwner(Message):
    principal_type: str = string("0+", default="")
    principal_name: str = string("0+", default="")


class DescribeDelegationTokenRequest(Message):
    API_KEY = 41
    MIN_VERSION = 1
    MAX_VERSION = 3
    FLEXIBLE_FROM = 2

    owners: list[DescribeDelegationTokenOwner] | None = array(
        DescribeDelegationTokenOwner, "0+", nullable="0+", default=()
    )


class DescribedDelegationTokenRenewer(Message):
    principal_type: str = string("0+", default="")
    principal_name: str = string("0+", default="")


class DescribedDelegationToken(Message):
    principal_type: str = string("0+", default="")
    principal_name: str = string("0+", default="")
    token_requester_principal_type: str = string("3+", default="")
    token_requester_principal_name: str = string("3+", default="")
    issue_timestamp: int = i64("0+", default=0)
    expiry_timestamp: int = i64("0+", default=0)
    max_timestamp: int = i64("0+", default=0)
    token_id: str = string("0+", default="")
    hmac: bytes = binary("0+", default=b"")
    renewers: list[DescribedDelegationTokenRenewer] = array(DescribedDelegationTokenRenewer, "0+", default=())


class DescribeDelegationTokenResponse(Message):
    API_KEY = 41
    MIN_VERSION = 1
    MAX_VERSION = 3
    FLEXIBLE_FROM = 2

    error_code: int = i16("0+", default=0)
    tokens: list[DescribedDelegationToken] = array(DescribedDelegationToken, "0+", default=())
    throttle_time_ms: int = i32("0+", default=0)
