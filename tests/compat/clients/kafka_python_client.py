"""kafka-python: pure Python, blocking."""

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

from tests.compat.clients.base import BIG, WAIT_SECONDS, Acks, At, Codec
from tests.compat.record import Read, Sent


class KafkaPythonClient:
    name = "kafka-python"

    def missing(self) -> str | None:
        return None if importlib.util.find_spec("kafka") else "kafka-python is not installed"

    def can_send(self, record: Sent) -> bool:
        """It rejects a record with neither key nor value, and null headers."""
        return (record.key, record.value) != (None, None) and all(value is not None for _, value in record.headers)

    def produce(
        self,
        bootstrap: str,
        topic: str,
        records: Sequence[Sent],
        *,
        codec: Codec = "none",
        acks: Acks = "all",
        idempotent: bool = False,
    ) -> list[int]:
        from kafka import KafkaProducer

        producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if codec == "none" else codec,
            acks="all" if acks == "all" else int(acks),
            enable_idempotence=idempotent,
            max_request_size=BIG,
            linger_ms=5,
        )
        try:
            futures = [
                producer.send(
                    topic, record.value, record.key, list(record.headers), record.partition, record.timestamp_ms
                )
                for record in records
            ]
            producer.flush(timeout=WAIT_SECONDS)
            return [future.get(timeout=WAIT_SECONDS).offset for future in futures]
        finally:
            producer.close()

    def consume(self, bootstrap: str, topic: str, start: Mapping[int, int], end: Mapping[int, int]) -> list[Read]:
        from kafka import TopicPartition

        consumer = self._consumer(bootstrap)
        try:
            consumer.assign([TopicPartition(topic, partition) for partition in start])
            for partition, offset in start.items():
                consumer.seek(TopicPartition(topic, partition), offset)
            left = sum(end[partition] - offset for partition, offset in start.items())
            found: list[Read] = []
            while left > 0:
                batches = consumer.poll(timeout_ms=WAIT_SECONDS * 1000)
                if not batches:
                    raise RuntimeError(f"{left} records missing after the timeout")
                for messages in batches.values():
                    included = [_read(message) for message in messages if message.offset < end[message.partition]]
                    found += included
                    left -= len(included)
            return found
        finally:
            consumer.close()

    def offsets(self, bootstrap: str, topic: str, partitions: Sequence[int], at: At) -> dict[int, int | None]:
        from kafka import TopicPartition

        requested = [TopicPartition(topic, partition) for partition in partitions]
        consumer = self._consumer(bootstrap)
        try:
            if at == "earliest":
                return {key.partition: offset for key, offset in consumer.beginning_offsets(requested).items()}
            if at == "latest":
                return {key.partition: offset for key, offset in consumer.end_offsets(requested).items()}
            found = consumer.offsets_for_times(dict.fromkeys(requested, at))
            return {key.partition: None if entry is None else entry.offset for key, entry in found.items()}
        finally:
            consumer.close()

    def partition_count(self, bootstrap: str, topic: str) -> int:
        from kafka import KafkaProducer

        producer = KafkaProducer(bootstrap_servers=bootstrap)
        try:
            return len(producer.partitions_for(topic))
        finally:
            producer.close()

    def _consumer(self, bootstrap: str) -> Any:
        from kafka import KafkaConsumer

        return KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            max_partition_fetch_bytes=BIG,
            fetch_max_wait_ms=100,
        )


def _read(message: Any) -> Read:
    headers = tuple(message.headers)
    by_broker = message.timestamp_type == 1
    return Read(message.partition, message.offset, message.key, message.value, headers, message.timestamp, by_broker)
