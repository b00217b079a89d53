"""`ottla perf produce|consume|latency`: how fast it is from here, with this client."""

import math
import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ottla.cli.command import command
from ottla.cli.errors import CliError, require_topics
from ottla.cli.options import Acks, Compression, Linger, Topic, drop_none
from ottla.cli.output import ProgressBar, print_json
from ottla.cli.session import Session
from ottla.cli.topic import offsets
from ottla.client.records import TopicPartition

if TYPE_CHECKING:
    from ottla.client import Producer
    from ottla.client.consumer import Consumer
    from ottla.client.send_future import SendFuture

app = typer.Typer(no_args_is_help=True, help="Measure rates and latencies.")


def register(root: typer.Typer) -> None:
    root.add_typer(app, name="perf")


PERCENTILES = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p99_9": 99.9}
MEGABYTE = 1 << 20

Records = Annotated[int, typer.Option("--records", "-n", min=1, metavar="N", help="How many records.")]
Size = Annotated[int, typer.Option("--size", "-s", min=0, metavar="BYTES", help="Bytes of each value.")]


def latencies(seconds: Sequence[float]) -> dict[str, float]:
    """Milliseconds: average, percentiles (the least value that so many do not exceed), and the greatest."""
    ordered = sorted(seconds)
    if not ordered:
        return {}
    found = {"average": sum(ordered) / len(ordered)}
    found |= {name: ordered[max(0, math.ceil(len(ordered) * share / 100) - 1)] for name, share in PERCENTILES.items()}
    return {name: round(value * 1000, 3) for name, value in (found | {"max": ordered[-1]}).items()}


def rates(records: int, size: int, seconds: float) -> dict[str, Any]:
    """`mb_per_second` counts 1,048,576 bytes of keys and values as one."""
    seconds = max(seconds, 1e-9)
    return {"records": records, "bytes": size, "seconds": round(seconds, 3), "records_per_second": round(records / seconds, 1),
            "mb_per_second": round(size / seconds / MEGABYTE, 3)}  # fmt: skip


def print_result(document: dict[str, Any], *, is_json: bool) -> None:
    if is_json:
        print_json(document)
        return
    if "records_per_second" in document:
        print(f"{document['records']:,} records, {document['bytes'] / MEGABYTE:,.1f} MB in {document['seconds']:,.2f} s: "
              f"{document['records_per_second']:,.0f} records/s, {document['mb_per_second']:,.2f} MB/s")  # fmt: skip
    if document.get("latency_ms"):
        told = ", ".join(f"{name.replace('_', '.')} {value:,.2f}" for name, value in document["latency_ms"].items())
        print(f"latency in ms: {told}")


SAMPLES_MAX = 10_000
"""The latency of so many records is samples, spread over all of them: to take it of each would measure the measuring."""
PAYLOADS = 16
PROGRESS_EVERY = 256


@command(app, "produce")
def produce(
    session: Session,
    topic: Topic,
    records: Records = 100_000,
    size: Size = 100,
    rate: Annotated[
        float, typer.Option("--rate", min=0, metavar="N", help="Records per second.", show_default="as fast as it goes")
    ] = 0.0,
    compression: Compression = None,
    acks: Acks = None,
    linger: Linger = None,
    batch_size: Annotated[
        int | None,
        typer.Option(
            "--batch-size", min=0, metavar="BYTES", help="How large a batch may become.", show_default="16384"
        ),
    ] = None,
) -> None:
    """Produce random values as fast as they go, or at a rate. Latency is from the send to the acknowledgement.

    JSON: {"records", "bytes", "seconds", "records_per_second", "mb_per_second", "latency_ms": {"average", "p50", "p95", "p99", "p99_9",
    "max"}}.
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
        raise CliError(f"{failed:,} of {records:,} records were not acknowledged", "`ottla produce` says why.")


def _record_latency(future: "SendFuture", samples: list[float]) -> None:
    """Its latency, once it is acknowledged."""
    sent = time.perf_counter()
    future.add_done_callback(
        lambda done: samples.append(time.perf_counter() - sent) if done.peek()[1] is None else None
    )


POLL_SECONDS = 1.0


@command(app, "consume")
def consume(
    session: Session,
    topic: Topic,
    records: Annotated[
        int | None, typer.Option("--records", "-n", min=1, metavar="N", help="How many records.", show_default="all")
    ] = None,
    one_by_one: Annotated[
        bool, typer.Option("--one-by-one", help="Make an object of each record, instead of taking columns.")
    ] = False,
    fetch_size: Annotated[
        int, typer.Option("--fetch-size", min=1, metavar="BYTES", help="max.partition.fetch.bytes.")
    ] = 1 << 20,
) -> None:
    """Consume a topic from its beginning as fast as it goes, up to what is its end now.

    JSON: {"records", "bytes", "seconds", "records_per_second", "mb_per_second"}.
    """
    with session.admin() as admin:
        described = require_topics(admin, [topic])
        earliest, latest = offsets(admin, described, "earliest"), offsets(admin, described, "latest")
    there = sum(latest[place].offset - earliest[place].offset for place in latest)
    wanted = there if records is None else min(records, there)
    count = size = 0
    with (
        ProgressBar(f"consume {topic}", wanted) as bar,
        session.consumer(
            {"enable.auto.commit": False, "max.partition.fetch.bytes": fetch_size, "max.poll.records": 5_000}
        ) as consumer,
    ):
        consumer.assign(list(latest))
        consumer.seek_to_beginning()
        started = ended = time.perf_counter()
        while count < wanted:
            if one_by_one:
                found = consumer.poll(POLL_SECONDS)
                length, more = len(found), sum(len(each.value or b"") + len(each.key or b"") for each in found)
            else:
                batch = consumer.poll_batch(POLL_SECONDS)
                length = 0 if batch is None else len(batch)
                more = 0 if batch is None else len(batch.values.data) + len(batch.keys.data)
            if length == 0:
                break  # fewer records than offsets: some are compacted away, or the marks of transactions
            count, size, ended = count + length, size + more, time.perf_counter()
            bar.update(count, f"{count / (ended - started):,.0f}/s")
    print_result(rates(count, size, ended - started), is_json=session.is_json)


WARMUP_ROUNDS = 20
"""Rounds that do not count: connections are made, and code is loaded."""


@command(app, "latency")
def latency(session: Session, topic: Topic, records: Records = 1_000, size: Size = 100, acks: Acks = None) -> None:
    """Send single records, one after another, and measure how long each takes to come back to a consumer.

    JSON: {"records", "latency_ms": {"average", "p50", "p95", "p99", "p99_9", "max"}}.
    """
    with session.admin() as admin:
        partitions = require_topics(admin, [topic])[topic].partitions
    places = [TopicPartition(topic, each.partition) for each in partitions]
    samples: list[float] = []
    with (
        ProgressBar(f"round trips through {topic}", records) as bar,
        session.producer(drop_none({"linger.ms": 0, "acks": acks})) as producer,
        session.consumer({"enable.auto.commit": False}) as consumer,
    ):
        consumer.assign(places)
        consumer.seek_to_end()
        for place in places:
            consumer.position(place)
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
                f"a record to {topic} did not come back within {session.timeout_seconds:g} s", "Is the broker busy?"
            )
