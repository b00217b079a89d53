"""A client for Ottla and for Apache Kafka: Producer, Consumer and Admin for code that blocks, and the same with Async for event loops.

Names are loaded on first use: who produces does not pay for the consumer.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.client.admin_async import AsyncAdmin
    from ottla.client.admin_results import CommittedOffset, ConfigResource, NewTopic, SomeFailed
    from ottla.client.cluster import Node, PartitionInfo, TopicInfo
    from ottla.client.errors import (
        BootstrapFailed,
        BrokerError,
        BrokerUnreachable,
        BufferFull,
        ClientError,
        Closed,
        ConfigError,
        Disconnected,
        OutOfOrder,
        ProducerFenced,
        RecordTooLarge,
        TimedOut,
        UnknownTopic,
        Unsupported,
    )
    from ottla.client.partitions import TopicPartition
    from ottla.client.producer import Producer
    from ottla.client.producer_async import AsyncProducer
    from ottla.client.record_metadata import RecordMetadata
    from ottla.client.records import ProducerInterceptor, ProducerRecord

_ERRORS = (
    "BootstrapFailed", "BrokerError", "BrokerUnreachable", "BufferFull", "ClientError", "Closed", "ConfigError", "Disconnected",
    "OutOfOrder", "ProducerFenced", "RecordTooLarge", "TimedOut", "UnknownTopic", "Unsupported",
)  # fmt: skip

_HOMES = {
    "Admin": "admin",
    "AsyncAdmin": "admin_async",
    "AsyncConsumer": "consumer_async",
    "AsyncProducer": "producer_async",
    "CommittedOffset": "admin_results",
    "ConfigResource": "admin_results",
    "Consumer": "consumer",
    "NewTopic": "admin_results",
    "Node": "cluster",
    "PartitionInfo": "cluster",
    "Producer": "producer",
    "ProducerInterceptor": "records",
    "ProducerRecord": "records",
    "RecordMetadata": "record_metadata",
    "SomeFailed": "admin_results",
    "TopicInfo": "cluster",
    "TopicPartition": "partitions",
    **dict.fromkeys(_ERRORS, "errors"),
}
"""The module of each public name."""

__all__ = [
    "Admin", "AsyncAdmin", "AsyncConsumer", "AsyncProducer", "BootstrapFailed", "BrokerError", "BrokerUnreachable", "BufferFull",
    "ClientError", "Closed", "CommittedOffset", "ConfigError", "ConfigResource", "Consumer", "Disconnected", "NewTopic", "Node",
    "OutOfOrder", "PartitionInfo", "Producer", "ProducerFenced", "ProducerInterceptor", "ProducerRecord", "RecordMetadata",
    "RecordTooLarge", "SomeFailed", "TimedOut", "TopicInfo", "TopicPartition", "UnknownTopic", "Unsupported",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{home}"), name)
