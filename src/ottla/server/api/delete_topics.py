"""DeleteTopics (key 20), versions 1–6: by name, or by id from version 6 on. Files go in the background."""

from collections.abc import Awaitable

from ottla.base.context import RequestContext
from ottla.runtime.broker import Broker
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

REQUEST = DeleteTopicsRequest


def handle(broker: Broker, context: RequestContext, request: DeleteTopicsRequest, version: int) -> Awaitable[DeleteTopicsResponse]:
    return broker.controller.submit(request)
