"""CreateTopics (key 19), versions 2–7: the controller creates topics; the response is sent when their partitions are
open."""

from collections.abc import Awaitable

from ottla.base.decision import RequestContext
from ottla.runtime.broker import Broker
from ottla.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

REQUEST = CreateTopicsRequest


def handle(
    broker: Broker, context: RequestContext, request: CreateTopicsRequest, version: int
) -> Awaitable[CreateTopicsResponse]:
    return broker.controller.submit(request)
