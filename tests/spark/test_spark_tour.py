"""The demo and the notebook run to completion."""

import json
import os
import subprocess
import sys
from pathlib import Path

NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebooks" / "spark" / "pipeline.ipynb"
SECONDS_MAX = 240


def test_demo_counts_every_order() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ottla", "demo", "pipeline", "--seconds", "2", "--plain"],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "every order was counted exactly once" in done.stdout


def test_notebook_runs(tmp_path: Path) -> None:
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    script = tmp_path / "notebook.py"
    script.write_text("\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"))
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=SECONDS_MAX, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert "|2023-11-15 00:00:00|apples|   200|" in done.stdout


def test_demo_without_spark_says_what_to_install(tmp_path: Path) -> None:
    """With a `pyspark` that cannot be imported."""
    (tmp_path / "pyspark.py").write_text("raise ImportError")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, "-m", "ottla", "demo", "pipeline"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=environment,
    )
    assert done.returncode == 1
    assert "ottla[spark]" in done.stderr
