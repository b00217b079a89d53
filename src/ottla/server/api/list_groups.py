"""ListGroups (key 16), versions 0–5: the groups that live on this broker, filtered by state (KIP-518) and type (KIP-848)."""

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.runtime.broker import Broker
from ottla.runtime.group_coordinator import ResponseOrFuture, combine_responses
from ottla.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse

REQUEST = ListGroupsRequest


def handle(broker: Broker, context: RequestContext, request: ListGroupsRequest, version: int) -> ResponseOrFuture:
    return combine_responses(broker.group_coordinator.dispatch_to_all(request, version), _combine)


def _combine(answers: list[ListGroupsResponse]) -> ListGroupsResponse:
    """A shard that is not here any more has nothing to say; one that is loading could have, and so the list cannot be given."""
    for answer in answers:
        if answer.error_code not in (ErrorCode.NONE, ErrorCode.NOT_COORDINATOR):
            return answer
    return ListGroupsResponse(groups=[group for answer in answers for group in answer.groups])
