"""Kafka's ConsumerPerformance and EndToEndLatency: a Java consumer at full speed, and with one record at a time."""

import re
import subprocess
import time
from collections.abc import Sequence

from bench import frames
from bench.comparison import Log, Results, times
from bench.frames import BrokerError, Connection
from bench.loads import Measurements, fill, median_measurements
from bench.peers import SERVER_FLAGS, BrokerProcess, cpu_seconds, kafka_tool_command
from bench.plot import Plot
from bench.report import HEAD, Goal, Report, RunSize, by_broker, rows_of, sync_disks

RECORDS_PER_BATCH, RECORD_SIZE = 150, 100
TOOL_SECONDS_MAX = 300
READ_RATE_MIN, LATENCY_MAX = 1.1, 1.0
AVERAGE = re.compile(r"Avg latency: ([\d.]+) ms")
PERCENTILES = re.compile(r"Percentiles: 50th = (\d+), 99th = (\d+)")


def tool(broker: BrokerProcess, name: str, *arguments: str) -> str:
    command = kafka_tool_command(f"org.apache.kafka.tools.{name}", *arguments, flags=SERVER_FLAGS)
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=TOOL_SECONDS_MAX, stdin=subprocess.DEVNULL
    )
    if done.returncode or "Exception" in done.stdout + done.stderr:
        raise BrokerError(f"{name} against {broker.name}:\n{done.stdout[-1500:]}{done.stderr[-1500:]}")
    return done.stdout


def consume(broker: BrokerProcess, topic: str, records: int) -> Measurements:
    """Read the topic from its start in a new group. Return the rate of fetching, without the rebalance."""
    before = cpu_seconds(broker.pid)
    output = tool(
        broker, "ConsumerPerformance", "--bootstrap-server", broker.bootstrap, "--topic", topic,
        "--num-records", str(records), "--group", f"reads-{time.time_ns()}", "--hide-header", "--timeout", "60000",
    )  # fmt: skip
    cpu = cpu_seconds(broker.pid) - before
    cells = [cell.strip() for cell in output.strip().splitlines()[-1].split(",")]
    if int(float(cells[4])) < records:
        raise BrokerError(f"{broker.name} gave {cells[4]} of {records} records")
    return {"per_second": float(cells[9]), "cpu_us": cpu / records * 1e6}


def latency(broker: BrokerProcess, topic: str, records: int) -> Measurements:
    output = tool(broker, "EndToEndLatency", broker.bootstrap, topic, str(records), "1", str(RECORD_SIZE))
    average, percentiles = AVERAGE.search(output), PERCENTILES.search(output)
    if average is None or percentiles is None:
        raise BrokerError(f"EndToEndLatency against {broker.name}:\n{output[-500:]}")
    return {"average_ms": float(average[1]), "p50_ms": float(percentiles[1]), "p99_ms": float(percentiles[2])}


def run(brokers: Sequence[BrokerProcess], run_size: RunSize, log: Log) -> Report:
    stamp = time.time_ns()
    values = [b"x" * RECORD_SIZE] * RECORDS_PER_BATCH
    records = run_size.read_records // RECORDS_PER_BATCH * RECORDS_PER_BATCH
    reading: dict[str, list[Measurements]] = {broker.name: [] for broker in brokers}
    waiting: dict[str, list[Measurements]] = {broker.name: [] for broker in brokers}
    for broker in brokers:
        connection = Connection(broker.port)
        topic_id = frames.create_topic(connection, f"read-{stamp}")
        frames.create_topic(connection, f"echo-{stamp}")
        fill(connection, frames.produce(topic_id, frames.batch_of(values)), records // RECORDS_PER_BATCH)
        connection.close()
        consume(broker, f"read-{stamp}", records)
    sync_disks()
    for _ in range(run_size.tool_rounds):
        for broker in brokers:
            reading[broker.name].append(consume(broker, f"read-{stamp}", records))
        for broker in brokers:
            waiting[broker.name].append(latency(broker, f"echo-{stamp}", run_size.echoed_records))
    medians: Results = {
        name: median_measurements(reading[name]) | median_measurements(waiting[name]) for name in reading
    }
    for name, one in medians.items():
        reads, average, p99 = one["per_second"], one["average_ms"], one["p99_ms"]
        log(f"{name}: reads {reads:,.0f} records/s; end to end {average:.3f} ms on average, p99 {p99:.0f} ms")
    return report(medians, {"reading": reading, "waiting": waiting}, run_size)


def report(medians: Results, runs: dict[str, dict[str, list[Measurements]]], run_size: RunSize) -> Report:
    columns = (
        ("ConsumerPerformance, records/s", "per_second", ",.0f", ""),
        ("broker CPU per record", "cpu_us", ".2f", " µs"),
        ("EndToEndLatency, average", "average_ms", ".3f", " ms"),
        ("EndToEndLatency, p50", "p50_ms", ".0f", " ms"),
        ("EndToEndLatency, p99", "p99_ms", ".0f", " ms"),
    )
    rows = rows_of(columns, medians)
    note = (
        f"`ConsumerPerformance` reads {run_size.read_records:,} records of {RECORD_SIZE} bytes of one partition in a "
        f"new group; its rate is the rate of fetching. `EndToEndLatency` sends {run_size.echoed_records:,} records of "
        f"{RECORD_SIZE} bytes, each after the one before has been read, acks=1; percentiles are in whole milliseconds. "
        f"Medians of {run_size.tool_rounds}, alternating."
    )
    return Report(
        "Kafka's consumer tools",
        HEAD,
        rows,
        note,
        {"medians": medians, "runs": runs},
        [rows[0], rows[2]],
        [
            Goal(
                "ConsumerPerformance: rate relative to Kafka",
                times(medians, "per_second"),
                READ_RATE_MIN,
                at_most=False,
            ),
            Goal("EndToEndLatency: average relative to Kafka", times(medians, "average_ms"), LATENCY_MAX),
            Goal("EndToEndLatency: p99 relative to Kafka", times(medians, "p99_ms"), LATENCY_MAX),
        ],
        Plot(
            "bars",
            "EndToEndLatency",
            "ms",
            ["average"],
            by_broker({name: [one["average_ms"]] for name, one in medians.items()}),
        ),
    )
