"""The quick start is typed in as it is written, all of it but for the installation.

That needs a built wheel and a package index, and is typed in too where the wheel is tried: `.ci/try_wheel.py`.
"""

import sys
from pathlib import Path

import pytest

from tests.docs.page import DOCS, blocks
from tests.docs.reader import PageReader, free_port

INSTALLATION = "1. Install"


@pytest.mark.timeout(240)
def test_quick_start(tmp_path: Path) -> None:
    written = blocks(DOCS / "quick-start.md")
    after = [block for block in written if block.heading != INSTALLATION]
    assert len(written) - len(after) == 1
    (tmp_path / "venv").symlink_to(sys.prefix)
    with PageReader(tmp_path, bootstrap=f"127.0.0.1:{free_port()}") as reader:
        assert reader.type_in(after) == len(after) > 10
