"""Run every user page as written, in an empty directory, with a broker unless the page starts one itself."""

import re
import shutil
from pathlib import Path

import pytest

from bench.peers import jar_cache
from ottla.testing import Broker
from tests.compat.clients.jvm import missing as missing_java
from tests.docs.page import DOCS, Block, blocks
from tests.docs.reader import PageReader, free_port

WHOLE_PAGES = ("coming-from-kafka.md", "delivery.md", "testing-with-ottla.md")
"""Pages run from the first block to the last."""
TOUR = ("A one-minute tour", "A broker in your tests")
"""The executable sections of the project's README."""
ELSEWHERE = {
    "quick-start.md": "tests/docs/test_docs_quick_start.py",
    "client.md": "tests/unit/client/test_client_docs.py",
    "spark.md": "tests/spark/test_spark_docs.py",
    "spark-writing.md": "tests/spark/test_spark_sink.py and test_spark_values_queries.py do what it says",
    "README.md": "an index",
    "CONFIGS.md": "generated",
    "cli.md": "generated",
    **dict.fromkeys(
        ("ARCHITECTURE.md", "GLOSSARY.md", "OPERATING.md", "SKIPPED.md", "STYLE.md", "TESTING.md"),
        "for operators and contributors",
    ),
}
"""Where other pages are tested, or why they have nothing to run."""


def pages() -> list[tuple[str, list[Block]]]:
    tour = [block for block in blocks(DOCS.parent / "README.md") if block.heading in TOUR]
    return [*((page, blocks(DOCS / page)) for page in WHOLE_PAGES), ("../README.md", tour)]


def missing_for(heading: str) -> str | None:
    """Return why a section cannot run on this machine, or None."""
    if heading == "kcat" and shutil.which("kcat") is None:
        return "no kcat on the PATH"
    return missing_java() if heading == "Java" else None


@pytest.mark.timeout(180)
@pytest.mark.parametrize("page_blocks", [pytest.param(each, id=page) for page, each in pages()])
def test_page_runs_as_written(page_blocks: list[Block], tmp_path: Path) -> None:
    """Sections that need a missing tool are left out; the test then counts as skipped."""
    missing = {block.heading: reason for block in page_blocks if (reason := missing_for(block.heading))}
    runnable = [block for block in page_blocks if block.heading not in missing]
    variables = {"KAFKA_LIBS": str(jar_cache() / "libs")}
    if any(re.search(r"^\$ ottla start", block.text, re.MULTILINE) for block in runnable):
        with PageReader(tmp_path, bootstrap=f"127.0.0.1:{free_port()}", environment=variables) as reader:
            assert reader.run(runnable) == len(runnable)
    else:
        with Broker() as broker, PageReader(tmp_path, bootstrap=broker.bootstrap, environment=variables) as reader:
            assert reader.run(runnable) == len(runnable)
    if missing:
        pytest.skip("; ".join(f"left out {heading}: {reason}" for heading, reason in missing.items()))


def test_every_page_is_covered() -> None:
    """A new page must be run, or listed with the reason."""
    assert sorted(page.name for page in DOCS.glob("*.md")) == sorted(
        name for name in (*WHOLE_PAGES, *ELSEWHERE) if (DOCS / name).exists()
    )


@pytest.mark.parametrize(
    "page", [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))], ids=lambda page: "/".join(page.parts[-2:])
)
def test_links_resolve(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []
