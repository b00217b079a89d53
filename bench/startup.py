"""Time from the start of the process to the first ApiVersions response.

Kafka's directory is formatted beforehand, as its users have to do; Ottla formats its own within the measured time.
"""

import statistics
import time
from collections.abc import Callable, Sequence

from bench.peers import START_SECONDS_MAX, BrokerProcess, responds_to_api_versions
from bench.plot import Plot
from bench.report import HEAD, TITLES, Goal, Report, RunSize, by_broker, row

SECONDS_MAX = 0.5


def start_seconds(broker: BrokerProcess) -> float:
    """Start a broker with an empty directory and stop it."""
    try:
        broker.command()  # formats Kafka's directory
        started = time.perf_counter()
        broker.spawn()
        while not responds_to_api_versions(broker.port):
            if broker.process.poll() is not None or time.perf_counter() - started > START_SECONDS_MAX:
                raise RuntimeError(f"{broker.name} does not respond:\n{broker.output()[-3000:]}")
            time.sleep(0.002)
        return time.perf_counter() - started
    finally:
        broker.close()


def run(brokers: Sequence[type[BrokerProcess]], run_size: RunSize, log: Callable[[str], None]) -> Report:
    times: dict[str, list[float]] = {broker.name: [] for broker in brokers}
    for _ in range(run_size.starts):
        for broker in brokers:
            times[broker.name].append(start_seconds(broker()))
    medians = {name: statistics.median(seconds) for name, seconds in times.items()}
    log("Startup: " + "; ".join(f"{name} {seconds:.2f} s" for name, seconds in medians.items()))
    spread = [f"{min(times[name]):.2f}–{max(times[name]):.2f} s" if name in times else "–" for name in TITLES]
    label = "Process start to first response"
    total = row(label, medians, ".2f", " s")
    return Report(
        "Startup",
        HEAD,
        [total, ["lowest–highest", *spread, ""]],
        f"Median of {run_size.starts}, on an empty directory: formatted before the measurement for Kafka and within it "
        "for Ottla.",
        {"seconds": times},
        [total],
        [Goal(label, medians.get("ottla"), SECONDS_MAX, unit=" s")],
        Plot("bars", label, "s", ["start"], by_broker({name: [seconds] for name, seconds in medians.items()})),
    )
