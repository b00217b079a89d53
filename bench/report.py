"""What a benchmark hands back, and where it goes: a table for people, figures for programs, and README's summary drawn from the latter."""

import json
import os
import platform
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.peers import KAFKA_VERSION

RESULTS = Path(__file__).parent / "results"
README = Path(__file__).parent.parent / "README.md"
START, END = "<!-- bench:start -->", "<!-- bench:end -->"
KAFKA = f"Apache Kafka {KAFKA_VERSION.rsplit('.', 1)[0]}"


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to measure. `--quick` is for seeing that all works; its figures are not kept."""

    warm_seconds: float = 10.0
    round_seconds: float = 2.0
    rounds: int = 5
    fill_requests: int = 25_000
    starts: int = 5
    perf_records: int = 3_000_000
    perf_rounds: int = 5
    rest_seconds: float = 30.0


QUICK = Effort(
    warm_seconds=1.0, round_seconds=0.5, rounds=3, fill_requests=5_000, starts=1, perf_records=200_000, perf_rounds=1, rest_seconds=2.0
)


@dataclass(frozen=True, slots=True)
class Report:
    """One benchmark's outcome. `summary` are its lines in README's table: what, Kafka's figure, ours, how they compare."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str
    figures: dict[str, Any]
    summary: Sequence[Sequence[str]] = field(default=())


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table: the first column is text, the others are figures."""
    lines = [head, ["---", *("---:" for _ in head[1:])], *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def ratio(ours: float | None, theirs: float | None) -> str:
    """How many times theirs ours is; a dash where one of them is missing."""
    return f"{ours / theirs:.2f}×" if ours is not None and theirs else "–"


def settle() -> None:
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


def write(name: str, report: Report, directory: Path) -> None:
    """NAME.md and NAME.json."""
    directory.mkdir(parents=True, exist_ok=True)
    facts = machine()
    text = f"# {report.title}\n\n{table(report.head, report.rows)}\n{report.note}\n\n{describe(facts)} Drawn by `./dev bench {name}`.\n"
    (directory / f"{name}.md").write_text(text)
    kept = {"machine": facts, "figures": report.figures, "summary": report.summary}
    (directory / f"{name}.json").write_text(json.dumps(kept, indent=1) + "\n")


def draw_readme(names: Sequence[str], *, results: Path = RESULTS, readme: Path = README) -> bool:
    """Put the kept summaries between README's markers; False where none was kept yet or README has no markers."""
    kept = [json.loads(path.read_text()) for path in (results / f"{name}.json" for name in names) if path.exists()]
    text = readme.read_text()
    rows = [row for one in kept for row in one["summary"]]
    if not rows or START not in text or END not in text:
        return False
    before, rest = text.split(START, 1)
    after = rest.split(END, 1)[1]
    drawn = table(["", KAFKA, "Ottla", "Ottla / Kafka"], rows)
    readme.write_text(f"{before}{START}\n{drawn}\n{describe(kept[0]['machine'])}\n{END}{after}")
    return True
