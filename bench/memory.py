"""Resident memory of the broker: idle after its start, and some time after a load by Kafka's ProducerPerformance."""

import time
from collections.abc import Callable, Sequence

from bench.peers import BrokerProcess, PeerUnavailable, resident_bytes
from bench.perf_tool import RECORD_SIZE, produce
from bench.plot import Plot
from bench.report import HEAD, Goal, Report, RunSize, by_broker, row, sync_disks

IDLE_SECONDS = 5.0
IDLE_MB_MAX = 90.0
LOADED_MB_MAX = 250.0


def run(brokers: Sequence[type[BrokerProcess]], run_size: RunSize, log: Callable[[str], None]) -> Report:
    idle: dict[str, int] = {}
    after: dict[str, int] = {}
    for broker_type in brokers:
        with broker_type() as broker:
            time.sleep(min(IDLE_SECONDS, run_size.idle_seconds))
            idle[broker_type.name] = resident_bytes(broker.pid)
            try:
                produce(broker, run_size.perf_records)
            except PeerUnavailable as reason:
                log(f"skipping memory after load: {reason}")
                continue
            time.sleep(run_size.idle_seconds)
            after[broker_type.name] = resident_bytes(broker.pid)
            log(
                f"Memory: {broker_type.name} {idle[broker_type.name] / 1e6:.0f} MB idle, "
                f"{after[broker_type.name] / 1e6:.0f} MB after load"
            )
        sync_disks()
    return report(idle, after, run_size)


def report(idle: dict[str, int], after: dict[str, int], run_size: RunSize) -> Report:
    loaded = f"{run_size.idle_seconds:.0f} s after {run_size.perf_records / 1e6:g} M records of {RECORD_SIZE} B"
    labels = ["Resident memory, idle", f"Resident memory, {loaded}"]
    measurements = [{name: count / 1e6 for name, count in one.items()} for one in (idle, after)]
    rows = [row(label, one, ",.0f", " MB") for label, one in zip(labels, measurements, strict=True)]
    plotted = by_broker({name: [one.get(name) for one in measurements] for name in idle})
    note = (
        "Fresh brokers, loaded by Kafka's `ProducerPerformance`. Kafka has a heap of 1 GB, the default of its start "
        "script."
    )
    return Report(
        "Memory",
        HEAD,
        rows,
        note,
        {"idle_bytes": idle, "loaded_bytes": after},
        rows,
        [
            Goal(labels[0], measurements[0].get("ottla"), IDLE_MB_MAX, unit=" MB"),
            Goal(labels[1], measurements[1].get("ottla"), LOADED_MB_MAX, unit=" MB"),
        ],
        Plot("bars", "Resident memory", "MB", ["idle", "after load"], plotted),
    )
