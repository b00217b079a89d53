"""The configs of a topic, a broker, the cluster, a group or a client-metrics subscription, as this node knows them."""

from collections.abc import Collection

from ottla.base.errors import ApiError, ErrorCode
from ottla.metadata.configs import BrokerLayers, ConfigValue, broker_value
from ottla.metadata.configs.describe import (
    ConfigEntry,
    describe_broker,
    describe_client_metrics,
    describe_cluster,
    describe_group,
    describe_topic,
)
from ottla.metadata.image import ClusterImage, ConfigResource, ResourceType
from ottla.metadata.topic_names import topic_name_error
from ottla.runtime.broker import Broker


def config_value(broker: Broker, name: str) -> ConfigValue:
    """What a broker config is for this broker right now."""
    return broker_value(name, broker.configs())


def describe_configs(
    broker: Broker, resource_type: int, resource_name: str, names: Collection[str] | None, *, documentation: bool
) -> list[ConfigEntry]:
    """All entries of a resource, or those asked for by name. ApiError where there is no such resource."""
    image, node_id = broker.image, broker.settings.node_id
    resource = ConfigResource(resource_type, resource_name)
    layers = BrokerLayers(broker.settings.static_configs, image.cluster_configs(), image.broker_configs(node_id))
    set_configs = image.configs.get(resource, {})
    match resource.type:
        case ResourceType.TOPIC:
            _check_topic(image, resource.name)
            return describe_topic(set_configs, layers, names, documentation=documentation)
        case ResourceType.BROKER:
            if not resource.name:
                return describe_cluster(layers, names, documentation=documentation)
            _check_broker(resource.name, node_id)
            return describe_broker(layers, names, documentation=documentation)
        case ResourceType.GROUP:
            _check_named(resource.name, "a group")
            return describe_group(set_configs, layers, names, documentation=documentation)
        case ResourceType.CLIENT_METRICS:
            _check_named(resource.name, "a client-metrics subscription")
            return describe_client_metrics(set_configs, names, documentation=documentation)
        case ResourceType.BROKER_LOGGER:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, "loggers are not described so far: ottla start --log-level sets them all"
            )
        case _:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"there are no configs of the resource type {resource.type}")


def _check_topic(image: ClusterImage, name: str) -> None:
    fault = topic_name_error(name)
    if fault is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    if name not in image.topics_by_name:
        # Kafka says no more than the code here, and clients print what they get.
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")


def _check_broker(name: str, node_id: int) -> None:
    digits = name[1:] if name[0] in "+-" else name
    if not digits.isdecimal() or len(digits) > 10:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{name!r} is not a broker's id: a whole number is")
    if int(name) != node_id:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"this is broker {node_id}; the configs of broker {name} have to be asked of that one",
        )


def _check_named(name: str, what: str) -> None:
    if not name:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"the name of {what} is missing")
