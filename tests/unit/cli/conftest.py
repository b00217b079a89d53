"""The command line called in this process, against a broker that all tests of this room share."""

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
class Ended:
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
) -> Callable[..., Ended]:
    """`ottla(words, ..., given=b"...")`: run a command; its code, and what it wrote."""
    monkeypatch.setenv("OTTLA_BOOTSTRAP", ottla_session_broker.bootstrap)

    def run(*words: str, given: bytes = b"") -> Ended:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        capsys.readouterr()
        code = main(list(words))
        written = capsys.readouterr()
        return Ended(code, written.out, written.err)

    return run


@pytest.fixture(scope="session")
def _names() -> Callable[[], str]:
    prefix, numbers = secrets.token_hex(3), itertools.count()
    return lambda: f"cli-{prefix}-{next(numbers)}"


@pytest.fixture
def name(_names: Callable[[], str]) -> str:
    """A name that no other test uses."""
    return _names()
