"""What a benchmark hands back, and where it goes: a table and a plot for people, figures for programs, README's summary from the latter."""

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
TITLES = {"kafka": KAFKA, "ottla": "Ottla"}
"""Every broker that is compared, in the order of the columns."""


@dataclass(frozen=True, slots=True)
class RunSize:
    """How long to measure. `QUICK` is for seeing that all works; its figures are not kept."""

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
    """A bar that a figure has to clear. `measured` is None where the peer is missing."""

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
        """What, the bar, what was measured, whether it holds."""
        shown = "–" if self.measured is None else f"{self.measured:.2f}{self.unit}"
        verdict = {True: "yes", False: "**no**", None: "–"}[self.holds]
        return [self.what, f"{'≤' if self.at_most else '≥'} {self.limit:.4g}{self.unit}", shown, verdict]


@dataclass(frozen=True, slots=True)
class Report:
    """One benchmark's outcome. `summary` are its lines in README's table: what, Kafka's figure, ours, how they compare."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str
    figures: dict[str, Any]
    summary: Sequence[Sequence[str]] = field(default=())
    goals: Sequence[Goal] = field(default=())
    plot: Plot | None = None


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table: the first column is text, the others are figures."""
    lines = [head, ["---", *("---:" for _ in head[1:])], *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def measured_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same without columns in which nothing was measured: the peer's, where there is none."""
    kept = [0, *(index for index in range(1, len(head)) if any(cells[index] not in ("", "–") for cells in rows))]
    return table([head[index] for index in kept], [[cells[index] for index in kept] for cells in rows])


def quotient(ours: float | None, theirs: float | None) -> float | None:
    """How many times theirs ours is, where both are there."""
    return ours / theirs if ours is not None and theirs else None


def ratio(ours: float | None, theirs: float | None) -> str:
    """The same for people; a dash where one of them is missing."""
    found = quotient(ours, theirs)
    return f"{found:.2f}×" if found is not None else "–"


def row(label: str, figures: Mapping[str, float | None], shape: str, unit: str = "") -> list[str]:
    """A line of a table with `HEAD`: each broker's figure, and ours over Kafka's."""
    found = [figures.get(name) for name in TITLES]
    shown = ["–" if value is None else f"{value:{shape}}{unit}" for value in found]
    return [label, *shown, ratio(figures.get("ottla"), figures.get("kafka"))]


def rows_of(kinds: Sequence[tuple[str, str, str, str]], results: Mapping[str, Mapping[str, float]]) -> list[list[str]]:
    """Such a line for each kind: its label, which of each broker's figures it shows, their shape and unit."""
    return [
        row(label, {name: one[key] for name, one in results.items()}, shape, unit) for label, key, shape, unit in kinds
    ]


def by_broker(figures: Mapping[str, Sequence[float | None]]) -> dict[str, Sequence[float | None]]:
    """A plot's series, under the names that people read."""
    return {title: figures[name] for name, title in TITLES.items() if name in figures}


def sync_disks() -> None:
    """Have all that was written brought to the disk, so that one load does not pay for the one before."""
    os.sync()


def machine() -> dict[str, Any]:
    """What a reader needs to judge the figures. No names of hosts or people."""
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
        f"{facts['cores']} cores ({facts['cpu']}) shared by broker and load, {facts['memory_gb']} GB, {facts['kernel']}, "
        f"Python {facts['python']}; {facts['date']}."
    )


def write_report(name: str, report: Report, directory: Path) -> None:
    """NAME.md, NAME.json and, where there is a plot, NAME.svg."""
    directory.mkdir(parents=True, exist_ok=True)
    facts = machine()
    parts = [f"# {report.title}\n", measured_table(report.head, report.rows), f"{report.note}\n"]
    if report.goals:
        parts.append(table(["bar", "limit", "measured", "holds"], [goal.cells() for goal in report.goals]))
    if report.plot is not None:
        (directory / f"{name}.svg").write_text(draw(report.plot))
        parts.append(f"![{report.plot.title}]({name}.svg)\n")
    parts.append(f"{describe(facts)} Drawn by `./dev bench {name}`.\n")
    (directory / f"{name}.md").write_text("\n".join(parts))
    goals = [asdict(goal) | {"holds": goal.holds} for goal in report.goals]
    kept = {"machine": facts, "figures": report.figures, "summary": report.summary, "goals": goals}
    (directory / f"{name}.json").write_text(json.dumps(kept, indent=1) + "\n")


def update_readme(names: Sequence[str], *, results: Path = RESULTS, readme: Path = README) -> bool:
    """Put the kept summaries between README's markers; False where none was kept yet or README has no markers."""
    there = [name for name in names if (results / f"{name}.json").exists()]
    kept = [json.loads((results / f"{name}.json").read_text()) for name in there]
    text = readme.read_text()
    rows = [row for one in kept for row in one["summary"]]
    if not rows or START not in text or END not in text:
        return False
    before, rest = text.split(START, 1)
    after = rest.split(END, 1)[1]
    plots = [f"[{name}](bench/results/{name}.svg)" for name in there if (results / f"{name}.svg").exists()]
    drawn = table(HEAD, rows) + "\n" + "\n".join(dict.fromkeys(describe(one["machine"]) for one in kept))
    seen = f"\n\nPlots: {', '.join(plots)}." if plots else ""
    readme.write_text(f"{before}{START}\n{drawn}{seen}\n{END}{after}")
    return True
