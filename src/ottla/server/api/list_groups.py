"""ListGroups (key 16), versions 0–5: the groups that this broker coordinates, filtered by state (KIP-518) and type
(KIP-848)."""

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.runtime.broker import Broker
from ottla.runtime.group_coordinator import ResponseOrFuture, combine_responses
from ottla.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse

REQUEST = ListGroupsRequest


def handle(broker: Broker, context: RequestContext, request: ListGroupsRequest, version: int) -> ResponseOrFuture:
    return combine_responses(broker.group_coordinator.dispatch_to_all(request, version), _combine)


def _combine(responses: list[ListGroupsResponse]) -> ListGroupsResponse:
    """Join the lists of all shards. A shard that has moved away has no groups; one that is loading fails the
    request."""
    for response in responses:
        if response.error_code not in (ErrorCode.NONE, ErrorCode.NOT_COORDINATOR):
            return response
    return ListGroupsResponse(groups=[group for response in responses for group in response.groups])
