"""The page reader itself: it must detect every mismatch, or pages would not be tested."""

from pathlib import Path

import pytest

from tests.docs.page import blocks, commands, matches
from tests.docs.reader import Mismatch, PageReader


def run_page(tmp_path: Path, page: str) -> int:
    path = tmp_path / "page.md"
    path.write_text(page)
    with PageReader(tmp_path) as reader:
        return reader.run(blocks(path))


def test_blocks(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(
        "# Page\n```python\none = 1\n```\n## Part\n- item\n  ```console here\n  $ ls\n  ```\n```\nplain\n```\n"
    )
    found = [(block.line, block.heading, block.language, block.name, block.text) for block in blocks(path)]
    assert found == [
        (2, "", "python", "", "one = 1\n"),
        (7, "Part", "console", "here", "$ ls\n"),
        (10, "Part", "", "", "plain\n"),
    ]


def test_commands(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("```console\nfrom before\n$ cat <<E\n> one\n> E\none\n$ true\n```\n")
    (block,) = blocks(path)
    assert [(step.command, step.output) for step in commands(block)] == [
        ("", "from before\n"),
        ("cat <<E\none\nE", "one\n"),
        ("true", ""),
    ]


@pytest.mark.parametrize(
    ("actual", "expected", "is_match"),
    [
        ("one\ntwo\n", "one\ntwo\n", True),
        ("one\ntwo\n", "one\n", False),
        ("one\n", "one\ntwo\n", False),
        ("took 0.3 s\n", "took ... s\n", True),
        ("took 0.3 ms\n", "took ... s\n", False),
        ("took 0.3\nor so s\n", "took ... s\n", False),
        ("a\nb\nc\nd\n", "a\n...\nd\n", True),
        ("a\nd\n", "a\n...\nd\n", True),
        ("a\nb\n", "a\n...\nd\n", False),
        ("1 record in 7.0 s\n", "1 record in 0.1 s\n", True),
        ("Ottla 1.2.3 listening\n", "Ottla 0.1.0 listening\n", True),
        ("a.b\n", "a.b\n", True),
        ("axb\n", "a.b\n", False),
        ("", "", True),
        ("something\n", "", False),
    ],
)
def test_output_matching(actual: str, expected: str, is_match: bool) -> None:
    assert matches(actual, expected) is is_match


def test_correct_page_runs_to_the_end(tmp_path: Path) -> None:
    page = (
        "```python\nnumber = 6\n```\n```python\nprint(number * 7)\n```\n```text\n42\n```\n"
        "```python answer.py\nprint(42)\n```\n```console\n$ python answer.py\n42\n$ cd ..\n```\n"
        "```console other\n$ echo begun; sleep 60\nbegun\n```\n"
        "```python test_answer.py\ndef test_answer():\n    import answer\n```\n"
    )
    assert run_page(tmp_path, page) == 7


@pytest.mark.parametrize(
    "page",
    [
        "```python\nprint(41)\n```\n```text\n42\n```\n",
        "```text\n42\n```\n",
        "```console\n$ echo 41\n42\n```\n",
        "```console\n$ echo 41\n```\n",
        "```console\n$ false\n```\n",
        "```python test_answer.py\ndef test_answer():\n    assert 41 == 42\n```\n",
        "```python test_answer.py\nimport pytest\n\ndef test_answer():\n    pytest.skip('no')\n```\n",
        "```yaml\nkey: value\n```\n",
    ],
)
def test_mismatch_is_detected(tmp_path: Path, page: str) -> None:
    with pytest.raises(Mismatch):
        run_page(tmp_path, page)


def test_python_error_is_raised(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        run_page(tmp_path, "```python\n1 / 0\n```\n")


def test_missing_output_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.docs.reader.STEP_SECONDS_MAX", 0.2)
    with pytest.raises(Mismatch, match=r"after 0\.2 s, got\nbegun"):
        run_page(tmp_path, "```console other\n$ echo begun; sleep 60\nended\n```\n")
