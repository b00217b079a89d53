"""DeleteGroups (key 42), versions 0–2: delete groups that have no members, with their offsets (KIP-229)."""

from ottla.base.decision import RequestContext
from ottla.runtime.broker import Broker
from ottla.runtime.group_coordinator import ResponseOrFuture, combine_responses
from ottla.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse

REQUEST = DeleteGroupsRequest


def handle(broker: Broker, context: RequestContext, request: DeleteGroupsRequest, version: int) -> ResponseOrFuture:
    groups = broker.group_coordinator
    responses = [
        groups.dispatch(group_ids[0], DeleteGroupsRequest(groups_names=group_ids), version, context)
        for group_ids in groups.group_ids_by_shard(list(dict.fromkeys(request.groups_names)))
    ]
    return combine_responses(responses, _combine)


def _combine(responses: list[DeleteGroupsResponse]) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(results=[result for response in responses for result in response.results])
