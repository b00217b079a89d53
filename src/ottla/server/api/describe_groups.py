"""DescribeGroups (key 15), versions 0–6: the state and members of classic groups."""

from ottla.base.decision import RequestContext
from ottla.runtime.broker import Broker
from ottla.runtime.group_coordinator import ResponseOrFuture, combine_responses
from ottla.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse

REQUEST = DescribeGroupsRequest
GROUP_OPERATIONS = 3400
"""Read, delete, describe and the config operations: without an authorizer every client has all of them."""


def handle(broker: Broker, context: RequestContext, request: DescribeGroupsRequest, version: int) -> ResponseOrFuture:
    groups = broker.group_coordinator
    pending = [
        groups.dispatch(group_ids[0], DescribeGroupsRequest(groups=group_ids), version, context)
        for group_ids in groups.group_ids_by_shard(request.groups)
    ]

    def combine(responses: list[DescribeGroupsResponse]) -> DescribeGroupsResponse:
        found = [group for response in responses for group in response.groups]
        if request.include_authorized_operations:
            for group in found:
                if not group.error_code:
                    group.authorized_operations = GROUP_OPERATIONS
        return DescribeGroupsResponse(groups=found)

    return combine_responses(pending, combine)
