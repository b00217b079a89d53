"""The pages agree with the code."""

import re
import tomllib
from pathlib import Path

import pytest

from ottla.server.dispatch import served_apis

ROOT = Path(__file__).parents[3]
PACKAGES = sorted(path.parent.name for path in (ROOT / "src" / "ottla").glob("*/__init__.py"))
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
KAFKA_CLIENT_APIS = sorted(
    {*range(4), *range(8, 52), 55, 57, 60, 61, 64, 65, 66, 68, 69, 71, 72, *range(74, 82), *range(83, 93)}
)
"""API keys that an Apache Kafka 4.3 broker serves to clients, with client metrics configured."""


def test_architecture_lists_every_package_and_no_other():
    page = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
    listed = page.split("## Packages", 1)[1].split("\n## ", 1)[0]
    lines = re.findall(r"^- (.*?) –", listed, re.MULTILINE)
    assert sorted(name for line in lines for name in re.findall(r"`(\w+)`", line)) == PACKAGES


def test_architecture_and_glossary_name_existing_files():
    pages = (ROOT / "docs" / "ARCHITECTURE.md").read_text() + (ROOT / "docs" / "GLOSSARY.md").read_text()
    paths = {
        path if path.startswith(("tests/", "bench/")) else f"src/ottla/{path}"
        for path in re.findall(r"`((?:tests|bench|" + "|".join(PACKAGES) + r")/[\w/.]*)`", pages)
    }
    assert sorted(path for path in paths if not (ROOT / path).exists()) == []


def test_layering_contracts_name_every_package_and_no_other():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    assert sorted(set(re.findall(r"ottla\.(\w+)", str(contracts)))) == PACKAGES


def test_every_api_is_supported_or_listed_as_a_gap():
    """A gap that SKIPPED.md does not list is a bug, and so is a listed one that has been closed."""
    page = (ROOT / "docs" / "SKIPPED.md").read_text()
    missing = page.split("## Unsupported APIs", 1)[1].split("\n## ", 1)[0]
    skipped = [int(key) for key in re.findall(r"^\| (\d+) \|", missing, re.MULTILINE)]
    assert sorted([*skipped, *served_apis()]) == KAFKA_CLIENT_APIS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve(page):
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text())
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []
