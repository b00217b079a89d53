"""The two environments of the Spark benchmarks: PySpark with the data source `ottla`, and the PySpark version whose
Kafka connector is on Maven Central. Each runs in its own long-lived process, so that rounds alternate and both are
warm.

`OTTLA_SPARK_PYTHON` is a Python with `ottla[spark]`, by default this one. `OTTLA_SPARK_PEER_PYTHON` is one with PySpark
4.0.0; by default an environment is created in the user's cache (about 450 MB; Spark downloads the connector's jars).
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
"""Titles by format name."""


class SparkUnavailable(RuntimeError):
    """An environment is not available, with the reason."""


def peer_python() -> str:
    """Return the Python of the peer's environment, which is created on first use."""
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
    """A module in one of the environments, which reads requests and writes responses as lines of JSON."""

    def __init__(self, format_name: str, module: str, arguments: Sequence[str]) -> None:
        python = peer_python() if format_name == "kafka" else os.environ.get("OTTLA_SPARK_PYTHON", sys.executable)
        environment = os.environ | {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python}
        if format_name == "kafka":
            environment["PYSPARK_SUBMIT_ARGS"] = f"--packages {CONNECTOR} pyspark-shell"
        self.format_name = format_name
        self._stderr = tempfile.TemporaryFile("w+")  # noqa: SIM115  # an unread pipe would fill up and block Spark
        self._process = subprocess.Popen(
            [python, "-m", module, format_name, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
            env=environment,
            cwd=ROOT,
        )

    def run(self, **request: Any) -> dict[str, Any]:
        """Run a request. Raises SparkUnavailable, with the job's error output, if the process has ended."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            line = ""
        else:
            line = process.stdout.readline()
        while line and not line.startswith("{"):
            line = process.stdout.readline()
        if not line:
            self._stderr.seek(0)
            raise SparkUnavailable(f"{TITLES[self.format_name]}: {self._stderr.read()[-3000:]}")
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
        self._stderr.close()
