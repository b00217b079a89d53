"""`./dev bench [--quick] [NAMES]`: Apache Kafka and Ottla side by side, in one run.

Tables and figures go to bench/results, and README's table is drawn from them. With --quick all of it runs in about two minutes; its
figures go to bench/results/quick, which is not kept. Without Java and Maven there is no peer: Ottla is measured alone, and nothing is kept.
"""

import argparse
import contextlib
import platform
import time
from collections.abc import Callable

from bench import fixture, memory, perf_tool, startup, wire
from bench.peers import ApacheKafka, BrokerProcess, OttlaProcess, PeerUnavailable, kafka_class_path
from bench.report import QUICK, README, RESULTS, Effort, Report, draw_readme, table, write

NAMES = ("wire", "perf_tool", "startup", "memory", "fixture")
Say = Callable[[str], None]


def run_one(name: str, kinds: list[type[BrokerProcess]], effort: Effort, say: Say) -> Report:
    match name:
        case "wire" | "perf_tool":
            with contextlib.ExitStack() as stack:
                running = [stack.enter_context(kind()) for kind in kinds]
                return wire.run(running, effort, say) if name == "wire" else perf_tool.run(running, effort, say)
        case "startup":
            return startup.run(kinds, effort, say)
        case "memory":
            return memory.run(kinds, effort, say)
        case "fixture":
            return fixture.run(effort, say)
        case _:
            raise ValueError(name)


def peers(say: Say) -> list[type[BrokerProcess]]:
    """Kafka first, where it can be had: ratios are to it."""
    try:
        kafka_class_path()
    except PeerUnavailable as reason:
        say(f"Without Apache Kafka: {reason}")
        return [OttlaProcess]
    return [ApacheKafka, OttlaProcess]


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="about two minutes, to see that it works")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in NAMES]
    if unknown:
        parser.error(f"no benchmark is called {unknown[0]}; there are {', '.join(NAMES)}")
    if platform.system() != "Linux":
        parser.error("benchmarks read /proc and run on Linux only")
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {text}", flush=True)

    kinds = peers(say)
    keep = not options.quick and len(kinds) > 1
    chosen = [name for name in NAMES if name in options.names or not options.names]
    for index, name in enumerate(chosen, 1):
        if name == "perf_tool" and len(kinds) == 1:
            say("perf_tool is left out: the tool is Kafka's")
            continue
        say(f"[{index}/{len(chosen)}] {name}")
        report = run_one(name, kinds, QUICK if options.quick else Effort(), say)
        write(name, report, RESULTS if keep else RESULTS / "quick")
        print(f"\n{table(report.head, report.rows)}", flush=True)
    if keep and draw_readme(NAMES):
        say(f"The table in {README.name} is drawn anew")


if __name__ == "__main__":
    main()
