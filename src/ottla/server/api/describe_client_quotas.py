"""DescribeClientQuotas (key 48), versions 0–1: validate the filter. The result is empty, as quotas cannot be set
yet."""

from ottla.base.decision import RequestContext
from ottla.base.errors import ApiError, ErrorCode
from ottla.runtime.broker import Broker
from ottla.wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

REQUEST = DescribeClientQuotasRequest
EXACT, DEFAULT, ANY = 0, 1, 2
USER, CLIENT_ID, IP = "user", "client-id", "ip"


def handle(
    broker: Broker, context: RequestContext, request: DescribeClientQuotasRequest, version: int
) -> DescribeClientQuotasResponse:
    try:
        _check(request.components)
    except ApiError as error:
        return DescribeClientQuotasResponse(error_code=error.code, error_message=error.message, entries=None)
    return DescribeClientQuotasResponse()


def _check(components: list[ComponentData]) -> None:
    seen: dict[str, None] = {}
    for component in components:
        kind = component.entity_type
        if not kind:
            raise ApiError(ErrorCode.INVALID_REQUEST, "filter component without an entity type")
        if component.match_type not in (EXACT, DEFAULT, ANY) or (component.match is None) == (
            component.match_type == EXACT
        ):
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"{kind}: match type {component.match_type} is unknown or conflicts with the name",
            )
        if kind in seen:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"duplicate filter component for {kind}")
        if kind not in (USER, CLIENT_ID, IP):
            raise ApiError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"unsupported quota entity type {kind!r}; supported are {USER}, {CLIENT_ID} and {IP}",
            )
        seen[kind] = None
    if IP in seen and len(seen) > 1:
        raise ApiError(ErrorCode.INVALID_REQUEST, "ip cannot be combined with user or client-id")
