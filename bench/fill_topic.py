"""Fills a topic before clients read it, with confluent-kafka, which is fast and not subject to thresholds."""

import time
from collections.abc import Iterable, Mapping
from typing import Any

FILL_SECONDS_MAX = 300
SETTINGS = {"linger.ms": 5, "batch.size": 16_384, "queue.buffering.max.messages": 200_000}
"""Batches of 16 kB, like Kafka's producer."""


def fill(bootstrap: str, topic: str, partitions: int, records: Iterable[Mapping[str, Any]], **settings: str) -> None:
    """Create the topic and produce records, given as arguments of `Producer.produce`, until all are acknowledged."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)
    producer = Producer({"bootstrap.servers": bootstrap, **SETTINGS, **settings})
    deadline = time.monotonic() + FILL_SECONDS_MAX
    for record in records:
        while True:
            try:
                producer.produce(topic, **record)
                break
            except BufferError:
                producer.poll(0.1)
                if time.monotonic() > deadline:
                    raise
    if producer.flush(FILL_SECONDS_MAX):
        raise RuntimeError(f"filling the topic timed out after {FILL_SECONDS_MAX} s")
