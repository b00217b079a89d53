"""Comparison of brokers under the same load: warm-up, alternating measurement rounds, and their table."""

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from bench import frames
from bench.frames import Connection
from bench.loads import Measurements, Run, fill, median_measurements
from bench.peers import cpu_seconds
from bench.plot import Plot
from bench.report import KAFKA, TITLES, Goal, Report, RunSize, by_broker, quotient, ratio, sync_disks

FILL_RECORDS = 35
"""Records in a batch of about 4 kB, which fetches read."""
UNITS = {"per_second": "req/s", "mb_per_second": "MB/s"}
Log = Callable[[str], None]
Results = dict[str, dict[str, Any]]
"""Measurements by broker name."""


class Target(Protocol):
    """A running broker."""

    @property
    def name(self) -> str: ...

    @property
    def port(self) -> int: ...

    @property
    def pid(self) -> int: ...


@dataclass(frozen=True, slots=True)
class RunningBroker:
    """A broker that was started elsewhere."""

    name: str
    port: int
    pid: int


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Required rate, p99 and CPU per request, as multiples of Kafka's."""

    rate: float | None = None
    p99: float | None = None
    cpu: float | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """A load. `unit` is the key of the compared measurement."""

    label: str
    run: Run
    unit: str = "per_second"
    reads: bool = False
    partitions: int = 1
    thresholds: Thresholds = Thresholds()


def measure_once(load: Load, target: Target, topic_id: bytes, seconds: float) -> Measurements:
    before = cpu_seconds(target.pid)
    measurements = load.run(target.port, topic_id, seconds)
    measurements["cpu_us"] = (cpu_seconds(target.pid) - before) / measurements.pop("requests") * 1e6
    return measurements


def measure(loads: Sequence[Load], targets: Sequence[Target], run_size: RunSize) -> dict[str, Results]:
    """Warm up each broker with each load, then measure in alternating rounds. Return medians and ranges by load
    label."""
    connections = {target.name: Connection(target.port) for target in targets}
    names = {load.label: f"bench-{time.time_ns()}" for load in loads}
    topics: dict[tuple[str, str], bytes] = {}
    for load, target in itertools.product(loads, targets):
        connection = connections[target.name]
        topic_id = frames.create_topic(connection, names[load.label], partitions=load.partitions)
        topics[load.label, target.name] = topic_id
        if load.reads:
            fill(connection, frames.produce(topic_id, frames.batch(FILL_RECORDS, 100)), run_size.fill_requests)
        load.run(target.port, topic_id, run_size.warm_seconds)
    sync_disks()
    runs: dict[tuple[str, str], list[Measurements]] = {pair: [] for pair in topics}
    for _ in range(run_size.rounds):
        for load, target in itertools.product(loads, targets):
            pair = load.label, target.name
            runs[pair].append(measure_once(load, target, topics[pair], run_size.round_seconds))
    for connection in connections.values():
        for name in names.values():
            frames.delete_topic(connection, name)
        connection.close()
    sync_disks()
    return {
        load.label: {target.name: summarize(runs[load.label, target.name], load.unit) for target in targets}
        for load in loads
    }


def summarize(rounds: Sequence[Measurements], unit: str) -> dict[str, Any]:
    rates = [measurements[unit] for measurements in rounds]
    return median_measurements(rounds) | {"spread": [min(rates), max(rates)]}


def line(load: Load, results: Results) -> str:
    """Return one load's result as a log line."""
    base, parts = next(iter(results.values())), []
    for name, measurements in results.items():
        relative = f" ({ratio(measurements[load.unit], base[load.unit])})" if measurements is not base else ""
        costs = f"p99 {shown(measurements, 'p99_us')} µs, CPU {shown(measurements, 'cpu_us')} µs"
        parts.append(f"{name} {measurements[load.unit]:,.0f} {UNITS[load.unit]}{relative}, {costs}")
    return f"{load.label}: {'; '.join(parts)}"


def shown(measurements: dict[str, Any], key: str) -> str:
    return f"{measurements[key]:,.0f}" if key in measurements else "–"


def cells(load: Load, results: Results) -> list[str]:
    """Return a table row: each broker's rate with its range, p50, p99 and CPU; then the ratios Ottla / Kafka."""
    row = [load.label]
    for name in TITLES:
        if name in results:
            measurements = results[name]
            low, high = measurements["spread"]
            row.append(f"{measurements[load.unit]:,.0f} {UNITS[load.unit]} ({low:,.0f}–{high:,.0f})")
            row.append(" / ".join(shown(measurements, key) for key in ("p50_us", "p99_us", "cpu_us")))
        else:
            row += ["–", "–"]
    return [*row, *(compare(results, key) for key in (load.unit, "p99_us", "cpu_us"))]


def compare(results: Results, key: str) -> str:
    return ratio(results.get("ottla", {}).get(key), results.get("kafka", {}).get(key))


def times(results: Results, key: str) -> float | None:
    """Return the ratio Ottla / Kafka, or None if one is missing."""
    return quotient(results.get("ottla", {}).get(key), results.get("kafka", {}).get(key))


def brief(load: Load, results: Results) -> list[str]:
    """Return the row for README."""
    rates = [f"{results[name][load.unit]:,.0f} {UNITS[load.unit]}" if name in results else "–" for name in TITLES]
    latency = f", p99 {compare(results, 'p99_us')}" if "p99_us" in results.get("ottla", {}) else ""
    return [load.label, *rates, f"{compare(results, load.unit)}{latency}, CPU {compare(results, 'cpu_us')}"]


def goals(load: Load, results: Results) -> list[Goal]:
    thresholds = load.thresholds
    limits = (
        ("rate", load.unit, thresholds.rate, False),
        ("p99", "p99_us", thresholds.p99, True),
        ("CPU", "cpu_us", thresholds.cpu, True),
    )
    return [
        Goal(f"{load.label}: {name} relative to {KAFKA}", times(results, key), limit, at_most)
        for name, key, limit, at_most in limits
        if limit is not None
    ]


def run_loads(
    title: str,
    loads: Sequence[Load],
    targets: Sequence[Target],
    run_size: RunSize,
    log: Log,
    *,
    what: str,
    alternating: bool = False,
) -> Report:
    """Measure each load and report one row for each. `what` describes the loads, at the start of the note.

    With `alternating`, the loads are compared with each other: they alternate as the brokers do.
    """
    results: dict[str, Results] = {}
    for group in [loads] if alternating else [[load] for load in loads]:
        results |= measure(group, targets, run_size)
        for load in group:
            log(line(load, results[load.label]))
    head = ["load", KAFKA, "p50 / p99 / CPU, µs", "Ottla", "p50 / p99 / CPU, µs", "rate", "p99", "CPU"]
    note = (
        f"{what} Medians of {run_size.rounds} rounds of {run_size.round_seconds:g} s (lowest–highest), alternating, "
        f"after {run_size.warm_seconds:g} s of each load to warm up; CPU is the broker's, per request. The last three "
        "columns are ratios, Ottla / Kafka."
    )
    return Report(
        title,
        head,
        [cells(load, results[load.label]) for load in loads],
        note,
        results,
        [brief(load, results[load.label]) for load in loads],
        [goal for load in loads for goal in goals(load, results[load.label])],
        rate_plot(title, loads, results)
        if len({load.unit for load in loads}) == 1
        else ratio_plot(title, loads, results),
    )


def ratio_plot(title: str, loads: Sequence[Load], results: dict[str, Results]) -> Plot | None:
    """Plot the ratios Ottla / Kafka of each load. None without Kafka."""
    keys = {"rate": "", "p99": "p99_us", "CPU per request": "cpu_us"}
    series = {name: [times(results[load.label], key or load.unit) for load in loads] for name, key in keys.items()}
    if not any(value is not None for values in series.values() for value in values):
        return None
    return Plot("ratios", title, f"Ottla / {KAFKA}", [load.label for load in loads], series)


def rate_plot(title: str, loads: Sequence[Load], results: dict[str, Results]) -> Plot:
    series = {name: [results[load.label].get(name, {}).get(load.unit) for load in loads] for name in TITLES}
    measured = {name: values for name, values in series.items() if any(value is not None for value in values)}
    return Plot("bars", title, UNITS[loads[0].unit], [load.label for load in loads], by_broker(measured))
