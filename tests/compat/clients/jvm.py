"""One JVM per test session that runs Java clients and Kafka's tools."""

import base64
import json
import pathlib
import subprocess
from dataclasses import dataclass
from typing import Any

from bench.peers import TOOL_FLAGS, PeerUnavailable, jar_cache, java_command

JAVA_SOURCES = pathlib.Path(__file__).parent.parent / "java"


def missing() -> str | None:
    """Return why Java clients cannot run here, or None. Tests do not fetch the jars; a benchmark does, with Maven."""
    try:
        java_command()
    except PeerUnavailable as reason:
        return str(reason)
    if not any((jar_cache() / "libs").glob("kafka-clients-*.jar")):
        return f"Kafka's jars are not in {jar_cache()} (KAFKA_JARS names another directory)"
    return None


@dataclass(frozen=True, slots=True)
class ToolResult:
    status: int
    out: str
    err: str

    def lines(self) -> list[str]:
        return [line for line in self.out.splitlines() if line.strip()]


class Jvm:
    """Calls the worker in `java/Worker.java`, which starts on first use."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def call(self, operation: str, **fields: Any) -> Any:
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"op": operation, **fields}).encode() + b"\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"the Java worker ended with status {process.wait()}")
        response = json.loads(line)
        if "error" in response:
            raise RuntimeError(response["error"])
        return response["ok"]

    def tool(self, name: str, *args: str, stdin: bytes = b"") -> ToolResult:
        """Run the `main` of one of Kafka's tools, given its class name."""
        response = self.call("tool", **{"class": name, "args": list(args), "stdin": base64.b64encode(stdin).decode()})
        return ToolResult(response["status"], response["out"], response["err"])

    def stop(self) -> None:
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            options = [*TOOL_FLAGS, "-Xmx768m", f"-Dlog4j2.configurationFile={JAVA_SOURCES / 'log4j2.yaml'}"]
            command = [java_command(), *options, "-cp", f"{jar_cache()}/libs/*", str(JAVA_SOURCES / "Worker.java")]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        return self._process
