"""UpdateFeatures (key 57), versions 0–2: levels of features are raised or lowered, or (from version 1 on) only checked.

`metadata.version` goes up only. Skipped: `kraft.version`, which stays at 0, and the features of what is not built yet.
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
