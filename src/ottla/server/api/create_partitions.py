"""CreatePartitions (key 37), versions 0–3: add partitions to topics."""

from collections.abc import Awaitable

from ottla.base.decision import RequestContext
from ottla.runtime.broker import Broker
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse

REQUEST = CreatePartitionsRequest


def handle(
    broker: Broker, context: RequestContext, request: CreatePartitionsRequest, version: int
) -> Awaitable[CreatePartitionsResponse]:
    return broker.controller.submit(request)
