"""Run every user page as written, in an empty directory, with a broker unless the page starts one itself."""

import re
import shutil
from itertools import groupby
from pathlib import Path

import pytest

from bench.peers import PeerUnavailable, jar_cache, java_command
from ottla.testing import Broker
from tests.docs.page import DOCS, Block, blocks
from tests.docs.reader import PageReader, free_port

WHOLE_PAGES = ("delivery.md", "testing-with-ottla.md")
"""Pages run from the first block to the last."""
BY_SECTION = ("coming-from-kafka.md",)
"""Pages whose sections are independent."""
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


def sections() -> list[tuple[str, str, list[Block]]]:
    found = [(page, "", blocks(DOCS / page)) for page in WHOLE_PAGES]
    for page in BY_SECTION:
        found += [
            (page, heading, list(inside))
            for heading, inside in groupby(blocks(DOCS / page), lambda block: block.heading)
        ]
    tour = [block for block in blocks(DOCS.parent / "README.md") if block.heading in TOUR]
    return [*found, ("../README.md", "", tour)]


def require(heading: str) -> dict[str, str]:
    """Return the environment variables a section needs. Skips the test if Java, its jars or kcat is missing."""
    if heading == "kcat" and shutil.which("kcat") is None:
        pytest.skip("no kcat on the PATH")
    if heading == "Java":
        try:
            java_command()
        except PeerUnavailable as reason:
            pytest.skip(str(reason))
        if not any((jar_cache() / "libs").glob("kafka-clients-*.jar")):
            pytest.skip(f"Kafka's jars are not in {jar_cache()} (KAFKA_JARS names another directory)")
        return {"KAFKA_LIBS": str(jar_cache() / "libs")}
    return {}


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("heading", "page_blocks"), [pytest.param(*each[1:], id=f"{each[0]}:{each[1]}") for each in sections()]
)
def test_page_runs_as_written(heading: str, page_blocks: list[Block], tmp_path: Path) -> None:
    variables = require(heading)
    if any(re.search(r"^\$ ottla start", block.text, re.MULTILINE) for block in page_blocks):
        with PageReader(tmp_path, bootstrap=f"127.0.0.1:{free_port()}", environment=variables) as reader:
            assert reader.run(page_blocks) == len(page_blocks)
    else:
        with Broker() as broker, PageReader(tmp_path, bootstrap=broker.bootstrap, environment=variables) as reader:
            assert reader.run(page_blocks) == len(page_blocks)


def test_every_page_is_covered() -> None:
    """A new page must be run, or listed with the reason."""
    assert sorted(page.name for page in DOCS.glob("*.md")) == sorted(
        name for name in (*WHOLE_PAGES, *BY_SECTION, *ELSEWHERE) if (DOCS / name).exists()
    )


@pytest.mark.parametrize(
    "page", [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))], ids=lambda page: "/".join(page.parts[-2:])
)
def test_links_resolve(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []
