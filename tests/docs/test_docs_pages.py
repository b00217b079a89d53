"""Every page for users is typed in as it is written, section by section, in an empty directory beside a broker of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.testing import Broker
from tests.docs.page import DOCS, Block, blocks
from tests.docs.reader import PageReader

WHOLE = ("delivery.md", "testing-with-ottla.md")
"""Pages that are one story, from the first block to the last."""


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.mark.timeout(180)
@pytest.mark.parametrize("page", WHOLE)
def test_page(page: str, broker: Broker, tmp_path: Path) -> None:
    written: list[Block] = blocks(DOCS / page)
    with PageReader(tmp_path, bootstrap=broker.bootstrap) as reader:
        assert reader.type_in(written) == len(written) > 0
