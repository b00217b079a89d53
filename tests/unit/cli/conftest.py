"""Fixtures that run `ottla` commands in this process, against a broker shared by the tests of this package."""

import io
import itertools
import json
import secrets
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from ottla.cli.main import main
from ottla.testing.broker import Broker


@dataclass(frozen=True, slots=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def ottla(
    ottla_session_broker: Broker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Result]:
    """Return a function that runs a command: `ottla(argument, ..., stdin=b"...")`."""
    monkeypatch.setenv("OTTLA_BOOTSTRAP", ottla_session_broker.bootstrap)

    def run(*arguments: str, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        code = main(list(arguments))
        written = capsys.readouterr()
        return Result(code, written.out, written.err)

    return run


@pytest.fixture(scope="session")
def _names() -> Callable[[], str]:
    prefix, numbers = secrets.token_hex(3), itertools.count()
    return lambda: f"cli-{prefix}-{next(numbers)}"


@pytest.fixture
def name(_names: Callable[[], str]) -> str:
    """A unique name for a topic or group."""
    return _names()
