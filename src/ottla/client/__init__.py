"""Client for Ottla and Apache Kafka: blocking Producer, Consumer and Admin, and their Async counterparts.

Names are imported on first use, so a producer does not load the consumer.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.client.admin import Admin, AsyncAdmin
    from ottla.client.admin_results import CommittedOffset, ConfigResource, NewTopic
    from ottla.client.cluster_metadata import Node, PartitionInfo, TopicInfo
    from ottla.client.column_batch import ColumnBatch
    from ottla.client.consumer import Consumer
    from ottla.client.consumer_async import AsyncConsumer
    from ottla.client.errors import (
        BootstrapError,
        BrokerError,
        BrokerUnreachableError,
        BufferExhaustedError,
        ClientClosedError,
        ClientError,
        ClientTimeoutError,
        CommitFailedError,
        ConfigError,
        DisconnectedError,
        FencedInstanceIdError,
        LogTruncationError,
        NoOffsetForPartitionError,
        OffsetOutOfRangeError,
        OutOfOrderSequenceError,
        PartialFailureError,
        ProducerFencedError,
        RecordTooLargeError,
        UnknownTopicOrPartitionError,
        UnsupportedVersionError,
        WakeupError,
    )
    from ottla.client.producer import Producer
    from ottla.client.producer_async import AsyncProducer
    from ottla.client.records import (
        ConsumerRecord,
        OffsetAndMetadata,
        OffsetAndTimestamp,
        ProducerInterceptor,
        ProducerRecord,
        RecordMetadata,
        TopicPartition,
    )

_ERRORS = (
    "BootstrapError", "BrokerError", "BrokerUnreachableError", "BufferExhaustedError", "ClientClosedError",
    "ClientError", "ClientTimeoutError", "CommitFailedError", "ConfigError", "DisconnectedError",
    "FencedInstanceIdError", "LogTruncationError", "NoOffsetForPartitionError", "OffsetOutOfRangeError",
    "OutOfOrderSequenceError", "PartialFailureError", "ProducerFencedError", "RecordTooLargeError",
    "UnknownTopicOrPartitionError", "UnsupportedVersionError", "WakeupError",
)  # fmt: skip
_RECORDS = (
    "ConsumerRecord", "OffsetAndMetadata", "OffsetAndTimestamp", "ProducerInterceptor", "ProducerRecord",
    "RecordMetadata", "TopicPartition",
)  # fmt: skip

_LAZY_IMPORTS = {
    "Admin": "admin",
    "AsyncAdmin": "admin",
    "AsyncConsumer": "consumer_async",
    "AsyncProducer": "producer_async",
    "ColumnBatch": "column_batch",
    "CommittedOffset": "admin_results",
    "ConfigResource": "admin_results",
    "Consumer": "consumer",
    "NewTopic": "admin_results",
    "Node": "cluster_metadata",
    "PartitionInfo": "cluster_metadata",
    "Producer": "producer",
    "TopicInfo": "cluster_metadata",
    **dict.fromkeys(_ERRORS, "errors"),
    **dict.fromkeys(_RECORDS, "records"),
}
"""The module of each public name."""

__all__ = [
    "Admin", "AsyncAdmin", "AsyncConsumer", "AsyncProducer", "BootstrapError", "BrokerError",
    "BrokerUnreachableError", "BufferExhaustedError", "ClientClosedError", "ClientError", "ClientTimeoutError",
    "ColumnBatch", "CommitFailedError", "CommittedOffset", "ConfigError", "ConfigResource", "Consumer",
    "ConsumerRecord", "DisconnectedError", "FencedInstanceIdError", "LogTruncationError", "NewTopic",
    "NoOffsetForPartitionError", "Node", "OffsetAndMetadata", "OffsetAndTimestamp", "OffsetOutOfRangeError",
    "OutOfOrderSequenceError", "PartialFailureError", "PartitionInfo", "Producer", "ProducerFencedError",
    "ProducerInterceptor", "ProducerRecord", "RecordMetadata", "RecordTooLargeError", "TopicInfo", "TopicPartition",
    "UnknownTopicOrPartitionError", "UnsupportedVersionError", "WakeupError",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    module = _LAZY_IMPORTS.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{module}"), name)
