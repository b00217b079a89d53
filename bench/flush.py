"""Produce with `flush.messages=1`, where each record is fsynced before its response, from one and fifty connections."""

import contextlib
import time
from collections.abc import Sequence

from bench import frames
from bench.comparison import Log, Results, compare, summarize, times
from bench.connections import HEAD, cells
from bench.frames import Connection
from bench.loads import Measurements
from bench.peers import BrokerProcess, cpu_seconds
from bench.plot import Plot
from bench.report import Goal, Report, RunSize, by_broker, sync_disks
from bench.swarm import Swarm

SETTINGS = {"log.flush.interval.messages": "1"}
CONNECTIONS = 50
COUNTS = (1, CONNECTIONS)
RATE_MIN = 3.0


def measure_round(broker: BrokerProcess, swarm: Swarm, topic_id: bytes, seconds: float) -> Measurements:
    before = cpu_seconds(broker.pid)
    measurements = swarm.produce(frames.produce(topic_id, frames.batch(1, 100)), 1, seconds)
    measurements["cpu_us"] = (cpu_seconds(broker.pid) - before) / measurements.pop("requests") * 1e6
    return measurements


def measure(brokers: Sequence[BrokerProcess], topics: dict[str, bytes], count: int, run_size: RunSize) -> Results:
    with contextlib.ExitStack() as stack:
        swarms = {broker.name: stack.enter_context(Swarm(broker.port, count)) for broker in brokers}
        for broker in brokers:
            measure_round(broker, swarms[broker.name], topics[broker.name], run_size.warm_seconds / 2)
        sync_disks()
        runs: dict[str, list[Measurements]] = {broker.name: [] for broker in brokers}
        for _ in range(run_size.rounds):
            for broker in brokers:
                runs[broker.name].append(
                    measure_round(broker, swarms[broker.name], topics[broker.name], run_size.round_seconds)
                )
    return {name: summarize(rounds, "per_second") for name, rounds in runs.items()}


def run(broker_types: Sequence[type[BrokerProcess]], run_size: RunSize, log: Log) -> Report:
    with contextlib.ExitStack() as stack:
        brokers = [stack.enter_context(broker_type(settings=SETTINGS)) for broker_type in broker_types]
        topics = {}
        for broker in brokers:
            connection = stack.enter_context(contextlib.closing(Connection(broker.port)))
            topics[broker.name] = frames.create_topic(connection, f"bench-{time.time_ns()}")
        results = {}
        for count in COUNTS:
            results[count] = measure(brokers, topics, count, run_size)
            parts = (
                f"{name} {one['per_second']:,.0f} req/s, p99 {one['p99_us']:,.0f} µs"
                for name, one in results[count].items()
            )
            log(f"flush.messages=1, {count} connection{'s' if count > 1 else ''}: {'; '.join(parts)}")
    return report(results, run_size)


def report(results: dict[int, Results], run_size: RunSize) -> Report:
    labels = {
        count: f"Produce 170 B, flush.messages=1, {count} connection{'s' if count > 1 else ''}" for count in COUNTS
    }
    summary = []
    for count, one in results.items():
        rates = [f"{one[name]['per_second']:,.0f} req/s" if name in one else "–" for name in ("kafka", "ottla")]
        summary.append(
            [
                labels[count],
                *rates,
                f"{compare(one, 'per_second')}, p99 {compare(one, 'p99_us')}, CPU {compare(one, 'cpu_us')}",
            ]
        )
    plotted = {name: [results[count][name]["per_second"] for count in COUNTS] for name in results[CONNECTIONS]}
    return Report(
        "Fsync before each response",
        HEAD,
        [cells(count, one) for count, one in results.items()],
        "Produce 170 B, acks=1, one in flight on each connection, all to one partition with `flush.messages=1`, so "
        f"that each record is on the disk before its response. Medians of {run_size.rounds} rounds of "
        f"{run_size.round_seconds:g} s, alternating.",
        {str(count): one for count, one in results.items()},
        summary,
        [Goal(labels[CONNECTIONS], times(results[CONNECTIONS], "per_second"), RATE_MIN, at_most=False)],
        Plot("bars", "Produce, flush.messages=1", "req/s", [f"{count}" for count in COUNTS], by_broker(plotted)),
    )
