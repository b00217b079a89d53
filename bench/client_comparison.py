"""Comparison of clients: each runs in its own process against each broker, in alternating rounds."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench.comparison import Log
from bench.loads import Measurements, median_measurements
from bench.peers import BrokerProcess
from bench.report import RunSize, ratio

CLIENT_SECONDS_MAX = 180
HEAD = ("", "records/s", "CPU/record", "memory", "ratio")
REFERENCES = ("kafka-python", "aiokafka")
"""Thresholds are relative to the faster of these clients, which are written in Python too."""

Work = Callable[[str, str, int], tuple[float, float]]
"""Takes bootstrap address, topic and number of records. Returns seconds and CPU seconds."""
Rates = dict[str, dict[str, Measurements]]
"""By broker and client."""


def measure(module: str, client: str, bootstrap: str, topic: str, records: int) -> Measurements:
    """Run the module in a child process. Return records per second, client CPU per record, and peak memory."""
    command = [sys.executable, "-m", module, client, bootstrap, topic, str(records)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=CLIENT_SECONDS_MAX)
    if done.returncode:
        raise RuntimeError(f"{client}: {done.stderr[-2000:]}")
    found: Measurements = json.loads(done.stdout.splitlines()[-1])
    return found


def run_client(works: Mapping[str, Work]) -> None:
    """Main function of that process: takes the arguments of `measure` and prints its result."""
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


def alternate_rounds(
    module: str, clients: Sequence[str], broker: BrokerProcess, topic: str, records: int, run_size: RunSize, log: Log
) -> dict[str, Measurements]:
    """Measure the clients in alternating rounds and return each client's medians."""
    rounds: dict[str, list[Measurements]] = {client: [] for client in clients}
    for number in range(run_size.perf_rounds):
        for client, found in rounds.items():
            found.append(measure(module, client, broker.bootstrap, topic, records))
            log(f"{broker.name}: {client}, round {number + 1}: {found[-1]['records_per_second']:,.0f} records/s")
    return {client: median_measurements(found) for client, found in rounds.items()}


def rows(rates: Rates) -> list[list[str]]:
    """Return a row for each client. The last column is the ratio to the faster reference client."""
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


def reference_rate(clients: Mapping[str, Measurements]) -> float:
    return max(clients[client]["records_per_second"] for client in REFERENCES)
