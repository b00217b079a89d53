"""AlterConfigs (key 33), versions 0–2: replace all configs of a resource; configs that are not named are reset to
their defaults."""

from collections.abc import Awaitable

from ottla.base.decision import RequestContext
from ottla.runtime.broker import Broker
from ottla.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse

REQUEST = AlterConfigsRequest


def handle(
    broker: Broker, context: RequestContext, request: AlterConfigsRequest, version: int
) -> Awaitable[AlterConfigsResponse]:
    return broker.controller.submit(request)
