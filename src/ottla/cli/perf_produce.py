"""`ottla perf produce`."""

import os
import time
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.failure import Failure
from ottla.cli.figures import Records, Size, latencies, rates, show
from ottla.cli.lookup import require_topics
from ottla.cli.options import Acks, Compression, Linger, Topic, given
from ottla.cli.progress import Bar
from ottla.cli.session import Session

if TYPE_CHECKING:
    from ottla.client.batch import SendFuture

SAMPLES_MAX = 10_000
"""The latency of so many records is taken, spread over all of them: to take it of each would measure the measuring."""
PAYLOADS = 16
LOOK_EVERY = 256


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
    configs = given({"compression.type": compression, "acks": acks, "linger.ms": linger, "batch.size": batch_size})
    taken: list[float] = []
    every = max(1, records // SAMPLES_MAX)
    clock = time.perf_counter
    with Bar(f"produce to {topic}", records) as bar, session.producer(configs) as producer:
        producer.partitions_for(topic)
        started = clock()
        for number in range(records):
            if number % LOOK_EVERY == 0:
                bar.tell(number, f"{number / max(clock() - started, 1e-9):,.0f}/s")
            if rate and (ahead := started + number / rate - clock()) > 0:
                time.sleep(ahead)
            future = producer.send(topic, payloads[number % PAYLOADS])
            if number % every == 0:
                _take(future, taken)
        producer.flush()
        seconds = clock() - started
        failed = int(producer.metrics()["record-error-total"])
    show(
        rates(records - failed, (records - failed) * size, seconds) | {"latency_ms": latencies(taken)},
        is_json=session.is_json,
    )
    if failed:
        raise Failure(f"{failed:,} of {records:,} records were not acknowledged", "`ottla produce` says why.")


def _take(future: "SendFuture", taken: list[float]) -> None:
    """Its latency, once it is acknowledged."""
    sent = time.perf_counter()
    future.add_done_callback(lambda done: taken.append(time.perf_counter() - sent) if done.peek()[1] is None else None)
