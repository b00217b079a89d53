"""The README's examples do what it says."""

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parents[3] / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_produce_and_consume_print_what_the_readme_shows(ottla_broker):
    (example,) = [code for code in EXAMPLES if "9092" in code]
    shown = README.split(f"{example}```\n\n```\n", 1)[1].split("```", 1)[0]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(example.replace("127.0.0.1:9092", ottla_broker.bootstrap), {})
    assert printed.getvalue() == shown


def test_the_example_of_a_test_passes(tmp_path):
    """In a directory of its own, so that only the installed plugin brings the fixture."""
    (example,) = [code for code in EXAMPLES if "ottla_broker" in code]
    (tmp_path / "test_example.py").write_text(example)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1][:8]) == (0, "1 passed"), done.stdout + done.stderr
