"""The reader of pages notices what is wrong: otherwise none of the pages would be tested."""

from pathlib import Path

import pytest

from tests.docs.page import blocks, commands, is_as_expected
from tests.docs.reader import Mismatch, PageReader


def typed(tmp_path: Path, page: str) -> int:
    path = tmp_path / "page.md"
    path.write_text(page)
    with PageReader(tmp_path) as reader:
        return reader.type_in(blocks(path))


def test_blocks_have_language_name_heading_and_place(tmp_path: Path) -> None:
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


def test_commands_have_their_output(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("```console\nfrom before\n$ cat <<E\n> one\n> E\none\n$ true\n```\n")
    (block,) = blocks(path)
    assert [(step.typed, step.output) for step in commands(block)] == [
        ("", "from before\n"),
        ("cat <<E\none\nE", "one\n"),
        ("true", ""),
    ]


@pytest.mark.parametrize(
    ("seen", "expected", "is_equal"),
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
        ("Ottla 1.2.3 serves\n", "Ottla 0.1.0 serves\n", True),
        ("a.b\n", "a.b\n", True),
        ("axb\n", "a.b\n", False),
        ("", "", True),
        ("something\n", "", False),
    ],
)
def test_outputs_are_compared(seen: str, expected: str, is_equal: bool) -> None:
    assert is_as_expected(seen, expected) is is_equal


def test_a_true_page_is_read_to_its_end(tmp_path: Path) -> None:
    page = (
        "```python\nnumber = 6\n```\n```python\nprint(number * 7)\n```\n```text\n42\n```\n"
        "```python answer.py\nprint(42)\n```\n```console\n$ python answer.py\n42\n$ cd ..\n```\n"
        "```console other\n$ echo begun; sleep 60\nbegun\n```\n"
        "```python test_answer.py\ndef test_answer():\n    import answer\n```\n"
    )
    assert typed(tmp_path, page) == 7


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
def test_an_untrue_page_is_noticed(tmp_path: Path, page: str) -> None:
    with pytest.raises(Mismatch):
        typed(tmp_path, page)


def test_python_that_fails_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        typed(tmp_path, "```python\n1 / 0\n```\n")


def test_a_command_that_never_says_it_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.docs.reader.STEP_SECONDS_MAX", 0.2)
    with pytest.raises(Mismatch, match=r"after 0\.2 s there was\nbegun"):
        typed(tmp_path, "```console other\n$ echo begun; sleep 60\nended\n```\n")
