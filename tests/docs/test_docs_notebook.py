"""Run the notebooks and compare their outputs with the saved ones."""

import json
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.docs.page import DOCS

NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))


def results(notebook: nbformat.NotebookNode) -> list[list[str]]:
    """Return the outputs of each code cell."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [[output.get("text") or output["data"]["text/plain"] for output in cell.outputs] for cell in cells]


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A kernel with this interpreter, regardless of installed kernels."""
    directory = tmp_path / "jupyter" / "kernels" / "this"
    directory.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (directory / "kernel.json").write_text(json.dumps({"argv": command, "display_name": "this", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    return "this"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path: Path, kernel: str, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    saved = results(notebook)
    NotebookClient(notebook, timeout=60, kernel_name=kernel, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert results(notebook) == saved
    assert any(saved)
