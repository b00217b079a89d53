"""Java's own clients."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from tests.compat.clients import jvm
from tests.compat.clients.base import BIG, Acks, At, Codec
from tests.compat.record import Read, Sent


def _text(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


class JavaClient:
    name = "java"

    def __init__(self, worker: jvm.Jvm) -> None:
        self._jvm = worker

    def missing(self) -> str | None:
        return jvm.missing()

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
        config = {
            "bootstrap.servers": bootstrap,
            "compression.type": codec,
            "acks": acks,
            "enable.idempotence": str(idempotent).lower(),
            "max.request.size": BIG,
            "linger.ms": 5,
        }
        described = [
            {
                "partition": record.partition,
                "key": _text(record.key),
                "value": _text(record.value),
                "headers": [[name, _text(value)] for name, value in record.headers],
                "timestamp": record.timestamp_ms,
            }
            for record in records
        ]
        offsets: list[int] = self._jvm.call("produce", topic=topic, config=config, records=described)
        return offsets

    def consume(self, bootstrap: str, topic: str, start: Mapping[int, int], end: Mapping[int, int]) -> list[Read]:
        config = self._consumer_config(bootstrap)
        response = self._jvm.call("consume", topic=topic, config=config, start=start, end=end)
        return [
            Read(
                record["partition"],
                record["offset"],
                _bytes(record["key"]),
                _bytes(record["value"]),
                tuple((name, _bytes(value)) for name, value in record["headers"]),
                record["timestamp"],
                record["timestamp_type"] == "LogAppendTime",
            )
            for record in response
        ]

    def offsets(self, bootstrap: str, topic: str, partitions: Sequence[int], at: At) -> dict[int, int | None]:
        response = self._jvm.call(
            "offsets", topic=topic, config=self._consumer_config(bootstrap), partitions=list(partitions), at=at
        )
        return {int(partition): offset for partition, offset in response.items()}

    def partition_count(self, bootstrap: str, topic: str) -> int:
        config = {**self._consumer_config(bootstrap), "allow.auto.create.topics": "true"}
        return int(self._jvm.call("partitions", topic=topic, config=config)["count"])

    def _consumer_config(self, bootstrap: str) -> dict[str, Any]:
        # Without group.id: assigned partitions, no coordinator.
        return {
            "bootstrap.servers": bootstrap,
            "fetch.max.bytes": 64 * 1024 * 1024,
            "allow.auto.create.topics": "false",
        }
