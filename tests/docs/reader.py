"""Run a documentation page in order, in an empty directory, and compare the output with the page."""

import io
import os
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any, Self

from tests.docs.page import Block, commands, matches, starts_with
from tests.docs.terminal import Terminal

PAGE_BOOTSTRAP = "127.0.0.1:9092"
"""Broker address written on the pages."""
OUTPUTS = ("", "text")
STEP_SECONDS_MAX = 120.0


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


class Mismatch(AssertionError):
    """The output differs from the page."""


class PageReader:
    """Runs pages. `bootstrap` replaces the address in commands and output; `tools` is the directory of `ottla`."""

    def __init__(
        self,
        directory: Path,
        *,
        bootstrap: str = PAGE_BOOTSTRAP,
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
            **clean,
            "PATH": f"{tools}:{os.environ['PATH']}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONWARNINGS": "ignore::DeprecationWarning",
            **(environment or {}),
        }
        if bootstrap != PAGE_BOOTSTRAP:
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

    def run(self, page: Iterable[Block]) -> int:
        """Run all blocks, then the test files that the page does not run itself. Return the number of blocks."""
        page_blocks = list(page)
        for block in page_blocks:
            self._run_block(block)
        commands_text = "".join(block.text for block in page_blocks if block.language == "console")
        if tests := [
            block.name for block in page_blocks if block.name.startswith("test_") and block.name not in commands_text
        ]:
            self._run_pytest(tests)
        return len(page_blocks)

    def _run_block(self, block: Block) -> None:
        text = block.text.replace(PAGE_BOOTSTRAP, self._bootstrap)
        printed, self._printed = self._printed, None
        if block.language in OUTPUTS:
            if printed is None:
                raise Mismatch(f"{block}: output without a Python block before it")
            if not matches(printed, text):
                raise Mismatch(f"{block}: expected\n{text}\ngot\n{printed}")
        elif block.language == "console":
            self._run_console(block)
        elif block.name:
            (self._directory / block.name).write_text(text)
        elif block.language == "python":
            self._run_python(block, text)
        else:
            raise Mismatch(f"{block}: unknown block language {block.language!r}")

    def _run_python(self, block: Block, text: str) -> None:
        out = io.StringIO()
        padding = "\n" * block.line  # so that tracebacks have the line numbers of the page
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
            raise Mismatch(f"pytest exited with {done.returncode}\n{done.stdout}{done.stderr}")

    def _run_console(self, block: Block) -> None:
        terminal = self._terminals.get(block.name)
        if terminal is None:
            terminal = self._terminals[block.name] = Terminal(self._directory, self._environment)
        steps = commands(block)
        for index, step in enumerate(steps):
            expected = step.output.replace(PAGE_BOOTSTRAP, self._bootstrap)
            if step.command:
                terminal.start(self._with_port(step.command))
                self._expected[block.name] = expected
            else:
                self._expected[block.name] += expected
            if block.name and index == len(steps) - 1:
                self._expect_output(block, terminal)
            else:
                self._finish(block, terminal, step.command)

    def _expect_output(self, block: Block, terminal: Terminal) -> None:
        """Wait for the output of a command that keeps running."""
        expected = self._expected[block.name]
        if not terminal.wait(lambda: starts_with(terminal.output, expected), STEP_SECONDS_MAX):
            raise Mismatch(f"{block}: expected\n{expected}\nafter {STEP_SECONDS_MAX:g} s, got\n{terminal.output}")

    def _finish(self, block: Block, terminal: Terminal, command: str) -> None:
        if not terminal.wait(lambda: terminal.status() is not None, STEP_SECONDS_MAX):
            raise Mismatch(f"{block}: `{command}` did not exit within {STEP_SECONDS_MAX:g} s:\n{terminal.output}")
        if terminal.status():
            raise Mismatch(f"{block}: `{command}` exited with {terminal.status()}:\n{terminal.output}")
        expected = self._expected[block.name]
        if not matches(terminal.output, expected):
            raise Mismatch(f"{block}: `{command}` should print\n{expected}\nbut printed\n{terminal.output}")

    def _with_port(self, command: str) -> str:
        """Add the port of the test's broker to `ottla start`."""
        command = command.replace(PAGE_BOOTSTRAP, self._bootstrap)
        if command.startswith("ottla start") and ".properties" not in command and self._bootstrap != PAGE_BOOTSTRAP:
            return f"{command} --port {self._port}"
        return command
