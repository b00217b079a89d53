"""Heartbeat (key 12), versions 0–4: keeps a member's session alive."""

from ottla.base.decision import RequestContext
from ottla.runtime.broker import Broker
from ottla.runtime.group_coordinator import ResponseOrFuture
from ottla.wire.messages.heartbeat import HeartbeatRequest

REQUEST = HeartbeatRequest


def handle(broker: Broker, context: RequestContext, request: HeartbeatRequest, version: int) -> ResponseOrFuture:
    return broker.group_coordinator.dispatch_for_member(request.group_id, request, version, context)
