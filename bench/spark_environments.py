"""The two environments that Spark's benchmarks run in: PySpark with the data source `ottla`, and the PySpark whose Kafka connector can be
had from Maven Central. Each has a process of its own that stays, so that rounds alternate and both are warm.

`OTTLA_SPARK_PYTHON` names a Python with `ottla[spark]`, this one unless given; `OTTLA_SPARK_PEER_PYTHON` one with PySpark 4.0.0, which is
made in the user's cache if it is not there (about 450 MB; the connector's jars are fetched by Spark).
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

PEER_VERSION = "4.0.0"
CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{PEER_VERSION}"
ROOT = Path(__file__).resolve().parent.parent
CACHE = Path.home() / ".cache" / f"pyspark-{PEER_VERSION}"
TITLES = {"kafka": "Spark's connector", "ottla": "ottla"}
"""By the formats' names."""


class SparkUnavailable(RuntimeError):
    """An environment cannot be had; it says why."""


def peer_python() -> str:
    """That of the peer's environment, which is made on first use."""
    given = os.environ.get("OTTLA_SPARK_PEER_PYTHON")
    if given:
        return given
    python = CACHE / "bin" / "python"
    if not python.exists():
        install = [str(python), "-m", "pip", "install", "-q", f"pyspark=={PEER_VERSION}"]
        for command in ([sys.executable, "-m", "venv", str(CACHE)], install):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SparkUnavailable(f"PySpark {PEER_VERSION}: {done.stderr.strip()[-500:]}")
    return str(python)


class Job:
    """A module that runs in one of the environments: it takes one line of JSON after another and responses each with one."""

    def __init__(self, format_name: str, module: str, arguments: Sequence[str]) -> None:
        python = peer_python() if format_name == "kafka" else os.environ.get("OTTLA_SPARK_PYTHON", sys.executable)
        environment = os.environ | {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python}
        if format_name == "kafka":
            environment["PYSPARK_SUBMIT_ARGS"] = f"--packages {CONNECTOR} pyspark-shell"
        self.format_name = format_name
        self._complaints = tempfile.TemporaryFile("w+")  # noqa: SIM115  # a pipe that nobody reads would fill up and stop Spark
        self._process = subprocess.Popen(
            [python, "-m", module, format_name, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            text=True,
            env=environment,
            cwd=ROOT,
        )

    def run(self, **question: Any) -> dict[str, Any]:
        """What it responses; SparkUnavailable with its last words if it has ended instead."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            line = ""
        else:
            line = process.stdout.readline()
        while line and not line.startswith("{"):
            line = process.stdout.readline()
        if not line:
            self._complaints.seek(0)
            raise SparkUnavailable(f"{TITLES[self.format_name]}: {self._complaints.read()[-3000:]}")
        response: dict[str, Any] = json.loads(line)
        return response

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        process = self._process
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._complaints.close()
