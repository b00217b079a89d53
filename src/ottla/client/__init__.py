"""A client for Ottla and for Apache Kafka: Producer, Consumer and Admin for code that blocks, and the same with Async for event loops.

Names are loaded on first use: who produces does not pay for the consumer.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.client.admin_async import AsyncAdmin
    from ottla.client.admin_results import CommittedOffset, ConfigResource, NewTopic, PartialFailureError
    from ottla.client.cluster_metadata import Node, PartitionInfo, TopicInfo
    from ottla.client.column_batch import ColumnBatch
    from ottla.client.consumer import Consumer
    from ottla.client.consumer_async import AsyncConsumer
    from ottla.client.consumer_errors import (
        CommitFailedError,
        FencedInstanceIdError,
        LogTruncationError,
        NoOffsetForPartitionError,
        OffsetOutOfRangeError,
        WakeupError,
    )
    from ottla.client.consumer_record import ConsumerRecord, OffsetAndMetadata, OffsetAndTimestamp
    from ottla.client.errors import (
        BootstrapError,
        BrokerError,
        BrokerUnreachableError,
        BufferExhaustedError,
        ClientClosedError,
        ClientError,
        ClientTimeoutError,
        ConfigError,
        DisconnectedError,
        OutOfOrderSequenceError,
        ProducerFencedError,
        RecordTooLargeError,
        UnknownTopicOrPartitionError,
        UnsupportedVersionError,
    )
    from ottla.client.partitions import TopicPartition
    from ottla.client.producer import Producer
    from ottla.client.producer_async import AsyncProducer
    from ottla.client.record_metadata import RecordMetadata
    from ottla.client.records import ProducerInterceptor, ProducerRecord

_ERRORS = (
    "BootstrapError", "BrokerError", "BrokerUnreachableError", "BufferExhaustedError", "ClientError", "ClientClosedError", "ConfigError", "DisconnectedError",
    "OutOfOrderSequenceError", "ProducerFencedError", "RecordTooLargeError", "ClientTimeoutError", "UnknownTopicOrPartitionError", "UnsupportedVersionError",
)  # fmt: skip
_CONSUMER_ERRORS = (
    "CommitFailedError",
    "LogTruncationError",
    "FencedInstanceIdError",
    "NoOffsetForPartitionError",
    "OffsetOutOfRangeError",
    "WakeupError",
)

_LAZY_IMPORTS = {
    "Admin": "admin",
    "AsyncAdmin": "admin_async",
    "AsyncConsumer": "consumer_async",
    "AsyncProducer": "producer_async",
    "ColumnBatch": "column_batch",
    "CommittedOffset": "admin_results",
    "ConfigResource": "admin_results",
    "Consumer": "consumer",
    "ConsumerRecord": "consumer_record",
    "NewTopic": "admin_results",
    "Node": "cluster",
    "OffsetAndMetadata": "consumer_record",
    "OffsetAndTimestamp": "consumer_record",
    "PartitionInfo": "cluster",
    "Producer": "producer",
    "ProducerInterceptor": "records",
    "ProducerRecord": "records",
    "RecordMetadata": "record_metadata",
    "PartialFailureError": "admin_results",
    "TopicInfo": "cluster",
    "TopicPartition": "partitions",
    **dict.fromkeys(_ERRORS, "errors"),
    **dict.fromkeys(_CONSUMER_ERRORS, "consumer_errors"),
}
"""The module of each public name."""

__all__ = [
    "Admin", "AsyncAdmin", "AsyncConsumer", "AsyncProducer", "BootstrapError", "BrokerError", "BrokerUnreachableError", "BufferExhaustedError",
    "ClientError", "ClientClosedError", "ColumnBatch", "CommitFailedError", "CommittedOffset", "ConfigError", "ConfigResource", "Consumer",
    "ConsumerRecord", "DisconnectedError", "LogTruncationError", "FencedInstanceIdError", "NewTopic", "NoOffsetForPartitionError", "Node", "OffsetAndMetadata",
    "OffsetAndTimestamp", "OffsetOutOfRangeError", "OutOfOrderSequenceError", "PartitionInfo", "Producer", "ProducerFencedError", "ProducerInterceptor",
    "ProducerRecord", "RecordMetadata", "RecordTooLargeError", "PartialFailureError", "ClientTimeoutError", "TopicInfo", "TopicPartition", "UnknownTopicOrPartitionError",
    "UnsupportedVersionError", "WakeupError",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    home = _LAZY_IMPORTS.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{home}"), name)
