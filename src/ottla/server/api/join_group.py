"""JoinGroup (key 11), versions 0–9: a member joins with its protocols and waits until the next generation begins."""

from ottla.base.decision import RequestContext
from ottla.runtime.broker import Broker
from ottla.runtime.group_coordinator import ResponseOrFuture
from ottla.wire.messages.join_group import JoinGroupRequest

REQUEST = JoinGroupRequest


def handle(broker: Broker, context: RequestContext, request: JoinGroupRequest, version: int) -> ResponseOrFuture:
    return broker.group_coordinator.dispatch_for_member(request.group_id, request, version, context, may_wait=True)
