"""`python -m bench.spark_write [--quick]`: batch writes from Spark, the data source `ottla` beside Spark's own Kafka connector, to the same
broker in one run: `local[2]`, rows from memory, rounds that alternate, medians; also with headers, with zstd and with values of 1 kB.
"""

import argparse
import contextlib
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.peers import ApacheKafka, BrokerProcess, OttlaProcess, PeerUnavailable, kafka_class_path
from bench.report import RESULTS, Goal, Report, measured_table, quotient, ratio, write
from bench.spark_environments import TITLES, Job, SparkUnavailable

PARTITIONS = 2
ROUNDS, ROUNDS_QUICK = 5, 2
RECORDS, RECORDS_QUICK = 4_000_000, 300_000
WARM_ROUNDS = 1
BAR = 1.5
JOB = Path(__file__).with_name("spark_write_job.py")


@dataclass(frozen=True, slots=True)
class Case:
    """What is written."""

    name: str
    value_bytes: int = 100
    has_headers: bool = False
    codec: str = "none"
    share: float = 1.0
    """Of the records: large ones are fewer."""


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


def measure(case: Case, broker: BrokerProcess, formats: Sequence[str], records: int, rounds: int,
            say: Callable[[str], None]) -> dict[str, float]:
    """Rows a second, by format."""
    count = int(records * case.share)
    arguments = [str(count), str(case.value_bytes), "headers" if case.has_headers else "plain"]
    seconds: dict[str, list[float]] = {name: [] for name in formats}
    with contextlib.ExitStack() as stack:
        jobs = [stack.enter_context(Job(name, JOB, arguments)) for name in formats]
        for number in range(WARM_ROUNDS + rounds):
            for job in jobs:
                topic = f"spark-write-{time.time_ns()}"
                create(broker.bootstrap, topic)
                options = {"kafka.bootstrap.servers": broker.bootstrap, "topic": topic, "kafka.compression.type": case.codec}
                took = job.ask(options=options)["seconds"]
                if number >= WARM_ROUNDS:
                    say(f"{broker.name}, {case.name}: {TITLES[job.format_name]}, {count / took:,.0f} rows/s")
                    seconds[job.format_name].append(took)
                remove(broker.bootstrap, topic)
    return {name: count / statistics.median(found) for name, found in seconds.items()}


def run(brokers: Sequence[BrokerProcess], formats: Sequence[str], records: int, rounds: int, say: Callable[[str], None]) -> Report:
    rows, goals, figures = [], [], {}
    for broker in brokers:
        for case in CASES:
            rates = measure(case, broker, formats, records, rounds, say)
            theirs = rates.get("kafka")
            figures[f"{broker.name}, {case.name}"] = rates
            rows.append([f"{case.name} ({broker.name})", f"{theirs:,.0f}" if theirs else "", f"{rates['ottla']:,.0f}",
                         ratio(rates["ottla"], theirs)])
            if case is CASES[0]:
                goals.append(Goal(f"Spark's batch write ({broker.name})", quotient(rates["ottla"], theirs), BAR, at_most=False))
    note = (f"{records:,} records (fewer where they are larger) to {PARTITIONS} partitions, local[2], rows from memory, medians of "
            f"{rounds} alternating rounds; the peer is PySpark 4.0.0 with spark-sql-kafka-0-10, each with its default configs.")
    return Report("Writing from Spark", ("rows/s", TITLES["kafka"], TITLES["ottla"], "ratio"), rows, note, {"rates": figures}, goals=goals)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer records and rounds, to see that it works")
    parser.add_argument("--alone", action="store_true", help="without Spark's connector")
    options, began = parser.parse_args(), time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {text}", flush=True)

    kinds: list[type[BrokerProcess]] = [OttlaProcess]
    try:
        kafka_class_path()
        kinds.insert(0, ApacheKafka)
    except PeerUnavailable as reason:
        say(f"Without Apache Kafka: {reason}")
    formats = ["ottla"] if options.alone else ["kafka", "ottla"]
    records, rounds = (RECORDS_QUICK, ROUNDS_QUICK) if options.quick else (RECORDS, ROUNDS)
    with contextlib.ExitStack() as stack:
        brokers = [stack.enter_context(kind()) for kind in kinds]
        try:
            report = run(brokers, formats, records, rounds, say)
        except SparkUnavailable as reason:
            raise SystemExit(f"{reason}") from None
    write("spark_write", report, RESULTS / "quick" if options.quick or options.alone else RESULTS)
    print(f"\n{measured_table(report.head, report.rows)}", flush=True)


if __name__ == "__main__":
    main()
