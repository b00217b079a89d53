"""DescribeDelegationToken (key 41), versions 1–3: rejected, as clients do not authenticate yet."""

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.runtime.broker import Broker
from ottla.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)

REQUEST = DescribeDelegationTokenRequest


def handle(
    broker: Broker, context: RequestContext, request: DescribeDelegationTokenRequest, version: int
) -> DescribeDelegationTokenResponse:
    return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
