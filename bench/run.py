"""`./dev bench [--quick] [NAMES]`: compare Apache Kafka and Ottla side by side, in one run.

Writes tables, plots and measurements to bench/results and updates the table in README. --quick takes about two minutes
and writes to bench/results/quick, which is not committed. Without Java and Maven only Ottla is measured, also into that
directory.
"""

import argparse
import contextlib
import platform
import time
from collections.abc import Callable, Sequence

from bench import (
    acks,
    attack,
    broker_fixture,
    client_consumer,
    client_producer,
    cold_reader,
    compaction,
    compressed,
    connections,
    consumer_tools,
    flush,
    groups,
    large_data,
    memory,
    metadata,
    partitions,
    perf_tool,
    recovery,
    spark_json,
    spark_memory,
    spark_read,
    spark_write,
    startup,
    wire,
)
from bench.comparison import Log
from bench.peers import ApacheKafka, BrokerProcess, OttlaProcess, PeerUnavailable, kafka_class_path
from bench.report import QUICK, README, RESULTS, Goal, Report, RunSize, measured_table, update_readme, write_report

RUNNING_BROKERS: dict[str, Callable[[Sequence[BrokerProcess], RunSize, Log], Report]] = {
    "wire": wire.run,
    "acks": acks.run,
    "compressed": compressed.run,
    "partitions": partitions.run,
    "connections": connections.run,
    "cold_reader": cold_reader.run,
    "metadata": metadata.run,
    "perf_tool": perf_tool.run,
    "consumer_tools": consumer_tools.run,
    "client_producer": client_producer.run,
    "client_consumer": client_consumer.run,
    "spark_read": spark_read.run,
    "spark_write": spark_write.run,
    "spark_memory": spark_memory.run,
}
"""Benchmarks that run against started brokers."""
OWN_BROKERS: dict[str, Callable[[Sequence[type[BrokerProcess]], RunSize, Log], Report]] = {
    "groups": groups.run,
    "startup": startup.run,
    "memory": memory.run,
    "flush": flush.run,
    "recovery": recovery.run,
    "compaction": compaction.run,
    "large": large_data.run,
}
"""Benchmarks that start brokers themselves."""
OTTLA_ONLY: dict[str, Callable[[RunSize, Log], Report]] = {
    "fixture": broker_fixture.run,
    "attack": attack.run,
    "spark_json": spark_json.run,
}
"""Benchmarks without a peer."""
NAMES = (*RUNNING_BROKERS, *OWN_BROKERS, *OTTLA_ONLY)
ON_REQUEST = ("spark_read", "spark_write", "spark_memory", "spark_json")
"""Benchmarks that run only when named, as they need PySpark."""
NEED_KAFKA = ("perf_tool", "consumer_tools")
"""Benchmarks that run Kafka's tools."""


class Brokers:
    """Starts fresh brokers for each benchmark. A quick run starts them once, as the starts would take a third of it."""

    def __init__(self, broker_types: Sequence[type[BrokerProcess]], *, shared: bool) -> None:
        self.broker_types = broker_types
        self._shared = shared
        self._stack = contextlib.ExitStack()
        self._running: list[BrokerProcess] = []

    def fresh(self) -> list[BrokerProcess]:
        if not self._running or not self._shared:
            self.close()
            self._running = [self._stack.enter_context(broker_type()) for broker_type in self.broker_types]
        return self._running

    def close(self) -> None:
        self._stack.close()
        self._running = []


def run_one(name: str, brokers: Brokers, run_size: RunSize, log: Log) -> Report:
    if name in RUNNING_BROKERS:
        running = brokers.fresh()
        try:
            return RUNNING_BROKERS[name](running, run_size, log)
        except Exception:
            for broker in running:
                log(f"{broker.name}'s output ends:\n{broker.output()[-2000:]}")
            raise
    brokers.close()
    if name in OWN_BROKERS:
        return OWN_BROKERS[name](brokers.broker_types, run_size, log)
    return OTTLA_ONLY[name](run_size, log)


def peers(log: Log) -> list[type[BrokerProcess]]:
    """Return the broker types, Kafka first if available: ratios are relative to it."""
    try:
        kafka_class_path()
    except PeerUnavailable as reason:
        log(f"Apache Kafka is not available, measuring Ottla alone: {reason}")
        return [OttlaProcess]
    return [ApacheKafka, OttlaProcess]


def log_goals(goals: Sequence[Goal], log: Log) -> None:
    """Log how many thresholds are met, and each that is not."""
    decided = [goal for goal in goals if goal.holds is not None]
    if decided:
        log(f"{sum(goal.holds is True for goal in decided)} of {len(decided)} thresholds met")
    for goal in decided:
        if not goal.holds:
            what, limit, measured, _ = goal.cells()
            log(f"  not met: {what}: {measured}, threshold {limit}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./dev bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="a run of about two minutes, to check that everything works"
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in NAMES]
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]}; choose from {', '.join(NAMES)}")
    if platform.system() != "Linux":
        parser.error("benchmarks read /proc and run on Linux only")
    return options


def main() -> None:
    options, started = arguments(), time.monotonic()

    def log(text: str) -> None:
        print(f"{time.monotonic() - started:6.1f} s  {text}", flush=True)

    broker_types = peers(log)
    is_official = not options.quick and len(broker_types) > 1
    chosen = [name for name in NAMES if name in options.names or (not options.names and name not in ON_REQUEST)]
    goals: list[Goal] = []
    with contextlib.closing(Brokers(broker_types, shared=options.quick)) as brokers:
        for index, name in enumerate(chosen, 1):
            if name in NEED_KAFKA and len(broker_types) == 1:
                log(f"[{index}/{len(chosen)}] skipping {name}: it runs a tool of Kafka's")
                continue
            log(f"[{index}/{len(chosen)}] {name}")
            report = run_one(name, brokers, QUICK if options.quick else RunSize(), log)
            write_report(name, report, RESULTS if is_official else RESULTS / "quick")
            goals += report.goals
            print(f"\n{measured_table(report.head, report.rows)}", flush=True)
    log_goals(goals, log)
    if options.quick:
        log("A quick run only checks that everything works: it is short, and the brokers are hardly warm")
    if is_official and update_readme(NAMES):
        log(f"updated the table in {README.name}")


if __name__ == "__main__":
    main()
