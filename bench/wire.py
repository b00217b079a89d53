"""Wire-level load: the same pre-encoded requests to each broker, warm, alternating; medians, spread, latency, and the broker's CPU time.

    python -m bench.wire NAME=PORT:PID [NAME=PORT:PID ...]     brokers that already run; ratios are to the first

One connection sends; the load generator and the brokers share the machine. CPU time per request is the figure that noise disturbs least.
"""

import statistics
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from bench import frames
from bench.frames import BrokerRefused, Connection
from bench.peers import cpu_seconds
from bench.report import KAFKA, Effort, Report, ratio, settle

FILL_RECORDS = 35
"""A batch of about 4 kB: what fetches read."""


class Target(Protocol):
    """A running broker."""

    @property
    def name(self) -> str: ...

    @property
    def port(self) -> int: ...

    @property
    def pid(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Running:
    """A broker that someone else started."""

    name: str
    port: int
    pid: int


@dataclass(frozen=True, slots=True)
class Load:
    """`run(port, topic id, seconds)` returns figures; `unit` names the one that counts."""

    label: str
    unit: str
    reads: bool
    run: Callable[[int, bytes, float], dict[str, float]]


def figures_of(latencies: list[float], *, total: int, took: float) -> dict[str, float]:
    latencies.sort()
    return {
        "per_second": len(latencies) / took,
        "mb_per_second": total / took / 1e6,
        "p50_us": latencies[len(latencies) // 2] * 1e6,
        "p99_us": latencies[int(len(latencies) * 0.99)] * 1e6,
        "requests": len(latencies),
    }


def produce_load(records: int, in_flight: int) -> Callable[[int, bytes, float], dict[str, float]]:
    """Records of about 100 bytes, `records` in a batch, a batch in a request, `in_flight` requests not yet answered."""

    def run(port: int, topic_id: bytes, seconds: float) -> dict[str, float]:
        connection, sent = Connection(port), deque[float]()
        latencies: list[float] = []
        data, clock = frames.produce(topic_id, frames.batch(records, 100)), time.perf_counter
        start = clock()
        end = start + seconds
        while clock() < end:
            while len(sent) < in_flight:
                sent.append(clock())
                connection.send(data)
            answer = connection.receive()
            latencies.append(clock() - sent.popleft())
            if frames.produce_error(answer):
                raise BrokerRefused(f"produce: error {frames.produce_error(answer)}")
        took = clock() - start
        connection.close()
        return figures_of(latencies, total=len(latencies) * len(data), took=took)

    return run


def fetch_load(size: int) -> Callable[[int, bytes, float], dict[str, float]]:
    """Read the topic from its start, `size` bytes a request, one request at a time, again and again."""

    def run(port: int, topic_id: bytes, seconds: float) -> dict[str, float]:
        connection, clock, offset, total = Connection(port), time.perf_counter, 1, 0
        latencies: list[float] = []
        start = clock()
        end = start + seconds
        while (now := clock()) < end:
            fetched = frames.read_fetch(connection.ask(frames.fetch(topic_id, offset, size)))
            latencies.append(clock() - now)
            total += fetched.size
            whole_until = fetched.next_offset
            offset = whole_until if offset < whole_until < fetched.high_watermark else 1
        took = clock() - start
        connection.close()
        return figures_of(latencies, total=total, took=took)

    return run


LOADS = (
    Load("Produce 170 B, 5 in flight", "per_second", False, produce_load(1, 5)),
    Load("Produce 1.1 kB, 5 in flight", "per_second", False, produce_load(10, 5)),
    Load("Produce 11 kB, 5 in flight", "per_second", False, produce_load(100, 5)),
    Load("Produce 66 kB, 5 in flight", "per_second", False, produce_load(600, 5)),
    Load("Produce 1 MB, 5 in flight", "per_second", False, produce_load(9000, 5)),
    Load("Produce 170 B, 1 in flight", "per_second", False, produce_load(1, 1)),
    Load("Fetch 16 kB", "mb_per_second", True, fetch_load(1 << 14)),
    Load("Fetch 64 kB", "mb_per_second", True, fetch_load(1 << 16)),
    Load("Fetch 1 MB", "mb_per_second", True, fetch_load(1 << 20)),
)
UNITS = {"per_second": "req/s", "mb_per_second": "MB/s"}


def measure_once(load: Load, target: Target, topic_id: bytes, seconds: float) -> dict[str, float]:
    before = cpu_seconds(target.pid)
    figures = load.run(target.port, topic_id, seconds)
    figures["cpu_us"] = (cpu_seconds(target.pid) - before) / figures.pop("requests") * 1e6
    return figures


def measure(load: Load, targets: Sequence[Target], effort: Effort) -> dict[str, dict[str, Any]]:
    """Warm each broker with this load, then take turns. The medians of the rounds, and the lowest and highest rate."""
    name = f"bench-{time.time_ns()}"
    connections = {target.name: Connection(target.port) for target in targets}
    topics = {target.name: frames.create_topic(connections[target.name], name) for target in targets}
    for target in targets:
        if load.reads:
            filler = frames.produce(topics[target.name], frames.batch(FILL_RECORDS, 100))
            for _ in range(effort.fill_requests):
                if frames.produce_error(connections[target.name].ask(filler)):
                    raise BrokerRefused("the topic could not be filled")
        load.run(target.port, topics[target.name], effort.warm_seconds)
    settle()
    runs: dict[str, list[dict[str, float]]] = {target.name: [] for target in targets}
    for _ in range(effort.rounds):
        for target in targets:
            runs[target.name].append(measure_once(load, target, topics[target.name], effort.round_seconds))
    for connection in connections.values():
        frames.delete_topic(connection, name)
        connection.close()
    settle()
    return {name: summarize(figures, load.unit) for name, figures in runs.items()}


def summarize(rounds: Sequence[dict[str, float]], unit: str) -> dict[str, Any]:
    medians: dict[str, Any] = {key: statistics.median(figures[key] for figures in rounds) for key in rounds[0]}
    rates = [figures[unit] for figures in rounds]
    return medians | {"spread": [min(rates), max(rates)]}


def line(load: Load, results: dict[str, dict[str, Any]]) -> str:
    """One load's outcome, as progress."""
    base, parts = next(iter(results.values())), []
    for name, figures in results.items():
        beside = f" ({ratio(figures[load.unit], base[load.unit])})" if figures is not base else ""
        costs = f"p99 {figures['p99_us']:,.0f} µs, CPU {figures['cpu_us']:,.0f} µs"
        parts.append(f"{name} {figures[load.unit]:,.0f} {UNITS[load.unit]}{beside}, {costs}")
    return f"{load.label}: {'; '.join(parts)}"


def cells(load: Load, results: dict[str, dict[str, Any]]) -> list[str]:
    """A row: each broker's rate with its spread, p50, p99, CPU; then the ratios of ours to the peer's."""
    row = [load.label]
    for name in ("kafka", "ottla"):
        if name in results:
            figures = results[name]
            low, high = figures["spread"]
            row.append(f"{figures[load.unit]:,.0f} {UNITS[load.unit]} ({low:,.0f}–{high:,.0f})")
            row.append(" / ".join(f"{figures[key]:,.0f}" for key in ("p50_us", "p99_us", "cpu_us")))
        else:
            row += ["–", "–"]
    return [*row, *(compare(results, key) for key in (load.unit, "p99_us", "cpu_us"))]


def compare(results: dict[str, dict[str, Any]], key: str) -> str:
    return ratio(results.get("ottla", {}).get(key), results.get("kafka", {}).get(key))


def brief(load: Load, results: dict[str, dict[str, Any]]) -> list[str]:
    shown = [f"{results[name][load.unit]:,.0f} {UNITS[load.unit]}" if name in results else "–" for name in ("kafka", "ottla")]
    return [load.label, *shown, f"{compare(results, load.unit)}, p99 {compare(results, 'p99_us')}, CPU {compare(results, 'cpu_us')}"]


def run(targets: Sequence[Target], effort: Effort, say: Callable[[str], None]) -> Report:
    results = {}
    for load in LOADS:
        results[load.label] = measure(load, targets, effort)
        say(line(load, results[load.label]))
    head = ["load", KAFKA, "p50 / p99 / CPU, µs", "Ottla", "p50 / p99 / CPU, µs", "rate", "p99", "CPU"]
    note = (
        f"One connection, acks=1, records of about 100 bytes, medians of {effort.rounds} rounds of {effort.round_seconds:g} s "
        f"(lowest–highest), alternating, after {effort.warm_seconds:g} s of each load to warm up; CPU is the broker's, per request. "
        "The last three columns are Ottla's figure over Kafka's."
    )
    rows = [cells(load, results[load.label]) for load in LOADS]
    return Report("Requests on the wire", head, rows, note, results, [brief(load, results[load.label]) for load in LOADS])


def main() -> None:
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    targets = []
    for word in sys.argv[1:]:
        name, _, address = word.partition("=")
        port, _, pid = address.partition(":")
        targets.append(Running(name, int(port), int(pid)))
    run(targets, Effort(), lambda text: print(text, flush=True))


if __name__ == "__main__":
    main()
