"""IncrementalAlterConfigs (key 44), versions 0–1: set or delete configs, or append to or subtract from lists."""

from collections.abc import Awaitable

from ottla.base.decision import RequestContext
from ottla.runtime.broker import Broker
from ottla.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

REQUEST = IncrementalAlterConfigsRequest


def handle(
    broker: Broker, context: RequestContext, request: IncrementalAlterConfigsRequest, version: int
) -> Awaitable[IncrementalAlterConfigsResponse]:
    return broker.controller.submit(request)
