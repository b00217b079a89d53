"""`ottla wait`: exits with 0 as soon as a broker serves, and with 1 after the timeout."""

import json
import socket
import threading
import time
from collections.abc import Callable

import pytest

from ottla.cli.main import main
from ottla.testing.broker import Broker
from tests.unit.cli.conftest import Result
from tests.unit.cli.test_cli_outages import running


def test_serving_broker(ottla: Callable[..., Result], ottla_session_broker: Broker, name: str) -> None:
    assert ottla("wait") == Result(0, "", "")
    ottla_session_broker.create_topic(name, 3)
    assert ottla("wait", "--topic", name) == Result(0, "", "")
    document = ottla("wait", "--json").json
    assert (document.pop("seconds") >= 0, document) == (
        True,
        {"bootstrap": ottla_session_broker.bootstrap, "brokers": [1]},
    )


def test_broker_that_starts_later() -> None:
    with Broker() as broker:
        address = broker.bootstrap
        broker.stop()
        with running(address, "wait", "--timeout", "60", "--json") as command:
            assert command.note() == f"ottla: cannot connect to a broker at {address} (connection refused); waiting\n"
            broker.start()
            assert json.loads(command.line())["brokers"] == [1]
            assert command.process.wait(60) == 0
            assert command.note() == ""


def test_topic_that_is_created_later(ottla_session_broker: Broker, name: str) -> None:
    with running(ottla_session_broker.bootstrap, "wait", "--topic", name, "--timeout", "60") as command:
        assert f"UNKNOWN_TOPIC_OR_PARTITION (topic '{name}')" in command.note()
        ottla_session_broker.create_topic(name, 2)
        assert command.process.wait(60) == 0
        assert command.note() == ""


def test_no_broker(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["wait", "--bootstrap", "127.0.0.1:1", "--timeout", "0.3"]) == 1
    waiting, reason, advice = capsys.readouterr().err.splitlines()
    assert waiting == "ottla: cannot connect to a broker at 127.0.0.1:1 (connection refused); waiting"
    assert reason == (
        "ottla: no broker is ready after 0.3 s: cannot connect to a broker at 127.0.0.1:1 (connection refused)"
    )
    assert advice.startswith("       Start one with `ottla start`")


def test_missing_topic(ottla: Callable[..., Result], name: str) -> None:
    failed = ottla("wait", "--topic", name, "--timeout", "0.3")
    assert (failed.code, failed.out) == (1, "")
    assert failed.err.splitlines()[-1].startswith("ottla: not ready after 0.3 s: UNKNOWN_TOPIC_OR_PARTITION")
    assert name not in ottla("topic", "list").out


def test_listener_that_is_no_broker(capsys: pytest.CaptureFixture[str]) -> None:
    """As a container's proxy: it accepts connections before its broker serves, and nothing answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        accepted: list[socket.socket] = []
        threading.Thread(target=lambda: accepted.append(server.accept()[0]), daemon=True).start()
        started = time.monotonic()
        assert main(["wait", "--bootstrap", f"{host}:{port}", "--timeout", "1"]) == 1
        assert time.monotonic() - started < 6
    reason = f"{host}:{port} accepts connections but does not respond"
    assert capsys.readouterr().err == f"ottla: no broker is ready after 1 s: {reason}\n"
