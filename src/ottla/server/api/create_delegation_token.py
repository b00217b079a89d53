"""CreateDelegationToken (key 38), versions 1–3: rejected, as clients do not authenticate yet."""

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.runtime.broker import Broker
from ottla.wire.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse

REQUEST = CreateDelegationTokenRequest
REQUESTER_MIN_VERSION = 3
NEVER = -1


def handle(
    broker: Broker, context: RequestContext, request: CreateDelegationTokenRequest, version: int
) -> CreateDelegationTokenResponse:
    kind, _, name = context.principal.partition(":")
    response = CreateDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
        principal_type=kind,
        principal_name=name,
        issue_timestamp_ms=NEVER,
        expiry_timestamp_ms=NEVER,
        max_timestamp_ms=NEVER,
    )
    if version >= REQUESTER_MIN_VERSION:
        response.token_requester_principal_type, response.token_requester_principal_name = kind, name
        if request.owner_principal_name:
            response.principal_type, response.principal_name = (
                request.owner_principal_type or "",
                request.owner_principal_name,
            )
    return response
