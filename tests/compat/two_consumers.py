"""Measures a test with two consumers of one group, with each client's default settings and with fast ones.

    python -m tests.compat.two_consumers [RUNS]

The first consumer gets both partitions of a topic, the second joins and each gets one, each reads a record, the second
leaves, and the first gets both again. Prints the median in seconds for docs/testing-with-ottla.md.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from bench.peers import jar_cache, java_command
from ottla.client import Producer
from ottla.testing import Broker

RUNS = 5
GIVE_UP_SECONDS = 60.0
TOPIC, COLD_TOPIC, GROUP = "orders", "cold", "bakery"
DEFAULTS: Mapping[str, Any] = {}
FAST: Mapping[str, Any] = {"heartbeat.interval.ms": 100, "session.timeout.ms": 6000}
FAST_JAVA: Mapping[str, Any] = {**FAST, "fetch.max.wait.ms": 50, "retry.backoff.ms": 20}


def fast(client: str) -> Mapping[str, Any]:
    return FAST_JAVA if client == "java" else FAST


class Overdue(Exception):
    """A step took longer than GIVE_UP_SECONDS."""


def repeat_until(step: Callable[[], None], is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + GIVE_UP_SECONDS
    while not is_done():
        if time.monotonic() > deadline:
            raise Overdue
        step()


def send_one_to_each(bootstrap: str) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        for partition in (0, 1):
            producer.send(TOPIC, b"bread", partition=partition)


def confluent(bootstrap: str, settings: Mapping[str, Any]) -> None:
    from confluent_kafka import Consumer

    config = {"bootstrap.servers": bootstrap, "group.id": GROUP, "auto.offset.reset": "earliest", **settings}
    first, second = Consumer(config), Consumer(config)
    received: dict[Any, int] = {first: 0, second: 0}

    def poll(*consumers: Any) -> None:
        for consumer in consumers:
            message = consumer.poll(0.01)
            if message is not None and message.error() is None:
                received[consumer] += 1

    first.subscribe([TOPIC])
    repeat_until(partial(poll, first), lambda: len(first.assignment()) == 2)
    second.subscribe([TOPIC])
    repeat_until(partial(poll, first, second), lambda: len(first.assignment()) == len(second.assignment()) == 1)
    send_one_to_each(bootstrap)
    repeat_until(partial(poll, first, second), lambda: all(received.values()))
    second.close()
    repeat_until(partial(poll, first), lambda: len(first.assignment()) == 2)
    first.close()


def aiokafka(bootstrap: str, settings: Mapping[str, Any]) -> None:
    asyncio.run(_aiokafka(bootstrap, {name.replace(".", "_"): value for name, value in settings.items()}))


async def _aiokafka(bootstrap: str, settings: Mapping[str, Any]) -> None:
    from aiokafka import AIOKafkaConsumer

    def consumer() -> Any:
        return AIOKafkaConsumer(
            TOPIC, bootstrap_servers=bootstrap, group_id=GROUP, auto_offset_reset="earliest", **settings
        )

    async def wait(is_done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + GIVE_UP_SECONDS
        while not is_done():
            if time.monotonic() > deadline:
                raise Overdue
            await asyncio.sleep(0.002)

    first = consumer()
    await first.start()
    await wait(lambda: len(first.assignment()) == 2)
    second = consumer()
    await second.start()
    await wait(lambda: len(first.assignment()) == len(second.assignment()) == 1)
    await asyncio.to_thread(send_one_to_each, bootstrap)
    await asyncio.gather(first.getone(), second.getone())
    await second.stop()
    await wait(lambda: len(first.assignment()) == 2)
    await first.stop()


def java(bootstrap: str, settings: Mapping[str, Any]) -> float:
    """Return the time of the second run in a JVM: the first one also loads classes, which takes seconds."""
    source = Path(__file__).parent / "java" / "TwoConsumers.java"
    classpath = f"{jar_cache() / 'libs'}/*"
    arguments = [f"{name}={value}" for name, value in settings.items()]
    command = [java_command(), "-cp", classpath, str(source), bootstrap, f"{COLD_TOPIC},{TOPIC}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=GIVE_UP_SECONDS * 3)
    return float(done.stdout.split()[-1])


CLIENTS: dict[str, Callable[[str, Mapping[str, Any]], float | None]] = {
    "confluent-kafka": confluent,
    "aiokafka": aiokafka,
    "java": java,
}


def measure(client: str, settings: Mapping[str, Any]) -> float:
    """Return the seconds of one run, on a new broker."""
    with Broker() as broker:
        broker.create_topic(TOPIC, partitions=2)
        broker.create_topic(COLD_TOPIC, partitions=2)
        started = time.monotonic()
        seconds = CLIENTS[client](broker.bootstrap, settings)
        return time.monotonic() - started if seconds is None else seconds


def main(runs: int = RUNS) -> None:
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    for client in CLIENTS:
        for name, settings in (("defaults", DEFAULTS), ("fast", fast(client))):
            seconds = [measure(client, settings) for _ in range(runs)]
            print(f"{client:16} {name:9} {statistics.median(seconds):.2f} s", [round(each, 2) for each in seconds])


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
