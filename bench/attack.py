"""Attack one node for minutes beside a checked load: no record is lost or wrong, no memory leaks, and latency stays
low.

    python -m bench.attack --minutes 10 [--seed N]     or --quick, for ten seconds

The load is measured alone first. Everything runs on one machine, so the measurements include the CPU time of the
attackers.
"""

import argparse
import contextlib
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bench import frames
from bench.attackers import attack_for, attack_once_each
from bench.checked_load import consume_checked, produce_checked
from bench.frames import Connection
from bench.load_process import start_load_process
from bench.peers import BrokerProcess, OttlaProcess, resident_bytes
from bench.report import GOAL_HEAD, QUICK, Goal, Report, RunSize, table

LOADED, TARGET = "loaded", "attacked"
SETTINGS = {
    "ottla.auto.create.topics.max": "100",
    "connections.max.idle.ms": "60000",
    "producer.id.expiration.ms": "20000",
    "producer.id.expiration.check.interval.ms": "5000",
}
"""Auto-created topics persist and producer ids are stored for a day. These limits keep the former few and expire the
latter while the node is idle, so that memory growth shows leaks."""
IDLE_SECONDS_MAX = 30.0
MEMORY_GROWTH_ENOUGH = 1.05
SAMPLE_SECONDS = 0.25
WARM_UP_PARTS, WARM_UP_SECONDS_MIN = 20, 3.0
"""The attack that precedes all measurements, as an allocator does not return all memory of its peak."""
LATENCY_GOAL, MEMORY_GOAL = 5.0, 1.15

Log = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Results of an attack, in seconds and bytes."""

    records: int
    p50_alone: float
    p99_alone: float
    p50: float
    p99: float
    worst: float
    resident_idle: int
    resident_before: int
    resident_peak: int
    resident_after: int
    acts: dict[str, int]  # by attack


def percentile(latencies: list[float], part: float) -> float:
    return sorted(latencies)[int(len(latencies) * part)]


def run_attack(broker: BrokerProcess, *, seed: int, alone_seconds: float, seconds: float, log: Log) -> Outcome:
    """Run the attack. Raises if a record is wrong, rejected or lost."""
    connection = Connection(broker.port)
    idle = resident_bytes(broker.pid)
    loaded = frames.create_topic(connection, LOADED)
    target = frames.create_topic(connection, TARGET, partitions=4)
    connection.close()
    first = 1  # create_topic has produced one record
    with contextlib.ExitStack() as stack:
        attackers, producer, consumer = (stack.enter_context(start_load_process()) for _ in range(3))
        log("running each attack once")
        durations = attackers.submit(attack_once_each, broker.port, TARGET, target, seed).result()
        log(", ".join(f"{name} {seconds_taken:.1f} s" for name, seconds_taken in durations.items()))
        attackers.submit(
            attack_for, broker.port, TARGET, target, seed + 1, max(seconds / WARM_UP_PARTS, WARM_UP_SECONDS_MIN)
        ).result()
        wait_for_memory(broker, idle)
        alone = producer.submit(produce_checked, broker.port, loaded, first, alone_seconds)
        read = consumer.submit(consume_checked, broker.port, loaded, first, alone_seconds).result()
        before = resident_bytes(broker.pid)
        log(
            f"alone: {alone.result().count} records, p99 {percentile(alone.result().latencies, 0.99) * 1e3:.2f} ms, "
            f"{before >> 20} MB"
        )
        attack = attackers.submit(attack_for, broker.port, TARGET, target, seed, seconds)
        under = producer.submit(produce_checked, broker.port, loaded, alone.result().count, seconds)
        reader = consumer.submit(consume_checked, broker.port, loaded, read, seconds)
        peak = watch(broker, [attack, under, reader], before)
        acts, produced = attack.result(), under.result()
        reader.result()
        consumer.submit(consume_checked, broker.port, loaded, first, 60 + seconds, produced.count).result()
    after = wait_for_memory(broker, before)
    return Outcome(
        produced.count - first,
        percentile(alone.result().latencies, 0.5),
        percentile(alone.result().latencies, 0.99),
        percentile(produced.latencies, 0.5),
        percentile(produced.latencies, 0.99),
        max(produced.latencies),
        idle,
        before,
        peak,
        after,
        acts,
    )


def watch(broker: BrokerProcess, running: Sequence[object], before: int) -> int:
    """Return the peak of resident memory until all futures are done. Raises if one fails."""
    peak = before
    while not all(future.done() for future in running):  # type: ignore[attr-defined]
        for future in running:
            if future.done():  # type: ignore[attr-defined]
                future.result()  # type: ignore[attr-defined]
        peak = max(peak, resident_bytes(broker.pid))
        time.sleep(SAMPLE_SECONDS)
    return peak


def wait_for_memory(broker: BrokerProcess, before: int) -> int:
    """Memory after a while of quiet, less where that is enough."""
    deadline = time.monotonic() + IDLE_SECONDS_MAX
    while (now := resident_bytes(broker.pid)) > before * MEMORY_GROWTH_ENOUGH and time.monotonic() < deadline:
        time.sleep(SAMPLE_SECONDS)
    return now


def report_of(outcome: Outcome, seconds: float, seed: int) -> Report:
    latency, memory = outcome.p99 / outcome.p99_alone, outcome.resident_after / outcome.resident_before
    rows = [
        ["records, each acknowledged, read and compared", "", f"{outcome.records:,}"],
        [
            "produce, acks=all: p50 / p99 / longest",
            f"{outcome.p50_alone * 1e3:.2f} / {outcome.p99_alone * 1e3:.2f} ms",
            f"{outcome.p50 * 1e3:.2f} / {outcome.p99 * 1e3:.2f} / {outcome.worst * 1e3:.0f} ms",
        ],
        [
            "memory: before / at most / after",
            f"{outcome.resident_before / 1e6:.0f} MB",
            f"{outcome.resident_peak / 1e6:.0f} / {outcome.resident_after / 1e6:.0f} MB",
        ],
        *([f"attack: {name}", "", f"{count:,}"] for name, count in outcome.acts.items()),
    ]
    goals = [
        Goal("p99 of Produce, under attack / alone", latency, LATENCY_GOAL),
        Goal("Memory, after / before the attack", memory, MEMORY_GOAL),
    ]
    note = (
        f"One node, attacked for {seconds:.0f} s (seed {seed}) beside a producer and a consumer: no record was wrong "
        f"or lost. Memory before is measured after a first attack of 1/{WARM_UP_PARTS} of the time; the idle node used "
        f"{outcome.resident_idle / 1e6:.0f} MB."
    )
    measurements = {name: getattr(outcome, name) for name in Outcome.__slots__}
    return Report("Under attack", ["", "alone", "under attack"], rows, note, measurements, goals=goals)


def run(run_size: RunSize, log: Log, *, seed: int = 1) -> Report:
    with OttlaProcess(settings=SETTINGS) as broker:
        try:
            outcome = run_attack(
                broker, seed=seed, alone_seconds=run_size.attack_alone_seconds, seconds=run_size.attack_seconds, log=log
            )
        finally:
            log(f"end of the node's output:\n{broker.output()[-1500:]}")
        return report_of(outcome, run_size.attack_seconds, seed)


def main() -> None:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m bench.attack", description=__doc__, formatter_class=plain)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--quick", action="store_true", help="ten seconds, to check that it works")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    run_size = QUICK if options.quick else replace(RunSize(), attack_seconds=60 * options.minutes)
    started = time.monotonic()
    report = run(
        run_size, lambda text: print(f"{time.monotonic() - started:6.1f} s  {text}", flush=True), seed=options.seed
    )
    print(f"\n{table(report.head, report.rows)}\n{table(GOAL_HEAD, [goal.cells() for goal in report.goals])}")
    if not all(goal.holds for goal in report.goals):
        sys.exit(1)


if __name__ == "__main__":
    main()
