"""`ottla perf produce|consume|latency`: throughput and latency of this client against a broker."""

import math
import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ottla.base.plural import count_text
from ottla.cli.command import command
from ottla.cli.errors import CliError, require_topics
from ottla.cli.options import Acks, Compression, Linger, Topic, drop_none
from ottla.cli.output import ProgressBar, print_json
from ottla.cli.session import Session
from ottla.cli.topic import offsets
from ottla.cli.usage import new_group
from ottla.client.records import TopicPartition

if TYPE_CHECKING:
    from ottla.client import Producer
    from ottla.client.consumer import Consumer
    from ottla.client.send_future import SendFuture

app = new_group("Measure throughput and latency.")

PERCENTILES = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p99_9": 99.9}
MEGABYTE = 1 << 20
SIZE_BYTES_MAX = 100 << 20
Records = Annotated[int, typer.Option("--records", "-n", min=1, metavar="N", help="Number of records.")]
Size = Annotated[
    int, typer.Option("--size", "-s", min=0, max=SIZE_BYTES_MAX, metavar="BYTES", help="Size of each value.")
]
SAMPLES_MAX = 10_000
"""Upper limit of records whose latency is measured, spread evenly: measuring every record would slow the producer."""
PAYLOADS = 16
PROGRESS_EVERY = 256
POLL_SECONDS = 1.0
WARMUP_ROUNDS = 20
"""Round trips before the measurement, while connections are opened and code is loaded."""


def register(root: typer.Typer) -> None:
    root.add_typer(app, name="perf")


def latencies(seconds: Sequence[float]) -> dict[str, float]:
    """Return average, nearest-rank percentiles and maximum, in milliseconds."""
    ordered = sorted(seconds)
    if not ordered:
        return {}
    found = {"average": sum(ordered) / len(ordered)}
    found |= {name: ordered[max(0, math.ceil(len(ordered) * share / 100) - 1)] for name, share in PERCENTILES.items()}
    return {name: round(value * 1000, 3) for name, value in (found | {"max": ordered[-1]}).items()}


def rates(records: int, size: int, seconds: float) -> dict[str, Any]:
    """Return throughput figures. A MB is 1,048,576 bytes of keys and values."""
    seconds = max(seconds, 1e-9)
    return {
        "records": records,
        "bytes": size,
        "seconds": round(seconds, 3),
        "records_per_second": round(records / seconds, 1),
        "mb_per_second": round(size / seconds / MEGABYTE, 3),
    }


def print_result(document: dict[str, Any], *, is_json: bool) -> None:
    if is_json:
        print_json(document)
        return
    if "records_per_second" in document:
        print(
            f"{count_text(document['records'], 'record')}, {document['bytes'] / MEGABYTE:,.1f} MB "
            f"in {document['seconds']:,.2f} s: "
            f"{document['records_per_second']:,.0f} records/s, {document['mb_per_second']:,.2f} MB/s"
        )
    if document.get("latency_ms"):
        latency = ", ".join(f"{name.replace('_', '.')} {value:,.2f}" for name, value in document["latency_ms"].items())
        print(f"latency in ms: {latency}")


@command(app, "produce")
def produce(
    session: Session,
    topic: Topic,
    records: Records = 100_000,
    size: Size = 100,
    rate: Annotated[
        float, typer.Option("--rate", min=0, metavar="N", help="Records per second.", show_default="unlimited")
    ] = 0.0,
    compression: Compression = None,
    acks: Acks = None,
    linger: Linger = None,
    batch_size: Annotated[
        int | None,
        typer.Option("--batch-size", min=0, metavar="BYTES", help="Maximum batch size.", show_default="16384"),
    ] = None,
) -> None:
    """Produce random values at full speed or at a given rate. Latency is from send to acknowledgement.

    JSON: {"records", "bytes", "seconds", "records_per_second", "mb_per_second", "latency_ms": {"average", "p50",
    "p95", "p99", "p99_9", "max"}}.
    """
    with session.admin() as admin:
        require_topics(admin, [topic])
    payloads = [os.urandom(size) for _ in range(PAYLOADS)]
    configs = drop_none({"compression.type": compression, "acks": acks, "linger.ms": linger, "batch.size": batch_size})
    samples: list[float] = []
    every = max(1, records // SAMPLES_MAX)
    clock = time.perf_counter
    with ProgressBar(f"produce to {topic}", records) as bar, session.producer(configs) as producer:
        producer.partitions_for(topic)
        started = clock()
        for number in range(records):
            if number % PROGRESS_EVERY == 0:
                bar.update(number, f"{number / max(clock() - started, 1e-9):,.0f}/s")
            if rate and (ahead := started + number / rate - clock()) > 0:
                time.sleep(ahead)
            future = producer.send(topic, payloads[number % PAYLOADS])
            if number % every == 0:
                _record_latency(future, samples)
        producer.flush()
        seconds = clock() - started
        failed = int(producer.metrics()["record-error-total"])
    print_result(
        rates(records - failed, (records - failed) * size, seconds) | {"latency_ms": latencies(samples)},
        is_json=session.is_json,
    )
    if failed:
        raise CliError(
            f"{failed:,} of {records:,} records were not acknowledged", "Run `ottla produce` to see the error."
        )


def _record_latency(future: "SendFuture", samples: list[float]) -> None:
    """Append the latency of a record to `samples` when it is acknowledged."""
    sent = time.perf_counter()
    future.add_done_callback(
        lambda done: samples.append(time.perf_counter() - sent) if done.peek()[1] is None else None
    )


@command(app, "consume")
def consume(
    session: Session,
    topic: Topic,
    records: Annotated[
        int | None, typer.Option("--records", "-n", min=1, metavar="N", help="Number of records.", show_default="all")
    ] = None,
    one_by_one: Annotated[
        bool, typer.Option("--one-by-one", help="Create an object per record instead of reading columns.")
    ] = False,
    fetch_size: Annotated[
        int, typer.Option("--fetch-size", min=1, metavar="BYTES", help="max.partition.fetch.bytes.")
    ] = 1 << 20,
) -> None:
    """Consume a topic from its beginning to its current end at full speed.

    JSON: {"records", "bytes", "seconds", "records_per_second", "mb_per_second"}.
    """
    with session.admin() as admin:
        described = require_topics(admin, [topic])
        earliest, latest = offsets(admin, described, "earliest"), offsets(admin, described, "latest")
    available = sum(latest[each].offset - earliest[each].offset for each in latest)
    total = available if records is None else min(records, available)
    count = size = 0
    with (
        ProgressBar(f"consume {topic}", total) as bar,
        session.consumer(
            {"enable.auto.commit": False, "max.partition.fetch.bytes": fetch_size, "max.poll.records": 5_000}
        ) as consumer,
    ):
        consumer.assign(list(latest))
        consumer.seek_to_beginning()
        started = ended = time.perf_counter()
        while count < total:
            if one_by_one:
                found = consumer.poll(POLL_SECONDS)
                length, more = len(found), sum(len(each.value or b"") + len(each.key or b"") for each in found)
            else:
                batch = consumer.poll_batch(POLL_SECONDS)
                length = 0 if batch is None else len(batch)
                more = 0 if batch is None else len(batch.values.data) + len(batch.keys.data)
            if length == 0:
                break  # fewer records than offsets: compaction or transaction markers
            count, size, ended = count + length, size + more, time.perf_counter()
            bar.update(count, f"{count / (ended - started):,.0f}/s")
    print_result(rates(count, size, ended - started), is_json=session.is_json)


@command(app, "latency")
def latency(session: Session, topic: Topic, records: Records = 1_000, size: Size = 100, acks: Acks = None) -> None:
    """Send records one at a time and measure how long each takes to reach a consumer.

    JSON: {"records", "latency_ms": {"average", "p50", "p95", "p99", "p99_9", "max"}}.
    """
    with session.admin() as admin:
        partitions = require_topics(admin, [topic])[topic].partitions
    topic_partitions = [TopicPartition(topic, each.partition) for each in partitions]
    samples: list[float] = []
    with (
        ProgressBar(f"round trips through {topic}", records) as bar,
        session.producer(drop_none({"linger.ms": 0, "acks": acks})) as producer,
        session.consumer({"enable.auto.commit": False}) as consumer,
    ):
        consumer.assign(topic_partitions)
        consumer.seek_to_end()
        for each in topic_partitions:
            consumer.position(each)
        for number in range(-WARMUP_ROUNDS, records):
            seconds = _round_trip(session, producer, consumer, topic, os.urandom(max(8, size)))
            if number >= 0:
                samples.append(seconds)
                bar.update(number, f"{seconds * 1000:.2f} ms")
    print_result({"records": records, "latency_ms": latencies(samples)}, is_json=session.is_json)


def _round_trip(session: Session, producer: "Producer", consumer: "Consumer", topic: str, value: bytes) -> float:
    started = time.perf_counter()
    producer.send(topic, value)
    while True:
        found = consumer.poll(session.timeout_seconds)
        ended = time.perf_counter()
        if any(record.value == value for record in found):
            return ended - started
        if not found:
            raise CliError(
                f"a record sent to {topic} was not received within {session.timeout_seconds:g} s",
                "Check whether the broker is overloaded.",
            )
