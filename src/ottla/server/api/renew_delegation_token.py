"""RenewDelegationToken (key 39), versions 1–2: rejected, as clients do not authenticate yet."""

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.runtime.broker import Broker
from ottla.wire.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse

REQUEST = RenewDelegationTokenRequest
NEVER = -1


def handle(
    broker: Broker, context: RequestContext, request: RenewDelegationTokenRequest, version: int
) -> RenewDelegationTokenResponse:
    return RenewDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=NEVER
    )
