"""UpdateFeatures (key 57), versions 0–2: upgrade or downgrade features, or (from version 1 on) only validate that.

`metadata.version` cannot be downgraded. Skipped: `kraft.version`, which stays at 0, and features that are not
implemented.
"""

from collections.abc import Awaitable

from ottla.base.decision import RequestContext
from ottla.runtime.broker import Broker
from ottla.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse

REQUEST = UpdateFeaturesRequest


def handle(
    broker: Broker, context: RequestContext, request: UpdateFeaturesRequest, version: int
) -> Awaitable[UpdateFeaturesResponse]:
    return broker.controller.submit(request)
