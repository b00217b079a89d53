"""`ottla perf latency`."""

import os
import time
from typing import TYPE_CHECKING

from ottla.cli.failure import Failure
from ottla.cli.figures import Records, Size, latencies, show
from ottla.cli.lookup import require_topics
from ottla.cli.options import Acks, Topic, given
from ottla.cli.progress import Bar
from ottla.cli.session import Session
from ottla.client.partitions import TopicPartition

if TYPE_CHECKING:
    from ottla.client import Producer
    from ottla.client.consumer import Consumer

WARM_UP = 20
"""Rounds that do not count: connections are made, and code is loaded."""


def latency(session: Session, topic: Topic, records: Records = 1_000, size: Size = 100, acks: Acks = None) -> None:
    """Send single records, one after another, and measure how long each takes to come back to a consumer.

    JSON: {"records", "latency_ms": {"average", "p50", "p95", "p99", "p99_9", "max"}}.
    """
    with session.admin() as admin:
        partitions = require_topics(admin, [topic])[topic].partitions
    places = [TopicPartition(topic, each.partition) for each in partitions]
    taken: list[float] = []
    with (
        Bar(f"round trips through {topic}", records) as bar,
        session.producer(given({"linger.ms": 0, "acks": acks})) as producer,
        session.consumer({"enable.auto.commit": False}) as consumer,
    ):
        consumer.assign(places)
        consumer.seek_to_end()
        for place in places:
            consumer.position(place)
        for number in range(-WARM_UP, records):
            seconds = _round_trip(session, producer, consumer, topic, os.urandom(max(8, size)))
            if number >= 0:
                taken.append(seconds)
                bar.tell(number, f"{seconds * 1000:.2f} ms")
    show({"records": records, "latency_ms": latencies(taken)}, is_json=session.is_json)


def _round_trip(session: Session, producer: "Producer", consumer: "Consumer", topic: str, value: bytes) -> float:
    started = time.perf_counter()
    producer.send(topic, value)
    while True:
        found = consumer.poll(session.timeout_seconds)
        ended = time.perf_counter()
        if any(record.value == value for record in found):
            return ended - started
        if not found:
            raise Failure(
                f"a record to {topic} did not come back within {session.timeout_seconds:g} s", "Is the broker busy?"
            )
