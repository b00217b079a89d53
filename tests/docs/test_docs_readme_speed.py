"""The README's pytest example is fast in a new process: no client runs into a pause of its own."""

import re
import subprocess
import sys
from pathlib import Path

from tests.docs.page import DOCS, blocks

RUNS = 8
EXAMPLE_SECONDS_MAX = 2.5
"""Below the 3 s that librdkafka pauses when a coordinator rejects it; about 0.4 s without that pause."""


def test_readme_example_never_pauses(tmp_path: Path) -> None:
    (example,) = (block for block in blocks(DOCS.parent / "README.md") if block.name == "test_orders.py")
    (tmp_path / example.name).write_text(example.text)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--durations=0", "-vv", example.name]
    slow = []
    for _ in range(RUNS):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        (seconds,) = re.findall(r"^([0-9.]+)s call ", done.stdout, re.MULTILINE)
        if float(seconds) > EXAMPLE_SECONDS_MAX:
            slow.append(seconds)
    assert slow == []
