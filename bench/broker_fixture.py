"""Startup time of a broker in a test: `ottla.testing.Broker()` in a fresh process, up to its first response."""

import statistics
import subprocess
import sys
from collections.abc import Callable

from bench.plot import Plot
from bench.report import KAFKA, Goal, Report, RunSize

PROBE = """
import time
from bench.peers import responds_to_api_versions
started = time.perf_counter()
from ottla.testing import Broker
imported = time.perf_counter()
times = [imported - started]
for _ in range(2):
    start = time.perf_counter()
    with Broker() as broker:
        assert responds_to_api_versions(int(broker.bootstrap.rpartition(":")[2]))
        times.append(time.perf_counter() - start)
print(*times)
"""
READY_MS_MAX = 100.0
PHASES = ("import", "first broker of the process", "second broker")


def probe() -> list[float]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
    )
    return [float(seconds) for seconds in done.stdout.split()]


def run(run_size: RunSize, log: Callable[[str], None]) -> Report:
    probe()  # loads the files into the page cache, as in a second test run
    times = [probe() for _ in range(max(3, run_size.starts))]
    columns = dict(zip(PHASES, zip(*times, strict=True), strict=True))
    log(
        "Fixture: "
        + ", ".join(f"{phase} {statistics.median(seconds) * 1e3:.0f} ms" for phase, seconds in columns.items())
    )
    medians = [statistics.median(seconds) * 1e3 for seconds in columns.values()]
    rows = [
        [phase, f"{statistics.median(seconds) * 1e3:.0f} ms", f"{min(seconds) * 1e3:.0f}–{max(seconds) * 1e3:.0f} ms"]
        for phase, seconds in columns.items()
    ]
    return Report(
        "A broker inside a test",
        ["", "median", "lowest–highest"],
        rows,
        f"`with Broker():` until its first response, in {len(times)} fresh processes. "
        f"{KAFKA} has no broker inside a Python process to compare with.",
        {"seconds": {phase: list(seconds) for phase, seconds in columns.items()}},
        [["`ottla.testing` broker ready, after import", "–", rows[1][1], ""]],
        [Goal("`ottla.testing` broker ready, after import", medians[1], READY_MS_MAX, unit=" ms")],
        Plot("bars", "A broker inside a test", "ms", PHASES, {"Ottla": medians}),
    )
