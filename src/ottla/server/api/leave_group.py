"""LeaveGroup (key 13), versions 0–5: members leave their group."""

from ottla.base.decision import RequestContext
from ottla.runtime.broker import Broker
from ottla.runtime.group_coordinator import ResponseOrFuture
from ottla.wire.messages.leave_group import LeaveGroupRequest

REQUEST = LeaveGroupRequest


def handle(broker: Broker, context: RequestContext, request: LeaveGroupRequest, version: int) -> ResponseOrFuture:
    return broker.group_coordinator.dispatch_for_member(request.group_id, request, version, context)
