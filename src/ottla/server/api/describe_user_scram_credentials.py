"""DescribeUserScramCredentials (key 50), version 0: no user has credentials, as they cannot be set yet."""

from collections import Counter

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.runtime.broker import Broker
from ottla.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

REQUEST = DescribeUserScramCredentialsRequest


def handle(
    broker: Broker, context: RequestContext, request: DescribeUserScramCredentialsRequest, version: int
) -> DescribeUserScramCredentialsResponse:
    names = Counter(user.name for user in request.users or ())
    return DescribeUserScramCredentialsResponse(results=[_result(name, count) for name, count in names.items()])


def _result(name: str, count: int) -> DescribeUserScramCredentialsResult:
    if count > 1:
        return DescribeUserScramCredentialsResult(
            name, ErrorCode.DUPLICATE_RESOURCE, f"user {name!r} occurs {count} times in the request"
        )
    return DescribeUserScramCredentialsResult(
        name, ErrorCode.RESOURCE_NOT_FOUND, f"user {name!r} has no SCRAM credentials"
    )
