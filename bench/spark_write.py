"""Batch writes from Spark: the data source `ottla` compared with Spark's Kafka connector, to the same broker, with
`local[2]`, rows from memory and alternating rounds; also with headers, zstd and values of 1 kB."""

import contextlib
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.peers import BrokerProcess
from bench.report import Goal, Report, RunSize, quotient, ratio
from bench.spark_environments import TITLES, Job

PARTITIONS = 2
WARM_ROUNDS = 1
RATIO_MIN = 1.5
JOB = "bench.spark_write_job"


@dataclass(frozen=True, slots=True)
class Case:
    """The records of one measurement."""

    name: str
    value_bytes: int = 100
    has_headers: bool = False
    codec: str = "none"
    share: float = 1.0
    """Fraction of the number of records."""


CASES = (
    Case("100 bytes"),
    Case("100 bytes, zstd", codec="zstd"),
    Case("100 bytes, two headers", has_headers=True, share=0.5),
    Case("1 kB", value_bytes=1000, share=0.2),
)


def create(bootstrap: str, topic: str) -> None:
    from ottla.client import Admin

    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(topic, PARTITIONS, 1)


def remove(bootstrap: str, topic: str) -> None:
    from ottla.client import Admin

    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.delete_topics([topic])


def measure(
    case: Case, broker: BrokerProcess, records: int, rounds: int, log: Callable[[str], None]
) -> dict[str, float]:
    """Return rows per second by format."""
    count = int(records * case.share)
    arguments = [str(count), str(case.value_bytes), "headers" if case.has_headers else "plain"]
    seconds: dict[str, list[float]] = {name: [] for name in TITLES}
    with contextlib.ExitStack() as stack:
        jobs = [stack.enter_context(Job(name, JOB, arguments)) for name in TITLES]
        for number in range(WARM_ROUNDS + rounds):
            for job in jobs:
                topic = f"spark-write-{time.time_ns()}"
                create(broker.bootstrap, topic)
                options = {
                    "kafka.bootstrap.servers": broker.bootstrap,
                    "topic": topic,
                    "kafka.compression.type": case.codec,
                }
                took = job.run(options=options)["seconds"]
                if number >= WARM_ROUNDS:
                    log(f"{broker.name}, {case.name}: {TITLES[job.format_name]}, {count / took:,.0f} rows/s")
                    seconds[job.format_name].append(took)
                remove(broker.bootstrap, topic)
    return {name: count / statistics.median(found) for name, found in seconds.items()}


def run(brokers: Sequence[BrokerProcess], run_size: RunSize, log: Callable[[str], None]) -> Report:
    rows, goals, measurements = [], [], {}
    records = int(run_size.perf_records * 4 / 3)
    for broker in brokers:
        for case in CASES:
            rates = measure(case, broker, records, run_size.perf_rounds, log)
            theirs = rates["kafka"]
            measurements[f"{broker.name}, {case.name}"] = rates
            rows.append(
                [
                    f"{case.name} ({broker.name})",
                    f"{theirs:,.0f}",
                    f"{rates['ottla']:,.0f}",
                    ratio(rates["ottla"], theirs),
                ]
            )
            what = f"Spark's batch write, {case.name} ({broker.name})"
            goals.append(Goal(what, quotient(rates["ottla"], theirs), RATIO_MIN, at_most=False))
    note = (
        f"{records:,} records (fewer where they are larger) to {PARTITIONS} partitions, local[2], rows from memory, "
        f"medians of {run_size.perf_rounds} alternating rounds; the peer is PySpark 4.0.0 with spark-sql-kafka-0-10, "
        "each with its default configs."
    )
    return Report(
        "Writing from Spark",
        ("rows/s", TITLES["kafka"], TITLES["ottla"], "ratio"),
        rows,
        note,
        {"rates": measurements},
        goals=goals,
    )
