"""A reader who types in all of a page, in order, in an empty directory, and compares what is seen with what the page says."""

import io
import os
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any, Self

from tests.docs.page import Block, begins_as_expected, commands, is_as_expected
from tests.docs.terminal import Terminal

WRITTEN = "127.0.0.1:9092"
"""Where pages have their broker."""
OUTPUTS = ("", "text")
STEP_SECONDS_MAX = 120.0


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


class Mismatch(AssertionError):
    """The page says one thing, and another was seen."""


class PageReader:
    """`bootstrap` takes the place of the address that is written, in what is typed and in what is seen; `tools` is where commands are."""

    def __init__(
        self,
        directory: Path,
        *,
        bootstrap: str = WRITTEN,
        tools: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._directory = directory
        self._bootstrap = bootstrap
        self._port = bootstrap.rpartition(":")[2]
        tools = Path(sys.executable).parent if tools is None else tools
        clean = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "OTTLA_", "COV_"))
        }
        self._environment = {
            **clean, "PATH": f"{tools}:{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONWARNINGS": "ignore::DeprecationWarning", **(environment or {}),
        }  # fmt: skip
        if bootstrap != WRITTEN:
            self._environment["OTTLA_BOOTSTRAP"] = bootstrap
        self._terminals: dict[str, Terminal] = {}
        self._expected: dict[str, str] = {}
        self._namespace: dict[str, Any] = {"__name__": "__main__"}
        self._printed: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        for terminal in reversed(self._terminals.values()):
            terminal.close()

    def type_in(self, page: Iterable[Block]) -> int:
        """All blocks; how many there were. Tests that the page itself does not run are run at its end, together: pytest starts slowly."""
        written = list(page)
        for block in written:
            self._type_block(block)
        typed = "".join(block.text for block in written if block.language == "console")
        if tests := [block.name for block in written if block.name.startswith("test_") and block.name not in typed]:
            self._run_pytest(tests)
        return len(written)

    def _type_block(self, block: Block) -> None:
        text = block.text.replace(WRITTEN, self._bootstrap)
        printed, self._printed = self._printed, None
        if block.language in OUTPUTS:
            if printed is None:
                raise Mismatch(f"{block}: an output without a Python block that prints it")
            if not is_as_expected(printed, text):
                raise Mismatch(f"{block}: expected\n{text}\nbut it printed\n{printed}")
        elif block.language == "console":
            self._type_console(block)
        elif block.name:
            (self._directory / block.name).write_text(text)
        elif block.language == "python":
            self._run_python(block, text)
        else:
            raise Mismatch(f"{block}: nobody knows how to try a block of {block.language!r}")

    def _run_python(self, block: Block, text: str) -> None:
        out = io.StringIO()
        padding = "\n" * block.line  # so that tracebacks name the page's own lines
        with redirect_stdout(out), chdir(self._directory):
            exec(compile(padding + text, block.page, "exec"), self._namespace)
        self._printed = out.getvalue()

    def _run_pytest(self, names: list[str]) -> None:
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--durations=5",
            "--rootdir",
            ".",
            *names,
        ]
        done = subprocess.run(
            command, cwd=self._directory, env=self._environment, capture_output=True, text=True, check=False
        )
        print(done.stdout)
        if done.returncode or "skipped" in done.stdout:
            raise Mismatch(f"pytest ended with {done.returncode}\n{done.stdout}{done.stderr}")

    def _type_console(self, block: Block) -> None:
        terminal = self._terminals.get(block.name)
        if terminal is None:
            terminal = self._terminals[block.name] = Terminal(self._directory, self._environment)
        steps = commands(block)
        for index, step in enumerate(steps):
            expected = step.output.replace(WRITTEN, self._bootstrap)
            if step.typed:
                terminal.type(self._placed(step.typed))
                self._expected[block.name] = expected
            else:
                self._expected[block.name] += expected
            if block.name and index == len(steps) - 1:
                self._see(block, terminal)
            else:
                self._finish(block, terminal, step.typed)

    def _see(self, block: Block, terminal: Terminal) -> None:
        """The command goes on; this much of its output must come."""
        expected = self._expected[block.name]
        if not terminal.wait(lambda: begins_as_expected(terminal.seen, expected), STEP_SECONDS_MAX):
            raise Mismatch(
                f"{block}: expected\n{expected}\nbut after {STEP_SECONDS_MAX:g} s there was\n{terminal.seen}"
            )

    def _finish(self, block: Block, terminal: Terminal, typed: str) -> None:
        if not terminal.wait(lambda: terminal.status() is not None, STEP_SECONDS_MAX):
            raise Mismatch(f"{block}: `{typed}` did not end within {STEP_SECONDS_MAX:g} s:\n{terminal.seen}")
        if terminal.status():
            raise Mismatch(f"{block}: `{typed}` ended with {terminal.status()}:\n{terminal.seen}")
        expected = self._expected[block.name]
        if not is_as_expected(terminal.seen, expected):
            raise Mismatch(f"{block}: `{typed}` should print\n{expected}\nbut printed\n{terminal.seen}")

    def _placed(self, typed: str) -> str:
        """A broker that is started gets the port at which it is expected."""
        typed = typed.replace(WRITTEN, self._bootstrap)
        if typed.startswith("ottla start") and ".properties" not in typed and self._bootstrap != WRITTEN:
            return f"{typed} --port {self._port}"
        return typed
