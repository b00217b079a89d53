"""Every page for users is typed in as it is written, in an empty directory, beside a broker where it does not start one itself."""

import re
import shutil
from itertools import groupby
from pathlib import Path

import pytest

from bench.peers import PeerUnavailable, jar_cache, java_command
from ottla.testing import Broker
from tests.docs.page import DOCS, Block, blocks
from tests.docs.reader import PageReader, free_port

WHOLE = ("delivery.md", "testing-with-ottla.md")
"""Pages that are one story, from the first block to the last."""
BY_SECTION = ("coming-from-kafka.md",)
"""Pages whose sections have nothing to do with one another."""
TOUR = ("One minute", "A broker inside your tests")
"""The sections of the project's front page that can be typed in."""
ELSEWHERE = {
    "quick-start.md": "tests/docs/test_docs_quick_start.py",
    "client.md": "tests/unit/client/test_client_docs.py",
    "spark.md": "tests/spark/test_spark_docs.py",
    "spark-writing.md": "tests/spark/test_spark_sink.py and test_spark_values_queries.py do what it says",
    "README.md": "an index",
    "CONFIGS.md": "generated",
    "cli.md": "generated",
    **dict.fromkeys(
        ("ARCHITECTURE.md", "OPERATING.md", "SKIPPED.md", "STYLE.md", "TESTING.md"), "for operators and contributors"
    ),
}
"""Where other pages are tried, or why there is nothing to try."""


def sections() -> list[tuple[str, str, list[Block]]]:
    found = [(page, "", blocks(DOCS / page)) for page in WHOLE]
    for page in BY_SECTION:
        found += [
            (page, heading, list(inside))
            for heading, inside in groupby(blocks(DOCS / page), lambda block: block.heading)
        ]
    tour = [block for block in blocks(DOCS.parent / "README.md") if block.heading in TOUR]
    return [*found, ("../README.md", "", tour)]


def require(heading: str) -> dict[str, str]:
    """What a section needs that no Python package brings: the variables it uses, or a skip that says what is missing."""
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
    ("heading", "written"), [pytest.param(*each[1:], id=f"{each[0]}:{each[1]}") for each in sections()]
)
def test_typed_in(heading: str, written: list[Block], tmp_path: Path) -> None:
    variables = require(heading)
    if any(re.search(r"^\$ ottla start", block.text, re.MULTILINE) for block in written):
        with PageReader(tmp_path, bootstrap=f"127.0.0.1:{free_port()}", environment=variables) as reader:
            assert reader.type_in(written) == len(written)
    else:
        with Broker() as broker, PageReader(tmp_path, bootstrap=broker.bootstrap, environment=variables) as reader:
            assert reader.type_in(written) == len(written)


def test_no_page_is_left_out() -> None:
    """A new page is either typed in, or it is said here why not."""
    assert sorted(page.name for page in DOCS.glob("*.md")) == sorted(
        name for name in (*WHOLE, *BY_SECTION, *ELSEWHERE) if (DOCS / name).exists()
    )


@pytest.mark.parametrize(
    "page", [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))], ids=lambda page: "/".join(page.parts[-2:])
)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []
