"""Clients beside each other: each works in a process of its own against each broker, in turns, and prints what it took."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench.comparison import Log
from bench.loads import Figures, median_figures
from bench.peers import BrokerProcess
from bench.report import RunSize, ratio

CLIENT_SECONDS_MAX = 180
HEAD = ("", "records/s", "CPU/record", "memory", "ratio")
REFERENCES = ("kafka-python", "aiokafka")
"""The thresholds are to the better of these: they are written in Python too."""

Work = Callable[[str, str, int], tuple[float, float]]
"""Bootstrap address, topic and how many records; returned are seconds and CPU seconds."""
Rates = dict[str, dict[str, Figures]]
"""By broker and client."""


def measure(module: str, client: str, bootstrap: str, topic: str, records: int) -> Figures:
    """In a process of its own, which runs the module: records a second, CPU of the client for each, and its peak of memory."""
    command = [sys.executable, "-m", module, client, bootstrap, topic, str(records)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=CLIENT_SECONDS_MAX)
    if done.returncode:
        raise RuntimeError(f"{client}: {done.stderr[-2000:]}")
    found: Figures = json.loads(done.stdout.splitlines()[-1])
    return found


def run_client(works: Mapping[str, Work]) -> None:
    """That process: its arguments are those of `measure`, and what it prints is what `measure` returns."""
    client, bootstrap, topic, count = sys.argv[1:]
    records = int(count)
    seconds, cpu = works[client](bootstrap, topic, records)
    peak = re.search(r"^VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    memory_mb = int(peak[1]) / 1024 if peak else 0.0
    print(
        json.dumps(
            {"records_per_second": records / seconds, "cpu_us_per_record": cpu / records * 1e6, "memory_mb": memory_mb}
        )
    )


def alternate_rounds(module: str, clients: Sequence[str], broker: BrokerProcess, topic: str, records: int, run_size: RunSize,
               log: Log) -> dict[str, Figures]:  # fmt: skip
    """The medians of each client's rounds."""
    rounds: dict[str, list[Figures]] = {client: [] for client in clients}
    for number in range(run_size.perf_rounds):
        for client, found in rounds.items():
            found.append(measure(module, client, broker.bootstrap, topic, records))
            log(f"{broker.name}: {client}, round {number + 1}: {found[-1]['records_per_second']:,.0f} records/s")
    return {client: median_figures(found) for client, found in rounds.items()}


def rows(rates: Rates) -> list[list[str]]:
    """A line for each client; the last column is to the better judge."""
    return [
        [
            f"{client} ({broker})",
            f"{found['records_per_second']:,.0f}",
            f"{found['cpu_us_per_record']:.2f} µs",
            f"{found['memory_mb']:.0f} MB",
            ratio(found["records_per_second"], reference_rate(clients)),
        ]
        for broker, clients in rates.items()
        for client, found in clients.items()
    ]


def reference_rate(clients: Mapping[str, Figures]) -> float:
    return max(clients[client]["records_per_second"] for client in REFERENCES)
