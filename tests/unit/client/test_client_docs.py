"""docs/client.md: its examples run in order against a broker, and the names it lists exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import ottla.client
from ottla.client import Admin, AsyncAdmin
from ottla.testing import Broker

PAGE = (Path(__file__).parents[3] / "docs" / "client.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_examples_run(capsys):
    with Broker() as broker:
        for example in EXAMPLES:
            exec(compile(example.replace("127.0.0.1:9092", broker.bootstrap), "client.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "RecordMetadata(topic='orders'" in printed
    assert "TOPIC_ALREADY_EXISTS\nFalse\nUse it, pick another name, or delete it first.\n" in printed
    assert "86400000\n" in printed


def test_page_lists_every_admin_method():
    table = PAGE.split("## Administration")[1].split("## How")[0]
    listed = re.findall(r"`(\w+)`", table.split("| about")[1])
    for api in (Admin, AsyncAdmin):
        assert sorted(listed) == sorted(
            name for name in dir(api) if not name.startswith("_") and name not in ("close", "timeout_ms")
        )


@pytest.mark.parametrize("name", ottla.client.__all__)
def test_public_names_exist(name):
    assert getattr(ottla.client, name).__name__ == name


def test_unknown_name_raises():
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        ottla.client.Nothing  # noqa: B018


def test_import_loads_no_heavy_modules():
    """For fast startup, importing a name loads neither asyncio nor NumPy."""
    assert loaded("import ottla.client", "asyncio", "numpy", "uvloop", "cramjam", "ottla.node") == []
    assert loaded("from ottla.client import Producer", "numpy", "cramjam", "ottla.node") == []


def loaded(statement, *modules):
    """Return which of the modules a new interpreter has loaded after a statement."""
    code = f"import sys\n{statement}\nprint(*[name for name in {modules!r} if name in sys.modules])"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
