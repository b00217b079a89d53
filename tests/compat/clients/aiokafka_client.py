"""aiokafka: asyncio."""

import asyncio
import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

from tests.compat.clients.base import BIG, WAIT_SECONDS, Acks, At, Codec
from tests.compat.record import Read, Sent


class AiokafkaClient:
    name = "aiokafka"

    def missing(self) -> str | None:
        return None if importlib.util.find_spec("aiokafka") else "aiokafka is not installed"

    def can_send(self, record: Sent) -> bool:
        """It rejects a record with neither key nor value."""
        return (record.key, record.value) != (None, None)

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
        return asyncio.run(self._produce(bootstrap, topic, records, codec, acks, idempotent))

    async def _produce(
        self, bootstrap: str, topic: str, records: Sequence[Sent], codec: Codec, acks: Acks, idempotent: bool
    ) -> list[int]:
        from aiokafka import AIOKafkaProducer

        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if codec == "none" else codec,
            acks="all" if acks == "all" else int(acks),
            enable_idempotence=idempotent,
            max_request_size=BIG,
            linger_ms=5,
        )
        async with producer:
            futures = [
                await producer.send(
                    topic, record.value, record.key, record.partition, record.timestamp_ms, headers=list(record.headers)
                )
                for record in records
            ]
            await producer.flush()
            responses = [await future for future in futures]
        return [-1 if response is None else response.offset for response in responses]

    def consume(self, bootstrap: str, topic: str, start: Mapping[int, int], end: Mapping[int, int]) -> list[Read]:
        return asyncio.run(self._consume(bootstrap, topic, start, end))

    async def _consume(
        self, bootstrap: str, topic: str, start: Mapping[int, int], end: Mapping[int, int]
    ) -> list[Read]:
        from aiokafka import TopicPartition

        async with self._consumer(bootstrap) as consumer:
            consumer.assign([TopicPartition(topic, partition) for partition in start])
            for partition, offset in start.items():
                consumer.seek(TopicPartition(topic, partition), offset)
            left = sum(end[partition] - offset for partition, offset in start.items())
            found: list[Read] = []
            while left > 0:
                batches = await consumer.getmany(timeout_ms=WAIT_SECONDS * 1000)
                if not batches:
                    raise RuntimeError(f"{left} records missing after the timeout")
                for messages in batches.values():
                    included = [_read(message) for message in messages if message.offset < end[message.partition]]
                    found += included
                    left -= len(included)
            return found

    def offsets(self, bootstrap: str, topic: str, partitions: Sequence[int], at: At) -> dict[int, int | None]:
        return asyncio.run(self._offsets(bootstrap, topic, partitions, at))

    async def _offsets(self, bootstrap: str, topic: str, partitions: Sequence[int], at: At) -> dict[int, int | None]:
        from aiokafka import TopicPartition

        requested = [TopicPartition(topic, partition) for partition in partitions]
        async with self._consumer(bootstrap) as consumer:
            consumer.assign(requested)
            if at == "earliest":
                return {key.partition: offset for key, offset in (await consumer.beginning_offsets(requested)).items()}
            if at == "latest":
                return {key.partition: offset for key, offset in (await consumer.end_offsets(requested)).items()}
            found = await consumer.offsets_for_times(dict.fromkeys(requested, at))
            return {key.partition: None if entry is None else entry.offset for key, entry in found.items()}

    def partition_count(self, bootstrap: str, topic: str) -> int:
        return asyncio.run(self._partition_count(bootstrap, topic))

    async def _partition_count(self, bootstrap: str, topic: str) -> int:
        from aiokafka import AIOKafkaProducer

        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            return len(await producer.partitions_for(topic))

    def _consumer(self, bootstrap: str) -> Any:
        from aiokafka import AIOKafkaConsumer

        return AIOKafkaConsumer(
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
