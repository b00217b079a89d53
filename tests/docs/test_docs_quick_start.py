"""Run the quick start as written, except the installation.

That needs a built wheel and a package index; `.ci/try_wheel.py` runs it.
"""

import sys
from pathlib import Path

import pytest

from tests.docs.page import DOCS, blocks
from tests.docs.reader import PageReader, free_port

INSTALLATION = "1. Install"


@pytest.mark.timeout(240)
def test_quick_start(tmp_path: Path) -> None:
    page_blocks = blocks(DOCS / "quick-start.md")
    after = [block for block in page_blocks if block.heading != INSTALLATION]
    assert len(page_blocks) - len(after) == 1
    (tmp_path / "venv").symlink_to(sys.prefix)
    with PageReader(tmp_path, bootstrap=f"127.0.0.1:{free_port()}") as reader:
        assert reader.run(after) == len(after) > 10
