"""ListConfigResources (key 74), versions 0–1: the resources that have configs (KIP-1142).

All topics and brokers are listed; groups and client-metrics subscriptions only if they have configs. Version 0 lists
client-metrics subscriptions only; from version 1 on an empty list of types requests all types.
"""

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.metadata.image import ResourceType
from ottla.runtime.broker import Broker
from ottla.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

REQUEST = ListConfigResourcesRequest
TYPES_MIN_VERSION = 1
TYPES = tuple(ResourceType)


def handle(
    broker: Broker, context: RequestContext, request: ListConfigResourcesRequest, version: int
) -> ListConfigResourcesResponse:
    requested = [ResourceType.CLIENT_METRICS] if version < TYPES_MIN_VERSION else request.resource_types or list(TYPES)
    if any(kind not in TYPES for kind in requested):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind in dict.fromkeys(requested)
            for name in _names(broker, context, kind)
        ]
    )


def _names(broker: Broker, context: RequestContext, kind: int) -> list[str]:
    if kind == ResourceType.TOPIC:
        return list(broker.image.topics_by_name)
    if kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        return [str(endpoint.node_id) for endpoint in broker.endpoints(context.listener)]
    return [resource.name for resource, configs in broker.image.configs.items() if resource.type == kind and configs]
