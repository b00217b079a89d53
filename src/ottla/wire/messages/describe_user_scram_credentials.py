"""DescribeUserScramCredentials: the SCRAM mechanisms of users."""

from ottla.wire.schema import Message, array, i8, i16, i32, string


class UserName(Message):
    name: str = string("0+", default="")


class DescribeUserScramCredentialsRequest(Message):
    API_KEY = 50
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    users: list[UserName] | None = array(UserName, "0+", nullable="0+", default=())


class CredentialInfo(Message):
    mechanism: int = i8("0+", default=0)
    iterations: int = i32("0+", default=0)


class DescribeUserScramCredentialsResult(Message):
    user: str = string("0+", default="")
    error_code: int = i16("0+", default=0)
    error_message: str | None = string("0+", nullable="0+", default="")
    credential_infos: list[CredentialInfo] = array(CredentialInfo, "0+", default=())


class DescribeUserScramCredentialsResponse(Message):
    API_KEY = 50
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    throttle_time_ms: int = i32("0+", default=0)
    error_code: int = i16("0+", default=0)
    error_message: str | None = string("0+", nullable="0+", default="")
    results: list[DescribeUserScramCredentialsResult] = array(DescribeUserScramCredentialsResult, "0+", default=())
