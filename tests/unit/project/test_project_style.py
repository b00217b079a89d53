"""The rules of docs/STYLE.md that a program can check and ruff does not."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 50
LONG_FUNCTIONS = {
    "src/ottla/client/accumulator.py": ["try_send"],
    "src/ottla/log/segment_recovery.py": ["recover_segment"],
    "src/ottla/server/dispatch.py": ["served_apis"],
    "src/ottla/wire/batch_validation.py": ["validate_batch"],
    "src/ottla/wire/record_scan.py": ["collect_stats_fast"],
}
"""Exceptions, each argued at the place: hot paths, and one table."""
MODULES = [*sorted((ROOT / "src").rglob("*.py")), *sorted((ROOT / "bench").rglob("*.py"))]
NAMES_TO_AVOID = ("utils", "helpers", "util", "helper", "misc", "common")


@pytest.fixture(scope="module")
def trees():
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text()) for path in MODULES}


def test_files_are_short():
    counts = {str(path.relative_to(ROOT)): path.read_text().count("\n") for path in MODULES}
    assert {name: lines for name, lines in counts.items() if lines > FILE_LINES_MAX} == {}


def test_functions_are_short(trees):
    long: dict[str, list[str]] = {}
    for name, tree in trees.items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if (node.end_lineno or 0) - node.lineno >= FUNCTION_LINES_MAX:
                long.setdefault(name, []).append(node.name)
    assert long == LONG_FUNCTIONS


def test_every_module_begins_with_a_sentence(trees):
    first_lines = {name: (ast.get_docstring(tree) or "") for name, tree in trees.items() if tree.body}
    assert [name for name, text in first_lines.items() if not text.strip()] == []


def test_no_exception_is_swallowed(trees):
    swallowed = [
        f"{name}:{node.lineno}"
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler) and len(node.body) == 1 and isinstance(node.body[0], ast.Pass)
    ]
    assert swallowed == []


def test_module_names_are_specific():
    assert [str(path.relative_to(ROOT)) for path in MODULES if path.stem in NAMES_TO_AVOID] == []


def test_no_unfinished_work_is_marked():
    marks = ("TO" + "DO", "FIX" + "ME", "XX" + "X")
    files = [*MODULES, *sorted((ROOT / "tests").rglob("*.py"))]
    assert [str(path.relative_to(ROOT)) for path in files if any(mark in path.read_text() for mark in marks)] == []
