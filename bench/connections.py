"""One to a thousand connections: memory of idle ones, throughput of active ones, and fairness between them."""

import time
from collections.abc import Sequence

from bench import frames
from bench.comparison import Log, Results, Target, compare, shown, summarize
from bench.frames import Connection
from bench.loads import Measurements
from bench.peers import cpu_seconds, resident_bytes
from bench.plot import Plot
from bench.report import KAFKA, TITLES, Goal, Report, RunSize, by_broker, row, sync_disks
from bench.swarm import Swarm

COUNTS = (1, 10, 100, 1000)
MANY = COUNTS[-1]
IN_FLIGHT = 5
IDLE_MB_MAX = 60.0
FAIRNESS_MIN = 1 / 3
IDLE_SECONDS = 3.0
DETAILS = "p50 / p99 / CPU, µs; fairness"
HEAD = ("connections", KAFKA, DETAILS, "Ottla", DETAILS, "rate", "p99", "CPU")


def idle_memory(target: Target, run_size: RunSize) -> float:
    """Return the memory, in MB, of a thousand connections that are idle after one ApiVersions request."""
    Swarm(target.port, 1).close()  # excludes what a broker loads for its first connection
    time.sleep(min(IDLE_SECONDS, run_size.idle_seconds))
    before = resident_bytes(target.pid)
    with Swarm(target.port, MANY):
        time.sleep(min(IDLE_SECONDS, run_size.idle_seconds))
        return (resident_bytes(target.pid) - before) / 1e6


def measure_round(target: Target, swarm: Swarm, topic_id: bytes, seconds: float) -> Measurements:
    before = cpu_seconds(target.pid)
    measurements = swarm.produce(frames.produce(topic_id, frames.batch(1, 100)), IN_FLIGHT, seconds)
    measurements["cpu_us"] = (cpu_seconds(target.pid) - before) / measurements.pop("requests") * 1e6
    return measurements


def active(targets: Sequence[Target], topics: dict[str, bytes], count: int, run_size: RunSize) -> Results:
    """Measure Produce in alternating rounds, with `count` connections open to each broker throughout."""
    seconds = run_size.swarm_seconds * (2 if count == MANY else 1)
    swarms: dict[str, Swarm] = {}
    runs: dict[str, list[Measurements]] = {target.name: [] for target in targets}
    try:
        for target in targets:
            swarms[target.name] = Swarm(target.port, count)
            measure_round(target, swarms[target.name], topics[target.name], run_size.warm_seconds)
        sync_disks()
        for _ in range(run_size.rounds):
            for target in targets:
                runs[target.name].append(measure_round(target, swarms[target.name], topics[target.name], seconds))
    finally:
        for swarm in swarms.values():
            swarm.close()
    return {name: summarize(rounds, "per_second") for name, rounds in runs.items()}


def run(targets: Sequence[Target], run_size: RunSize, log: Log) -> Report:
    idle = {target.name: idle_memory(target, run_size) for target in targets}
    log(f"{MANY:,} idle connections: " + "; ".join(f"{name} {grown:.1f} MB" for name, grown in idle.items()))
    name = f"bench-{time.time_ns()}"
    connections = {target.name: Connection(target.port) for target in targets}
    topics = {target.name: frames.create_topic(connections[target.name], name) for target in targets}
    results = {}
    for count in COUNTS:
        results[count] = active(targets, topics, count, run_size)
        parts = (
            f"{name} {one['per_second']:,.0f} req/s, p99 {one['p99_us']:,.0f} µs, CPU {one['cpu_us']:,.0f} µs, "
            f"fairness {one['fairness']:.2f}"
            for name, one in results[count].items()
        )
        log(f"{count:,} connection{'s' if count > 1 else ''}: {'; '.join(parts)}")
    for connection in connections.values():
        frames.delete_topic(connection, name)
        connection.close()
    return report(idle, results, run_size)


def report(idle: dict[str, float], results: dict[int, Results], run_size: RunSize) -> Report:
    rows = [cells(count, one) for count, one in results.items()]
    idle_row = row(f"Memory of {MANY:,} idle connections", idle, ".1f", " MB")
    fairness = {name: one["fairness"] for name, one in results[MANY].items()}
    fairness_row = [
        f"Fairness of {MANY:,} connections: slowest / mean",
        *(f"{fairness[name]:.2f}" if name in fairness else "–" for name in TITLES),
        "",
    ]
    rates = {name: [results[count][name]["per_second"] for count in COUNTS] for name in fairness}
    note = (
        f"Produce 170 B, {IN_FLIGHT} in flight on each connection, all to one partition, from one process; medians of "
        f"{run_size.rounds} rounds of {run_size.swarm_seconds:g} s (twice that for {MANY:,}), alternating, after "
        f"{run_size.warm_seconds:g} s to warm up. Fairness: responses of the slowest connection / mean of all. "
        f"{MANY:,} idle connections, each after one ApiVersions, take {idle_row[1]} of resident memory in {KAFKA}, "
        f"{idle_row[2]} in Ottla."
    )
    briefs = []
    for count, each in results.items():
        label = f"Produce 170 B, {count:,} connection{'s' if count > 1 else ''}"
        briefs.append(row(label, {name: one["per_second"] for name, one in each.items()}, ",.0f", " req/s"))
        briefs[-1][-1] += f", p99 {compare(each, 'p99_us')}, CPU {compare(each, 'cpu_us')}"
    return Report(
        "Many connections",
        HEAD,
        rows,
        note,
        {"idle_mb": idle, "active": {str(count): one for count, one in results.items()}},
        [*briefs, fairness_row, idle_row],
        [
            Goal(f"Memory of {MANY:,} idle connections on top of idle", idle.get("ottla"), IDLE_MB_MAX, unit=" MB"),
            Goal(
                f"Fairness of {MANY:,} active connections: slowest / mean",
                fairness.get("ottla"),
                FAIRNESS_MIN,
                at_most=False,
            ),
        ],
        Plot(
            "lines",
            "Produce 170 B on many connections",
            "req/s",
            [f"{count:,}" for count in COUNTS],
            by_broker(rates),
            "connections",
        ),
    )


def cells(count: int, results: Results) -> list[str]:
    line = [f"{count:,}"]
    for name in TITLES:
        if name in results:
            one = results[name]
            low, high = one["spread"]
            line.append(f"{one['per_second']:,.0f} req/s ({low:,.0f}–{high:,.0f})")
            line.append(
                " / ".join(shown(one, key) for key in ("p50_us", "p99_us", "cpu_us")) + f"; {one['fairness']:.2f}"
            )
        else:
            line += ["–", "–"]
    return [*line, *(compare(results, key) for key in ("per_second", "p99_us", "cpu_us"))]
