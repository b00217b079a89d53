"""Effective configs of this broker, described for DescribeConfigs and converted to the LogConfig of a partition."""

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import cast

from ottla.base.errors import ApiError, ErrorCode
from ottla.log.config import Compression, LogConfig, TimestampType
from ottla.metadata.configs import BrokerLayers, ConfigValue, broker_value, effective_topic_config
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

_LEVEL_CONFIGS = {
    Compression.GZIP: "compression.gzip.level",
    Compression.LZ4: "compression.lz4.level",
    Compression.ZSTD: "compression.zstd.level",
}


def config_value(broker: Broker, name: str) -> ConfigValue:
    """Return the current value of a broker config."""
    return broker_value(name, broker.configs())


def describe_configs(
    broker: Broker, resource_type: int, resource_name: str, names: Collection[str] | None, *, documentation: bool
) -> list[ConfigEntry]:
    """Return all entries of a resource, or those in `names`. Raises ApiError if the resource does not exist."""
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
            _check_has_name(resource.name, "group")
            return describe_group(set_configs, layers, names, documentation=documentation)
        case ResourceType.CLIENT_METRICS:
            _check_has_name(resource.name, "client-metrics subscription")
            return describe_client_metrics(set_configs, names, documentation=documentation)
        case ResourceType.BROKER_LOGGER:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "resource type BROKER_LOGGER is not supported; use ottla start --log-level to set all loggers",
            )
        case _:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"unsupported resource type {resource.type}")


def _check_topic(image: ClusterImage, name: str) -> None:
    fault = topic_name_error(name)
    if fault is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    if name not in image.topics_by_name:
        # No message, as in Kafka: clients print it.
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")


def _check_broker(name: str, node_id: int) -> None:
    digits = name[1:] if name[0] in "+-" else name
    if not digits.isdecimal() or len(digits) > 10:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"invalid broker id {name!r}: must be an integer")
    if int(name) != node_id:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"broker {node_id} cannot describe the configs of broker {name}; send the request to broker {name}",
        )


def _check_has_name(name: str, resource: str) -> None:
    if not name:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"missing name of the {resource}")


def log_config(overrides: Mapping[str, str], broker: Mapping[str, str], jitter: float) -> LogConfig:
    """Convert a topic's configs to a LogConfig.

    `overrides` are the topic's own configs, `broker` the configs set for this broker. `jitter`, from 0 to 1, is drawn
    once per log.
    """
    values = effective_topic_config(overrides, broker)
    policies = cast("tuple[str, ...]", values["cleanup.policy"])
    compression = Compression[str(values["compression.type"]).upper()]
    level = _LEVEL_CONFIGS.get(compression)
    return _shared(
        LogConfig(
            segment_bytes=_int(
                values["segment.bytes"]
                if values["internal.segment.bytes"] is None
                else values["internal.segment.bytes"]
            ),
            segment_ms=_int(values["segment.ms"]),
            segment_jitter_ms=int(_int(values["segment.jitter.ms"]) * jitter),
            segment_index_bytes=_int(values["segment.index.bytes"]),
            index_interval_bytes=_int(values["index.interval.bytes"]),
            max_message_bytes=_int(values["max.message.bytes"]),
            compacted="compact" in policies,
            deletes="delete" in policies,
            timestamp_type=TimestampType.APPEND
            if values["message.timestamp.type"] == "LogAppendTime"
            else TimestampType.CREATE,
            timestamp_before_max_ms=_int(values["message.timestamp.before.max.ms"]),
            timestamp_after_max_ms=_int(values["message.timestamp.after.max.ms"]),
            compression=compression,
            compression_level=None if level is None else _int(values[level]),
            producer_expiration_ms=_int(broker_value("producer.id.expiration.ms", broker)),
            file_delete_delay_ms=_int(values["file.delete.delay.ms"]),
            flush_messages=_int(values["flush.messages"]),
            flush_ms=_int(values["flush.ms"]),
            retention_ms=_int(values["retention.ms"]),
            retention_bytes=_int(values["retention.bytes"]),
            delete_retention_ms=_int(values["delete.retention.ms"]),
            min_compaction_lag_ms=_int(values["min.compaction.lag.ms"]),
            max_compaction_lag_ms=_int(values["max.compaction.lag.ms"]),
            min_cleanable_dirty_ratio=float(cast("float", values["min.cleanable.dirty.ratio"])),
        )
    )


@lru_cache(maxsize=256)
def _shared(config: LogConfig) -> LogConfig:
    """Return one object for equal configs: thousands of partitions share it, so it stays in the CPU caches."""
    return config


def _int(value: ConfigValue) -> int:
    assert isinstance(value, int), value
    return value
