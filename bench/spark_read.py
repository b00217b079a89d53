"""Reading a topic with two partitions in Spark: the data source `ottla` compared with Spark's Kafka connector, in two
environments with warm `local[2]` sessions, in alternating rounds on the same topics of the same broker.
"""

import contextlib
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bench.fill_topic import fill
from bench.peers import BrokerProcess
from bench.report import Goal, Report, RunSize, quotient, ratio
from bench.spark_environments import TITLES, Job

JOB = "bench.spark_read_job"
ONE_ROW_PAUSE_SECONDS = 0.3
ONE_ROW_ROWS = 30
BATCH_MIN, AVAILABLE_MIN, ONE_ROW_MS_MAX = 1.5, 1.3, 150.0


@dataclass(frozen=True, slots=True)
class RecordType:
    """Size, share and encoding of the records of one measurement."""

    name: str
    size: int
    share: float = 1.0
    codec: str = "none"
    headers: bool = False


RECORD_TYPES = (
    RecordType("100 bytes", 100),
    RecordType("100 bytes, a header", 100, 0.5, headers=True),
    RecordType("100 bytes, zstd", 100, 0.5, codec="zstd"),
    RecordType("1 kB", 1000),
)


def records_of(record_type: RecordType, count: int) -> Iterator[dict[str, Any]]:
    """Yield records. Half of each value is the same in all records."""
    constant = b"x" * (record_type.size // 2)
    headers = [("trace", b"0123456789abcdef")] if record_type.headers else None
    for index in range(count):
        value = constant + b"%0*d" % (record_type.size - len(constant), index * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFF)
        yield {"value": value, "partition": index & 1, "headers": headers}


@contextlib.contextmanager
def slow_producer(bootstrap: str, topic: str) -> Iterator[None]:
    """Produce records one by one, so slowly that each gets its own micro-batch."""
    from confluent_kafka import Producer

    producer, ended = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0}), threading.Event()

    def work() -> None:
        while not ended.wait(ONE_ROW_PAUSE_SECONDS):
            producer.produce(topic, b"x" * 100, partition=0)
            producer.flush(10)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def run(brokers: Sequence[BrokerProcess], run_size: RunSize, log: Callable[[str], None]) -> Report:
    """Measure rows per second of both sources, alternating, on each broker."""
    measurements: dict[str, Any] = {}
    with contextlib.ExitStack() as stack:
        drivers = {name: stack.enter_context(Job(name, JOB, ())) for name in TITLES}
        for broker in brokers:
            for record_type in RECORD_TYPES:
                measurements[f"{record_type.name} ({broker.name})"] = measure_records(
                    broker, record_type, drivers, run_size, log
                )
            measurements[f"one row ({broker.name})"] = measure_one_row(broker, drivers, log)
    return _report(measurements)


def measure_records(
    broker: BrokerProcess,
    record_type: RecordType,
    drivers: dict[str, Job],
    run_size: RunSize,
    log: Callable[[str], None],
) -> Any:
    records = int(run_size.perf_records * 4 / 3 * record_type.share)
    topic = f"spark-{time.time_ns()}"
    fill(broker.bootstrap, topic, 2, records_of(record_type, records), **{"compression.type": record_type.codec})
    options = {
        "kafka.bootstrap.servers": broker.bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "includeHeaders": str(record_type.headers).lower(),
    }
    for driver in drivers.values():
        if driver.run(what="count", options=options)["rows"] != records:
            raise RuntimeError(f"{driver.format_name} does not read all records")
    found: dict[str, dict[str, float]] = {name: {} for name in drivers}
    for what in ("batch", "available"):
        rounds: dict[str, list[float]] = {name: [] for name in drivers}
        for number in range(run_size.perf_rounds + 1):
            for name, driver in drivers.items():
                rate = records / driver.run(what=what, options=options)["seconds"]
                if number:  # the first round is a warm-up
                    rounds[name].append(rate)
                    log(f"{broker.name}, {record_type.name}, {what}, {name}, round {number}: {rate:,.0f} rows/s")
        for name, rates in rounds.items():
            found[name][what] = statistics.median(rates)
    return found


def measure_one_row(
    broker: BrokerProcess, drivers: dict[str, Job], log: Callable[[str], None]
) -> dict[str, dict[str, float]]:
    from confluent_kafka.admin import AdminClient, NewTopic

    found = {}
    for name, driver in drivers.items():
        topic = f"spark-{time.time_ns()}"
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
        options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
        with slow_producer(broker.bootstrap, topic):
            times = driver.run(what="rows", options=options, rows=ONE_ROW_ROWS)["milliseconds"]
        found[name] = {"p50_ms": statistics.median(times[5:])}
        log(f"{broker.name}, one row, {name}: {found[name]['p50_ms']:.0f} ms")
    return found


def _report(measurements: dict[str, Any]) -> Report:
    rows, goals = [], []
    for label, found in measurements.items():
        ours, theirs = found["ottla"], found["kafka"]
        if "p50_ms" in ours:
            rows.append(
                [
                    label,
                    f"{theirs['p50_ms']:.0f} ms",
                    f"{ours['p50_ms']:.0f} ms",
                    ratio(ours["p50_ms"], theirs["p50_ms"]),
                ]
            )
            goals.append(Goal(f"micro-batch of {label}", ours["p50_ms"], ONE_ROW_MS_MAX, unit=" ms"))
            continue
        for what, least in (("batch", BATCH_MIN), ("available", AVAILABLE_MIN)):
            name = "batch read" if what == "batch" else "AvailableNow"
            rows.append(
                [f"{name}, {label}", f"{theirs[what]:,.0f}", f"{ours[what]:,.0f}", ratio(ours[what], theirs[what])]
            )
            goals.append(Goal(f"Spark, {name}, {label}", quotient(ours[what], theirs[what]), least, at_most=False))
    note = (
        "Rows per second into Spark's `noop`, two partitions, `local[2]`, medians after a warm-up round, alternating; "
        "PySpark 4.0 with its own connector beside PySpark 4.3 with `ottla`. One row: a micro-batch, with checkpoints "
        "by the file-system manager."
    )
    return Report(
        "Reading with Spark", ("", "Spark's connector", "ottla", "ratio"), rows, note, measurements, goals=goals
    )
