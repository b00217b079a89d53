"""Resident memory of the broker: idle after its start, and a while after Kafka's ProducerPerformance has been at it."""

import time
from collections.abc import Callable, Sequence

from bench.peers import BrokerProcess, PeerUnavailable, resident_bytes
from bench.perf_tool import RECORD_SIZE, produce
from bench.report import KAFKA, Effort, Report, ratio, settle

IDLE_SECONDS = 5.0


def run(brokers: Sequence[type[BrokerProcess]], effort: Effort, say: Callable[[str], None]) -> Report:
    idle: dict[str, int] = {}
    after: dict[str, int] = {}
    for kind in brokers:
        with kind() as broker:
            time.sleep(min(IDLE_SECONDS, effort.rest_seconds))
            idle[kind.name] = resident_bytes(broker.pid)
            try:
                produce(broker, effort.perf_records)
            except PeerUnavailable as reason:
                say(f"Memory after load is left out: {reason}")
                continue
            time.sleep(effort.rest_seconds)
            after[kind.name] = resident_bytes(broker.pid)
            say(f"Memory: {kind.name} {idle[kind.name] / 1e6:.0f} MB idle, {after[kind.name] / 1e6:.0f} MB after load")
        settle()
    loaded = f"{effort.rest_seconds:.0f} s after {effort.perf_records / 1e6:g} M records of {RECORD_SIZE} B"
    rows = []
    for label, figures in (("Resident memory, idle", idle), (f"Resident memory, {loaded}", after)):
        shown = [f"{figures[name] / 1e6:,.0f} MB" if name in figures else "–" for name in ("kafka", "ottla")]
        rows.append([label, *shown, ratio(figures.get("ottla"), figures.get("kafka"))])
    note = "A fresh broker's process, the load by Kafka's `ProducerPerformance`; Kafka has the 1 GB of heap that its start script gives it."
    return Report("Memory", ["", KAFKA, "Ottla", "Ottla / Kafka"], rows, note, {"idle_bytes": idle, "loaded_bytes": after}, rows)
