"""SyncGroup (key 14), versions 0–5: the leader hands over the assignments, and each member waits for its own."""

from ottla.base.decision import RequestContext
from ottla.runtime.broker import Broker
from ottla.runtime.group_coordinator import ResponseOrFuture
from ottla.wire.messages.sync_group import SyncGroupRequest

REQUEST = SyncGroupRequest


def handle(broker: Broker, context: RequestContext, request: SyncGroupRequest, version: int) -> ResponseOrFuture:
    return broker.group_coordinator.dispatch_for_member(request.group_id, request, version, context, may_wait=True)
