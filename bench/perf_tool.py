"""Kafka's ProducerPerformance: a Java producer, idempotent, acks=all, records of 100 bytes to four partitions.

At full speed, and at a fixed rate, where latency is more meaningful.
"""

import re
import subprocess
import time
from collections.abc import Sequence

from bench.comparison import Log, compare, times
from bench.frames import BrokerError, Connection, create_topic, delete_topic
from bench.loads import Measurements, median_measurements
from bench.peers import SERVER_FLAGS, BrokerProcess, cpu_seconds, kafka_tool_command
from bench.plot import Plot
from bench.report import HEAD, KAFKA, TITLES, Goal, Report, RunSize, by_broker, row, sync_disks

PARTITIONS = 4
RECORD_SIZE = 100
RATE = 100_000
TOOL_SECONDS_MAX = 600
LAST_LINE = re.compile(
    r"(?P<records>\d+) (?P<steady>steady state )?records sent, (?P<rate>[\d.]+) records/sec \([\d.]+ MB/sec\), "
    r"(?P<average>[\d.]+) ms avg latency, [\d.]+ ms max latency, "
    r"(?P<p50>\d+) ms 50th, (?P<p95>\d+) ms 95th, (?P<p99>\d+) ms 99th"
)
Rounds = dict[str, list[Measurements]]
Medians = dict[str, Measurements]


def produce(broker: BrokerProcess, records: int, *, rate: int = -1) -> Measurements:
    """Run the tool with a new topic. Return its rate and latency, and the broker's CPU per record.

    At a fixed rate, the latency of the second half is reported separately: in the first seconds the tool's JVM compiles
    its code.
    """
    connection, topic = Connection(broker.port), f"perf-{time.time_ns()}"
    create_topic(connection, topic, partitions=PARTITIONS)
    before = cpu_seconds(broker.pid)
    warming = ("--warmup-records", str(records // 2)) if rate > 0 else ()
    command = kafka_tool_command(
        "org.apache.kafka.tools.ProducerPerformance", "--bootstrap-server", broker.bootstrap, "--topic", topic,
        "--num-records", str(records), "--record-size", str(RECORD_SIZE), "--throughput", str(rate), *warming,
        "--command-property", "acks=all", flags=SERVER_FLAGS,
    )  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=TOOL_SECONDS_MAX, stdin=subprocess.DEVNULL
    )
    cpu = cpu_seconds(broker.pid) - before
    lines = list(LAST_LINE.finditer(done.stdout))
    complete = [found for found in lines if int(found["records"]) == records and not found["steady"]]
    steady = [found for found in lines if found["steady"]]
    if done.returncode or not complete or (warming and not steady) or "Exception" in done.stderr + done.stdout:
        raise BrokerError(f"ProducerPerformance against {broker.name}:\n{done.stdout[-1500:]}{done.stderr[-1500:]}")
    delete_topic(connection, topic)
    connection.close()
    return {
        "records_per_second": float(complete[-1]["rate"]),
        "p50_ms": float(complete[-1]["p50"]),
        "p99_ms": float(complete[-1]["p99"]),
        "cpu_us_per_record": cpu / records * 1e6,
    } | ({"steady_p99_ms": float(steady[-1]["p99"])} if steady else {})


def run(brokers: Sequence[BrokerProcess], run_size: RunSize, log: Log) -> Report:
    unlimited: Rounds = {broker.name: [] for broker in brokers}
    limited: Rounds = {broker.name: [] for broker in brokers}
    for broker in brokers if run_size.perf_warm else ():
        produce(broker, run_size.perf_records)
    for _ in range(run_size.perf_rounds):
        for broker in brokers:
            sync_disks()
            unlimited[broker.name].append(produce(broker, run_size.perf_records))
    for _ in range(run_size.perf_rounds):
        for broker in brokers:
            sync_disks()
            limited[broker.name].append(produce(broker, run_size.perf_rate_records, rate=RATE))
    for name, one in medians(unlimited).items():
        at_rate = medians(limited)[name]
        log(
            f"ProducerPerformance: {name} {one['records_per_second']:,.0f} records/s, CPU "
            f"{one['cpu_us_per_record']:.2f} µs/record; at {RATE:,}/s p99 {at_rate['p99_ms']:.0f} ms, "
            f"{at_rate['steady_p99_ms']:.0f} ms in the second half"
        )
    return report(unlimited, limited, run_size)


def medians(runs: Rounds) -> Medians:
    return {name: median_measurements(rounds) for name, rounds in runs.items()}


def report(unlimited: Rounds, limited: Rounds, run_size: RunSize) -> Report:
    fast, steady = medians(unlimited), medians(limited)

    def line(label: str, measurements: Medians, key: str, shape: str) -> list[str]:
        return row(label, {name: one[key] for name, one in measurements.items()}, shape)

    rates = {name: [one["records_per_second"] for one in rounds] for name, rounds in unlimited.items()}
    spread = [f"{min(rates[name]):,.0f}–{max(rates[name]):,.0f}" if name in rates else "–" for name in TITLES]
    rows = [
        line("records/s", fast, "records_per_second", ",.0f"),
        ["lowest–highest", *spread, ""],
        line("p50, ms", fast, "p50_ms", ".0f"),
        line("p99, ms", fast, "p99_ms", ".0f"),
        line("broker CPU per record, µs", fast, "cpu_us_per_record", ".2f"),
        line(f"p99 at {RATE:,} records/s, ms", steady, "p99_ms", ".0f"),
        line("p99 in the second half, ms", steady, "steady_p99_ms", ".0f"),
        line("broker CPU per record at that rate, µs", steady, "cpu_us_per_record", ".2f"),
    ]
    note = (
        f"`ProducerPerformance`, {run_size.perf_records:,} records of {RECORD_SIZE} bytes unlimited, "
        f"{run_size.perf_rate_records:,} at a fixed rate, acks=all, idempotent, {PARTITIONS} partitions; medians of "
        f"{run_size.perf_rounds}, alternating{', after one run each to warm up' if run_size.perf_warm else ''}. The "
        "tool, a JVM, uses the same cores."
    )
    plotted = by_broker({name: [one["records_per_second"]] for name, one in fast.items()})
    cpu = compare(fast, "cpu_us_per_record")
    return Report(
        "Kafka's ProducerPerformance",
        HEAD,
        rows,
        note,
        {"runs": unlimited, "paced": limited},
        [
            [
                "Java producer, acks=all, 100 B records",
                *(f"{cell} records/s" for cell in rows[0][1:3]),
                f"{rows[0][3]}, CPU {cpu}",
            ],
            [f"Java producer at {RATE:,} records/s, p99", *(f"{cell} ms" for cell in rows[5][1:3]), rows[5][3]],
        ],
        [
            Goal(f"records/s relative to {KAFKA}", times(fast, "records_per_second"), 1.1, at_most=False),
            Goal(f"CPU per record relative to {KAFKA}", times(fast, "cpu_us_per_record"), 0.6),
            Goal(f"p99 at {RATE:,} records/s relative to {KAFKA}", times(steady, "p99_ms"), 1.0),
        ],
        Plot("bars", "ProducerPerformance, acks=all, 100 B", "records/s", ["unlimited"], plotted),
    )
