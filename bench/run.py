"""`./dev bench [--quick] [NAMES]`: Apache Kafka and Ottla side by side, in one run.

Tables, plots and figures go to bench/results, and README's table is drawn from them. With --quick all of it runs in about two minutes; its
figures go to bench/results/quick, which is not kept. Without Java and Maven there is no peer: Ottla is measured alone, and nothing is kept.
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
"""Those that need brokers which already run."""
OWN_BROKERS: dict[str, Callable[[Sequence[type[BrokerProcess]], RunSize, Log], Report]] = {
    "groups": groups.run,
    "startup": startup.run,
    "memory": memory.run,
    "flush": flush.run,
    "recovery": recovery.run,
    "compaction": compaction.run,
    "large": large_data.run,
}
"""Those that start brokers themselves."""
OTTLA_ONLY: dict[str, Callable[[RunSize, Log], Report]] = {"fixture": broker_fixture.run, "attack": attack.run}
"""Those that no peer takes part in."""
NAMES = (*RUNNING_BROKERS, *OWN_BROKERS, *OTTLA_ONLY)
ON_REQUEST = ("spark_read", "spark_write", "spark_memory")
"""Those that install PySpark, twice: they run when they are named."""
NEED_TOOLS = {"perf_tool": "the tool is Kafka's", "consumer_tools": "the tools are Kafka's"}


class Brokers:
    """Each benchmark has fresh brokers; a quick run starts them once, as their start would be a third of it."""

    def __init__(self, broker_types: Sequence[type[BrokerProcess]], *, shared: bool) -> None:
        self.kinds = kinds
        self._shared = shared
        self._stack = contextlib.ExitStack()
        self._running: list[BrokerProcess] = []

    def fresh(self) -> list[BrokerProcess]:
        if not self._running or not self._shared:
            self.close()
            self._running = [self._stack.enter_context(kind()) for kind in self.kinds]
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
                log(f"{broker.name}'s last words:\n{broker.output()[-2000:]}")
            raise
    brokers.close()
    if name in OWN_BROKERS:
        return OWN_BROKERS[name](brokers.kinds, run_size, log)
    return OTTLA_ONLY[name](run_size, log)


def peers(log: Log) -> list[type[BrokerProcess]]:
    """Kafka first, where it can be had: ratios are to it."""
    try:
        kafka_class_path()
    except PeerUnavailable as reason:
        log(f"Without Apache Kafka, and without its column: {reason}")
        return [OttlaProcess]
    return [ApacheKafka, OttlaProcess]


def log_goals(goals: Sequence[Goal], log: Log) -> None:
    """How many thresholds hold, and each that does not."""
    decided = [goal for goal in goals if goal.holds is not None]
    if decided:
        log(f"{sum(goal.holds is True for goal in decided)} of {len(decided)} thresholds hold")
    for goal in decided:
        if not goal.holds:
            what, limit, measured, _ = goal.cells()
            log(f"  not held: {what}: {measured}, and the bar is {limit}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./dev bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="about two minutes, to see that it works")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in NAMES]
    if unknown:
        parser.error(f"no benchmark is called {unknown[0]}; there are {', '.join(NAMES)}")
    if platform.system() != "Linux":
        parser.error("benchmarks read /proc and run on Linux only")
    return options


def main() -> None:
    options, began = arguments(), time.monotonic()

    def log(text: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {text}", flush=True)

    kinds = peers(log)
    keep = not options.quick and len(kinds) > 1
    chosen = [name for name in NAMES if name in options.names or (not options.names and name not in ON_REQUEST)]
    goals: list[Goal] = []
    with contextlib.closing(Brokers(kinds, shared=options.quick)) as brokers:
        for index, name in enumerate(chosen, 1):
            if name in NEED_TOOLS and len(kinds) == 1:
                log(f"[{index}/{len(chosen)}] {name} is left out: {NEED_TOOLS[name]}")
                continue
            log(f"[{index}/{len(chosen)}] {name}")
            report = run_one(name, brokers, QUICK if options.quick else RunSize(), log)
            write_report(name, report, RESULTS if keep else RESULTS / "quick")
            goals += report.goals
            print(f"\n{measured_table(report.head, report.rows)}", flush=True)
    log_goals(goals, log)
    if options.quick:
        log("These figures log that it works, and little else: they are short, and the brokers hardly warm")
    if keep and update_readme(NAMES):
        log(f"The table in {README.name} is drawn anew")


if __name__ == "__main__":
    main()
