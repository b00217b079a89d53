"""docs/spark.md: its examples run, and its table has every option of reads and names existing tests."""

import re
from pathlib import Path

import ottla.spark
from ottla.spark.options import SOURCE

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"
FILES = {"B": "batch_options", "S": "stream_options", "K": "kafka", "P": "patterns", "Q": "queries", "R": "ranges"}


def test_examples_run(spark, bootstrap, make_topic, produce, tmp_path, monkeypatch):
    produce(make_topic(name="orders"), [b"1", b"2"], key=b"anna")
    monkeypatch.setattr(ottla.spark, "session", lambda: spark, raising=False)
    names = {}
    for block in re.findall(r"^```py\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL):
        text = (
            block.replace("127.0.0.1:9092", bootstrap)
            .replace("/tmp/", f"{tmp_path}/")
            .replace('format("console")', 'format("noop")')
        )
        exec(text, names)
        names["query"].processAllAvailable()
        assert names["query"].exception() is None
        assert sum(progress["numInputRows"] for progress in names["query"].recentProgress) == 2
        names["query"].stop()


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
