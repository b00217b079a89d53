"""Repeated large Metadata responses, as when clients refresh, beside a producer, whose latency should not change."""

import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

from bench import frames
from bench.comparison import Log, Results, Target
from bench.frames import BrokerError, Connection
from bench.load_process import start_load_process
from bench.loads import Measurements, median_measurements, percentile, produce_load, request_at_rate
from bench.peers import cpu_seconds
from bench.plot import Plot
from bench.report import HEAD, TITLES, Goal, Report, RunSize, by_broker, quotient, rows_of, sync_disks

PARTITIONS = 10
PER_SECOND = 10
P99_MS_MAX = 5.0
TIMES_ALONE_MAX = 1.5
CPU_ANSWERS = 100
ALONE_SHARE = 0.5
"""Duration of the measurement alone, relative to that beside Metadata."""


def create(target: Target, connection: Connection, stamp: int, run_size: RunSize) -> None:
    """Create the topics, and wait until all of them are listed."""
    frames.create_topics(
        connection, [f"listed-{stamp}-{number}" for number in range(run_size.listed_topics)], partitions=PARTITIONS
    )
    deadline = time.monotonic() + frames.LEADER_SECONDS_MAX
    while frames.metadata_topic_count(connection.request(frames.metadata_of_all())) < run_size.listed_topics:
        if time.monotonic() > deadline:
            raise BrokerError(f"{target.name} does not list all topics")
        time.sleep(0.1)


def one_round(
    target: Target, topic_id: bytes, run_size: RunSize, pool: ProcessPoolExecutor
) -> tuple[Measurements, list[float]]:
    produce = produce_load(frames.batch(1, 100), 1)
    alone = produce(target.port, topic_id, run_size.listing_seconds * ALONE_SHARE)
    future = pool.submit(request_at_rate, target.port, frames.metadata_of_all(), PER_SECOND, run_size.listing_seconds)
    beside = produce(target.port, topic_id, run_size.listing_seconds)
    latencies = future.result()
    keys = ("per_second", "p50_us", "p99_us")
    measurements = {f"alone_{key}": alone[key] for key in keys} | {f"beside_{key}": beside[key] for key in keys}
    return measurements, latencies


def cpu_of_one(target: Target) -> float:
    """Return the broker's CPU time per Metadata request in ms, averaged over many requests."""
    connection, before = Connection(target.port), cpu_seconds(target.pid)
    for _ in range(CPU_ANSWERS):
        connection.request(frames.metadata_of_all())
    connection.close()
    return (cpu_seconds(target.pid) - before) / CPU_ANSWERS * 1e3


def run(targets: Sequence[Target], run_size: RunSize, log: Log) -> Report:
    stamp = time.time_ns()
    connections = {target.name: Connection(target.port) for target in targets}
    topics = {}
    for target in targets:
        started = time.monotonic()
        create(target, connections[target.name], stamp, run_size)
        topics[target.name] = frames.create_topic(connections[target.name], f"beside-{stamp}")
        log(
            f"{target.name}: {run_size.listed_topics:,} topics of {PARTITIONS} partitions created in "
            f"{time.monotonic() - started:.1f} s"
        )
        request_at_rate(target.port, frames.metadata_of_all(), 4 * PER_SECOND, run_size.warm_seconds)
        produce_load(frames.batch(1, 100), 1)(target.port, topics[target.name], run_size.warm_seconds)
    sync_disks()
    time.sleep(run_size.idle_seconds)  # the brokers finish the maintenance of the new partitions
    runs: dict[str, list[Measurements]] = {target.name: [] for target in targets}
    metadata_latencies: dict[str, list[float]] = {target.name: [] for target in targets}
    with start_load_process() as pool:
        for _ in range(run_size.listing_rounds):
            for target in targets:
                measurements, latencies = one_round(target, topics[target.name], run_size, pool)
                runs[target.name].append(measurements | {"answer_cpu_ms": cpu_of_one(target)})
                metadata_latencies[target.name] = sorted(metadata_latencies[target.name] + latencies)
    for connection in connections.values():
        connection.close()
    medians: Results = {name: median_measurements(rounds) for name, rounds in runs.items()}
    for name, latencies in metadata_latencies.items():
        medians[name] |= {
            "answer_p50_ms": percentile(latencies, 0.5) / 1e3,
            "answer_p99_ms": percentile(latencies, 0.99) / 1e3,
        }
        one = medians[name]
        log(
            f"{name}: Metadata p99 {one['answer_p99_ms']:.1f} ms; Produce p99 {one['alone_p99_us']:,.0f} µs alone, "
            f"{one['beside_p99_us']:,.0f} µs beside it"
        )
    return report(runs, medians, run_size)


def report(runs: dict[str, list[Measurements]], medians: Results, run_size: RunSize) -> Report:
    columns = (
        ("Metadata p50", "answer_p50_ms", ",.2f", " ms"),
        ("Metadata p99", "answer_p99_ms", ",.2f", " ms"),
        ("Metadata, broker CPU", "answer_cpu_ms", ",.2f", " ms"),
        ("Produce alone", "alone_per_second", ",.0f", " req/s"),
        ("Produce beside Metadata", "beside_per_second", ",.0f", " req/s"),
        ("Produce p99 alone", "alone_p99_us", ",.0f", " µs"),
        ("Produce p99 beside Metadata", "beside_p99_us", ",.0f", " µs"),
    )
    rows = rows_of(columns, medians)
    topics = f"{run_size.listed_topics:,} topics × {PARTITIONS} partitions"
    grown = {name: quotient(one["beside_p99_us"], one["alone_p99_us"]) for name, one in medians.items()}
    ours = medians.get("ottla", {})
    note = (
        f"Metadata of all topics ({topics}), {PER_SECOND} times a second, from another process, and Produce 170 B, 1 "
        f"in flight, beside it: {run_size.listing_rounds} rounds of {run_size.listing_seconds:g} s, alternating; "
        "latencies of Metadata over all rounds, medians of Produce. CPU is per Metadata request, over many sequential "
        "requests without other load."
    )
    plotted = {
        name: [one["answer_p99_ms"], one["alone_p99_us"] / 1e3, one["beside_p99_us"] / 1e3]
        for name, one in medians.items()
    }
    return Report(
        "Metadata of many partitions",
        HEAD,
        rows,
        note,
        {"runs": runs, "medians": medians},
        [
            [f"Metadata of {topics}, p99", *rows[1][1:]],
            [
                f"Produce p99 beside {PER_SECOND} such requests/s / alone",
                *(f"{grown[name]:.2f}×" if grown.get(name) is not None else "–" for name in TITLES),
                "",
            ],
        ],
        [
            Goal(f"Metadata of {topics}, p99", ours.get("answer_p99_ms"), P99_MS_MAX, unit=" ms"),
            Goal("Produce 170 B, 1 in flight: p99 beside Metadata / alone", grown.get("ottla"), TIMES_ALONE_MAX),
        ],
        Plot("bars", f"p99, {topics}", "ms", ["Metadata", "Produce alone", "Produce beside"], by_broker(plotted)),
    )
