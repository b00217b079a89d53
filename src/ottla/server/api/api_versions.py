"""ApiVersions (key 18), versions 0–4: the supported APIs with their versions, and the features of the cluster.

A request of an unknown version gets a version 0 response with UNSUPPORTED_VERSION that lists this API only (KIP-511),
and the client retries with a version from it. The response header has no tags at any version.
"""

import re

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.runtime.broker import Broker
from ottla.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

REQUEST = ApiVersionsRequest
OWN_KEY = 18
CLIENT_SOFTWARE_MIN_VERSION = 3
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(
    broker: Broker, context: RequestContext, request: ApiVersionsRequest | None, version: int
) -> ApiVersionsResponse:
    if request is None:
        own = [ApiVersion(key, first, last) for key, first, last in broker.api_ranges if key == OWN_KEY]
        return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=own)
    if version >= CLIENT_SOFTWARE_MIN_VERSION and not (
        _SOFTWARE.fullmatch(request.client_software_name) and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    image = broker.image
    return ApiVersionsResponse(
        api_keys=[ApiVersion(key, first, last) for key, first, last in broker.api_ranges],
        supported_features=[
            SupportedFeatureKey(name, levels.min, levels.max)
            for name, levels in sorted(broker.supported_features.items())
            # Before version 4 a client may choke on a feature that begins at 0 (KAFKA-17011).
            if version >= 4 or levels.min > 0
        ],
        finalized_features_epoch=image.last_offset,
        finalized_features=[FinalizedFeatureKey(name, level, level) for name, level in sorted(image.features.items())],
    )
