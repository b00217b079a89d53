"""The Spark pages: all examples run as written, and the table has every option of reads and names existing tests."""

import contextlib
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import ottla.spark
from ottla.spark.options import SOURCE

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"
WRITING = PAGE.with_name("spark-writing.md")
FILES = {"B": "batch_options", "S": "stream_options", "K": "kafka", "P": "patterns", "Q": "queries", "R": "ranges"}


SECONDS_MAX = 300
"""Limit of a script, on a busy machine."""


def blocks(page):
    """Return the Python blocks of a page. Each is a complete script."""
    return re.findall(r"^```py\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def as_run(text, bootstrap, directory):
    return text.replace("127.0.0.1:9092", bootstrap).replace("/tmp/", f"{directory}/")


@contextlib.contextmanager
def script(text, directory):
    """Run a script, whose errors are in the file `stderr`. Yields the process, which is stopped with Ctrl-C."""
    path = directory / "first_query.py"
    path.write_text(text)
    with (directory / "stderr").open("w") as errors:
        process = subprocess.Popen([sys.executable, path], stdout=subprocess.PIPE, stderr=errors, text=True)
        timer = threading.Timer(SECONDS_MAX, process.kill)
        timer.start()
        try:
            yield process
        finally:
            timer.cancel()
            process.send_signal(signal.SIGINT)
            process.communicate()


def test_first_query_prints_counts_as_a_script(bootstrap, make_topic, produce, tmp_path):
    produce(make_topic(name="orders"), [b"1", b"2"], key=b"anna")
    with script(as_run(blocks(PAGE)[0], bootstrap, tmp_path), tmp_path) as process:
        assert any(re.search(r"\|\s*anna\|\s*2\|", line) for line in process.stdout), (tmp_path / "stderr").read_text()


def test_dead_broker_is_named_soon(tmp_path):
    """Before, it took a minute, and stack traces of workers hid the error."""
    with script(as_run(blocks(PAGE)[0], "127.0.0.1:1", tmp_path), tmp_path) as process:
        process.wait()
    assert process.returncode == 1
    errors = (tmp_path / "stderr").read_text()
    assert "Check that the brokers of option kafka.bootstrap.servers (127.0.0.1:1) run and are reachable" in errors
    assert "BrokenPipe" not in errors
    assert "ottla.client.errors" not in errors


@pytest.mark.parametrize("page", [PAGE, WRITING], ids=["spark.md", "spark-writing.md"])
def test_examples_run(page, spark, bootstrap, make_topic, admin, tmp_path, monkeypatch, capfd):
    """Except for the first query, which has no end."""
    make_topic(name="orders")
    monkeypatch.setattr(ottla.spark, "session", lambda: spark, raising=False)
    exec(as_run(blocks(WRITING)[0], bootstrap, tmp_path), {})
    capfd.readouterr()
    for block in blocks(page)[1:]:
        exec(as_run(block, bootstrap, tmp_path), {})
    if page == WRITING:
        assert re.search(r"\|\s*1\|\s*250\|", capfd.readouterr().out)
    else:
        assert [each.offset for each in admin.list_group_offsets("orders-query").values()] == [2]


def test_every_option_is_in_the_table():
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    result = {name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])}
    assert [option.name for option in SOURCE if option.name not in result] == []


def test_every_test_in_the_table_exists():
    there = {letter: Path(__file__).with_name(f"test_spark_{name}.py").read_text() for letter, name in FILES.items()}
    missing = []
    for row in PAGE.read_text().splitlines():
        if not row.startswith("| `"):
            continue
        cell = row.split("|")[3]
        assert re.search(r"`test_|the same", cell), row
        letters = re.findall(r"\b([BSKPQR])\b", cell)
        for name in re.findall(r"`(test_\w+)", cell):
            if not any(f"def {name}" in there[letter] for letter in letters):
                missing.append(name)
    assert missing == []
