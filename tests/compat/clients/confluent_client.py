"""confluent-kafka: librdkafka from Python."""

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

from tests.compat.clients.base import BIG, WAIT_SECONDS, Acks, At, Codec
from tests.compat.record import Read, Sent


class ConfluentClient:
    name = "confluent-kafka"

    def missing(self) -> str | None:
        return None if importlib.util.find_spec("confluent_kafka") else "confluent-kafka is not installed"

    def can_send(self, record: Sent) -> bool:
        return True

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
        from confluent_kafka import Producer

        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "compression.type": codec,
                "acks": acks,
                "enable.idempotence": idempotent,
                "message.max.bytes": BIG,
                "linger.ms": 5,
                "message.timeout.ms": WAIT_SECONDS * 1000,
            }
        )
        offsets = [-1] * len(records)
        failures: list[str] = []

        def delivered(index: int, error: Any, message: Any) -> None:
            if error is not None:
                failures.append(f"record {index}: {error}")
            elif message.offset() is not None:
                offsets[index] = message.offset()

        for index, record in enumerate(records):
            extra: dict[str, Any] = {} if record.timestamp_ms is None else {"timestamp": record.timestamp_ms}
            producer.produce(
                topic,
                record.value,
                record.key,
                record.partition,
                headers=list(record.headers),
                on_delivery=lambda error, message, index=index: delivered(index, error, message),
                **extra,
            )
        waiting = producer.flush(WAIT_SECONDS)
        if waiting or failures:
            raise RuntimeError(f"{waiting} records not acknowledged in time; {failures}")
        return offsets

    def consume(self, bootstrap: str, topic: str, start: Mapping[int, int], end: Mapping[int, int]) -> list[Read]:
        from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, TopicPartition

        consumer = self._consumer(bootstrap)
        consumer.assign([TopicPartition(topic, partition, offset) for partition, offset in start.items()])
        left = sum(end[partition] - offset for partition, offset in start.items())
        found: list[Read] = []
        while left > 0:
            messages = (
                consumer.consume(left, timeout=WAIT_SECONDS)
                if left < 1000
                else consumer.consume(1000, timeout=WAIT_SECONDS)
            )
            if not messages:
                raise RuntimeError(f"{left} records missing after the timeout")
            for message in messages:
                if message.error():
                    raise RuntimeError(str(message.error()))
                if message.offset() >= end[message.partition()]:
                    continue
                left -= 1
                kind, timestamp_ms = message.timestamp()
                found.append(
                    Read(
                        message.partition(),
                        message.offset(),
                        message.key(),
                        message.value(),
                        tuple(message.headers() or ()),
                        timestamp_ms,
                        kind == TIMESTAMP_LOG_APPEND_TIME,
                    )
                )
        consumer.close()
        return found

    def offsets(self, bootstrap: str, topic: str, partitions: Sequence[int], at: At) -> dict[int, int | None]:
        from confluent_kafka import TopicPartition

        consumer = self._consumer(bootstrap)
        try:
            if isinstance(at, str):
                marks = {
                    p: consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=10, cached=False)
                    for p in partitions
                }
                return {partition: low if at == "earliest" else high for partition, (low, high) in marks.items()}
            found = consumer.offsets_for_times([TopicPartition(topic, p, at) for p in partitions], timeout=10)
            return {entry.partition: None if entry.offset < 0 else entry.offset for entry in found}
        finally:
            consumer.close()

    def partition_count(self, bootstrap: str, topic: str) -> int:
        from confluent_kafka import Producer

        # A producer's metadata requests may create topics; a consumer's, by default, may not.
        producer = Producer({"bootstrap.servers": bootstrap, "allow.auto.create.topics": True})
        for _ in range(50):
            partitions = producer.list_topics(topic, timeout=10).topics[topic].partitions
            if partitions:
                return len(partitions)
            producer.poll(0.1)
        return 0

    def _consumer(self, bootstrap: str) -> Any:
        from confluent_kafka import Consumer

        return Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 100,
                "fetch.message.max.bytes": BIG,
                "receive.message.max.bytes": 256 * 1024 * 1024,
            }
        )
