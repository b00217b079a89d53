"""DescribeClientQuotas (key 48), versions 0–1: the filter is checked, and nothing is found, as there is no way yet to set quotas."""

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
            raise ApiError(ErrorCode.INVALID_REQUEST, "a filter needs the type of its entity")
        if component.match_type not in (EXACT, DEFAULT, ANY) or (component.match is None) == (
            component.match_type == EXACT
        ):
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"{kind}: match 0 with a name, 1 or 2 without one, not {component.match_type}",
            )
        if kind in seen:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{kind} is filtered twice")
        if kind not in (USER, CLIENT_ID, IP):
            raise ApiError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"there are no quotas of {kind!r}: {USER}, {CLIENT_ID} and {IP} have them",
            )
        seen[kind] = None
    if IP in seen and len(seen) > 1:
        raise ApiError(ErrorCode.INVALID_REQUEST, "quotas of addresses are apart from those of users and clients")
