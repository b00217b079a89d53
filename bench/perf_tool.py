"""Kafka's own ProducerPerformance: a full Java producer, idempotent, acks=all, records of 100 bytes to four partitions."""

import re
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Any

from bench.frames import BrokerRefused, Connection, create_topic, delete_topic
from bench.peers import SERVER_FLAGS, BrokerProcess, cpu_seconds, kafka_tool_command
from bench.report import KAFKA, Effort, Report, ratio, settle

PARTITIONS = 4
RECORD_SIZE = 100
TOOL_SECONDS_MAX = 600
LAST_LINE = re.compile(
    r"(?P<records>\d+) records sent, (?P<rate>[\d.]+) records/sec \([\d.]+ MB/sec\), (?P<average>[\d.]+) ms avg latency, "
    r"[\d.]+ ms max latency, (?P<p50>\d+) ms 50th, (?P<p95>\d+) ms 95th, (?P<p99>\d+) ms 99th"
)


def produce(broker: BrokerProcess, records: int) -> dict[str, float]:
    """Let the tool send that many records to a new topic; its rate and latency, and what it cost the broker."""
    connection, topic = Connection(broker.port), f"perf-{time.time_ns()}"
    create_topic(connection, topic, partitions=PARTITIONS)
    before = cpu_seconds(broker.pid)
    command = kafka_tool_command(
        "org.apache.kafka.tools.ProducerPerformance", "--bootstrap-server", broker.bootstrap, "--topic", topic,
        "--num-records", str(records), "--record-size", str(RECORD_SIZE), "--throughput", "-1", "--command-property", "acks=all",
        flags=SERVER_FLAGS,
    )  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TOOL_SECONDS_MAX, stdin=subprocess.DEVNULL)
    totals = [found for found in LAST_LINE.finditer(done.stdout) if int(found["records"]) == records]
    if done.returncode or not totals or "Exception" in done.stderr + done.stdout:
        raise BrokerRefused(f"ProducerPerformance against {broker.name}:\n{done.stdout[-1500:]}{done.stderr[-1500:]}")
    cpu = cpu_seconds(broker.pid) - before
    delete_topic(connection, topic)
    connection.close()
    return {
        "records_per_second": float(totals[-1]["rate"]),
        "p50_ms": float(totals[-1]["p50"]),
        "p99_ms": float(totals[-1]["p99"]),
        "cpu_us_per_record": cpu / records * 1e6,
    }


def run(brokers: Sequence[BrokerProcess], effort: Effort, say: Callable[[str], None]) -> Report:
    runs: dict[str, list[dict[str, float]]] = {broker.name: [] for broker in brokers}
    for broker in brokers:
        produce(broker, effort.perf_records)  # to warm the broker
    for _ in range(effort.perf_rounds):
        for broker in brokers:
            settle()
            runs[broker.name].append(produce(broker, effort.perf_records))
    medians = {name: {key: statistics.median(one[key] for one in rounds) for key in rounds[0]} for name, rounds in runs.items()}
    for name, figures in medians.items():
        say(f"ProducerPerformance: {name} {figures['records_per_second']:,.0f} records/s, CPU {figures['cpu_us_per_record']:.2f} µs/record")
    return report(runs, medians, effort)


def report(runs: dict[str, list[dict[str, float]]], medians: dict[str, dict[str, float]], effort: Effort) -> Report:
    kinds = (("records/s", "records_per_second", ",.0f"), ("p50, ms", "p50_ms", ".0f"), ("p99, ms", "p99_ms", ".0f"),
             ("broker's CPU per record, µs", "cpu_us_per_record", ".2f"))  # fmt: skip
    theirs: dict[str, Any] = medians.get("kafka", {})
    ours: dict[str, Any] = medians.get("ottla", {})
    rows = [
        [label, *(format(one[key], shape) if one else "–" for one in (theirs, ours)), ratio(ours.get(key), theirs.get(key))]
        for label, key, shape in kinds
    ]
    rates = {name: [one["records_per_second"] for one in rounds] for name, rounds in runs.items()}
    spread = [f"{min(rates[name]):,.0f}–{max(rates[name]):,.0f}" if name in rates else "–" for name in ("kafka", "ottla")]
    rows.insert(1, ["lowest–highest", *spread, ""])
    note = (
        f"`ProducerPerformance`, {effort.perf_records:,} records of {RECORD_SIZE} bytes, acks=all, idempotent, {PARTITIONS} partitions; "
        f"medians of {effort.perf_rounds}, alternating, after one run each to warm up. The tool, a JVM, takes its share of the cores."
    )
    cpu = ratio(ours.get("cpu_us_per_record"), theirs.get("cpu_us_per_record"))
    brief = ["Java producer, acks=all, 100 B records", *(f"{cell} records/s" for cell in rows[0][1:3]), f"{rows[0][3]}, CPU {cpu}"]
    return Report("Kafka's ProducerPerformance", ["", KAFKA, "Ottla", "Ottla / Kafka"], rows, note, {"runs": runs}, [brief])
