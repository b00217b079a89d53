"""What the pages say about the code is true of the code."""

import re
import tomllib
from pathlib import Path

import pytest

from ottla.server.dispatch import served_apis

ROOT = Path(__file__).parents[3]
ROOMS = sorted(path.parent.name for path in (ROOT / "src" / "ottla").glob("*/__init__.py"))
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
KAFKA_CLIENT_APIS = sorted(
    {*range(4), *range(8, 52), 55, 57, 60, 61, 64, 65, 66, 68, 69, 71, 72, *range(74, 82), *range(83, 93)}
)
"""The keys that a broker of Apache Kafka 4.3 serves to clients, with client metrics configured."""


def test_the_map_names_each_room_and_no_other():
    page = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
    drawn = re.search(r"```\nsrc/ottla/\n(.*?)^tests/", page, re.DOTALL | re.MULTILINE)
    assert sorted(re.findall(r"^  (\w+)/ ", drawn[1], re.MULTILINE)) == ROOMS


def test_the_layering_check_names_each_room_and_no_other():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    assert sorted(set(re.findall(r"ottla\.(\w+)", str(contracts)))) == ROOMS


def test_each_api_is_served_or_listed_as_a_gap():
    """A gap that SKIPPED does not list is a bug, and so is one that has been closed."""
    page = (ROOT / "docs" / "SKIPPED.md").read_text()
    missing = page.split("## Unsupported APIs", 1)[1].split("\n## ", 1)[0]
    skipped = [int(key) for key in re.findall(r"^\| (\d+) \|", missing, re.MULTILINE)]
    assert sorted([*skipped, *served_apis()]) == KAFKA_CLIENT_APIS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text())
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []
