"""Reports of benchmarks: tables and plots in Markdown, measurements in JSON, and the summary in README."""

import json
import os
import platform
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.peers import KAFKA_VERSION
from bench.plot import Plot, draw

RESULTS = Path(__file__).parent / "results"
README = Path(__file__).parent.parent / "README.md"
START, END = "<!-- bench:start -->", "<!-- bench:end -->"
KAFKA = f"Apache Kafka {KAFKA_VERSION.rsplit('.', 1)[0]}"
HEAD = ("", KAFKA, "Ottla", "Ottla / Kafka")
GOAL_HEAD = ("threshold", "limit", "measured", "met")
TITLES = {"kafka": KAFKA, "ottla": "Ottla"}
"""Compared brokers, in the order of the columns."""


@dataclass(frozen=True, slots=True)
class RunSize:
    """Durations, rounds and data sizes of a run. `QUICK` only checks that everything works."""

    warm_seconds: float = 10.0
    round_seconds: float = 2.0
    rounds: int = 5
    fill_requests: int = 25_000
    starts: int = 5
    perf_warm: bool = True
    perf_records: int = 3_000_000
    perf_rounds: int = 5
    perf_rate_records: int = 2_000_000
    idle_seconds: float = 30.0
    swarm_seconds: float = 5.0
    cold_bytes: int = 4_000_000_000
    cold_rounds: int = 5
    cold_alone_seconds: float = 10.0
    listed_topics: int = 1000
    listing_seconds: float = 20.0
    listing_rounds: int = 3
    loaded_groups: int = 10_000
    tool_rounds: int = 3
    read_records: int = 3_000_000
    echoed_records: int = 10_000
    recovery_bytes: int = 2_000_000_000
    compacted_bytes: int = 1_000_000_000
    recovery_rounds: int = 5
    large_partitions: int = 1000
    attack_alone_seconds: float = 20.0
    attack_seconds: float = 600.0


QUICK = RunSize(
    warm_seconds=0.2,
    round_seconds=0.3,
    rounds=2,
    fill_requests=3_000,
    starts=1,
    perf_warm=False,
    perf_records=100_000,
    perf_rounds=1,
    perf_rate_records=150_000,
    idle_seconds=1.0,
    swarm_seconds=0.5,
    cold_bytes=200_000_000,
    cold_rounds=1,
    cold_alone_seconds=1.0,
    listed_topics=40,
    listing_seconds=2.0,
    listing_rounds=1,
    loaded_groups=500,
    tool_rounds=1,
    read_records=150_000,
    echoed_records=300,
    recovery_bytes=100_000_000,
    compacted_bytes=100_000_000,
    recovery_rounds=1,
    large_partitions=100,
    attack_alone_seconds=2.0,
    attack_seconds=6.0,
)


@dataclass(frozen=True, slots=True)
class Goal:
    """A measurement and its threshold. `measured` is None without the peer."""

    what: str
    measured: float | None
    limit: float
    at_most: bool = True
    unit: str = "×"

    @property
    def holds(self) -> bool | None:
        if self.measured is None:
            return None
        return self.measured <= self.limit if self.at_most else self.measured >= self.limit

    def cells(self) -> list[str]:
        """Return the table cells: name, threshold, measurement, and whether it is met."""
        shown = "–" if self.measured is None else f"{self.measured:.2f}{self.unit}"
        verdict = {True: "yes", False: "**no**", None: "–"}[self.holds]
        return [self.what, f"{'≤' if self.at_most else '≥'} {self.limit:.4g}{self.unit}", shown, verdict]


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a benchmark. `summary` has its rows in README: name, Kafka's value, Ottla's value, ratio."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str
    measurements: dict[str, Any]
    summary: Sequence[Sequence[str]] = field(default=())
    goals: Sequence[Goal] = field(default=())
    plot: Plot | None = None


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table: the first column is text, the others are numbers."""
    lines = [head, ["---", *("---:" for _ in head[1:])], *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def measured_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table without columns that have no measurements, such as those of a missing peer."""
    columns = [0, *(index for index in range(1, len(head)) if any(cells[index] not in ("", "–") for cells in rows))]
    return table([head[index] for index in columns], [[cells[index] for index in columns] for cells in rows])


def quotient(ours: float | None, theirs: float | None) -> float | None:
    """Return ours / theirs, or None if one is missing."""
    return ours / theirs if ours is not None and theirs else None


def ratio(ours: float | None, theirs: float | None) -> str:
    """Return the quotient as text, or a dash if one value is missing."""
    found = quotient(ours, theirs)
    return f"{found:.2f}×" if found is not None else "–"


def row(label: str, measurements: Mapping[str, float | None], shape: str, unit: str = "") -> list[str]:
    """Return a table row for `HEAD`: each broker's value, and the ratio Ottla / Kafka."""
    found = [measurements.get(name) for name in TITLES]
    shown = ["–" if value is None else f"{value:{shape}}{unit}" for value in found]
    return [label, *shown, ratio(measurements.get("ottla"), measurements.get("kafka"))]


def rows_of(
    columns: Sequence[tuple[str, str, str, str]], results: Mapping[str, Mapping[str, float]]
) -> list[list[str]]:
    """Return such a row for each column of `results`, given as label, key, number format and unit."""
    return [
        row(label, {name: one[key] for name, one in results.items()}, shape, unit)
        for label, key, shape, unit in columns
    ]


def by_broker(measurements: Mapping[str, Sequence[float | None]]) -> dict[str, Sequence[float | None]]:
    """Return the series of a plot by the brokers' display names."""
    return {title: measurements[name] for name, title in TITLES.items() if name in measurements}


def sync_disks() -> None:
    """Flush all written data to the disk, so that a load is not measured with the writes of the one before."""
    os.sync()


def machine() -> dict[str, Any]:
    """Describe the machine, without names of hosts or users."""
    cpuinfo = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    model = re.search(r"^model name\s*: (.*)$", cpuinfo, re.MULTILINE)
    return {
        "cores": os.cpu_count(),
        "cpu": model[1] if model else platform.machine(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "kernel": f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}",
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d"),
    }


def describe(facts: dict[str, Any]) -> str:
    return (
        f"{facts['cores']} cores ({facts['cpu']}) shared by broker and load, {facts['memory_gb']} GB, "
        f"{facts['kernel']}, Python {facts['python']}; {facts['date']}."
    )


def write_report(name: str, report: Report, directory: Path) -> None:
    """Write NAME.md, NAME.json and, if there is a plot, NAME.svg."""
    directory.mkdir(parents=True, exist_ok=True)
    facts = machine()
    parts = [f"# {report.title}\n", measured_table(report.head, report.rows), f"{report.note}\n"]
    if report.goals:
        parts.append(table(GOAL_HEAD, [goal.cells() for goal in report.goals]))
    if report.plot is not None:
        (directory / f"{name}.svg").write_text(draw(report.plot))
        parts.append(f"![{report.plot.title}]({name}.svg)\n")
    parts.append(f"{describe(facts)} Generated by `./dev bench {name}`.\n")
    (directory / f"{name}.md").write_text("\n".join(parts))
    goals = [asdict(goal) | {"holds": goal.holds} for goal in report.goals]
    saved = {"machine": facts, "figures": report.measurements, "summary": report.summary, "goals": goals}
    (directory / f"{name}.json").write_text(json.dumps(saved, indent=1) + "\n")


def update_readme(names: Sequence[str], *, results: Path = RESULTS, readme: Path = README) -> bool:
    """Write the saved summaries between the markers in README. Return False without saved results or markers."""
    existing = [name for name in names if (results / f"{name}.json").exists()]
    saved = [json.loads((results / f"{name}.json").read_text()) for name in existing]
    text = readme.read_text()
    rows = [row for one in saved for row in one["summary"]]
    if not rows or START not in text or END not in text:
        return False
    before, rest = text.split(START, 1)
    after = rest.split(END, 1)[1]
    plots = [f"[{name}](bench/results/{name}.svg)" for name in existing if (results / f"{name}.svg").exists()]
    section = table(HEAD, rows) + "\n" + "\n".join(dict.fromkeys(describe(one["machine"]) for one in saved))
    links = f"\n\nPlots: {', '.join(plots)}." if plots else ""
    readme.write_text(f"{before}{START}\n{section}{links}\n{END}{after}")
    return True
