"""Produce to one partition and, alternating, to a thousand: the cost of many open logs per request."""

from collections.abc import Sequence
from dataclasses import replace

from bench import frames
from bench.comparison import Load, Log, Target, run_loads
from bench.loads import produce_load
from bench.plot import Plot
from bench.report import TITLES, Goal, Report, RunSize, by_broker, quotient

COUNTS = (1, 1000)
CPU_RATIO_MAX = 1.3


def run(targets: Sequence[Target], run_size: RunSize, log: Log) -> Report:
    records = frames.batch(1, 100)
    labels = [f"Produce 170 B to {count:,} partition{'s' if count > 1 else ''}" for count in COUNTS]
    loads = [
        Load(label, produce_load(records, 5, partitions=count), partitions=count)
        for label, count in zip(labels, COUNTS, strict=True)
    ]
    what = "One connection, 5 in flight, acks=1, each request to the next partition of one topic."
    report = run_loads("Many partitions", loads, targets, run_size, log, what=what, alternating=True)
    measured = report.measurements[labels[0]]
    cpu = {
        name: [report.measurements[label][name]["cpu_us"] for label in labels] for name in TITLES if name in measured
    }
    cpu_ratio = {name: quotient(measurements[-1], measurements[0]) for name, measurements in cpu.items()}
    row = [
        f"CPU per request, {COUNTS[-1]:,} partitions / 1 partition",
        *(f"{cpu_ratio[name]:.2f}×" if name in cpu_ratio else "–" for name in TITLES),
        "",
    ]
    return replace(
        report,
        summary=[*report.summary, row],
        goals=[
            Goal(f"CPU per request, {COUNTS[-1]:,} partitions / 1 partition", cpu_ratio.get("ottla"), CPU_RATIO_MAX)
        ],
        plot=Plot("bars", report.title, "CPU per request, µs", labels, by_broker(cpu)),
    )
