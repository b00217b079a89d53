"""SIGTERM, as sent by `timeout` and `docker stop`, ends every command as Ctrl-C does."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from ottla.cli.termination import TERMINATED
from ottla.client import Admin, Consumer
from ottla.client.records import TopicPartition
from ottla.testing.broker import Broker
from tests.unit.cli.conftest import Result

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start(ottla_session_broker: Broker) -> Iterator[Start]:
    """Return a function that starts a command."""
    variables = {**os.environ, "OTTLA_BOOTSTRAP": ottla_session_broker.bootstrap, "PYTHONUNBUFFERED": "1"}
    pipe = subprocess.PIPE
    started = []

    def run(*arguments: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "ottla", *arguments]
        started.append(subprocess.Popen(command, env=variables, stdin=pipe, stdout=pipe, stderr=pipe))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.communicate()


def read_line(process: "subprocess.Popen[bytes]") -> bytes:
    assert process.stdout is not None
    return process.stdout.readline()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_consumer_commits_and_leaves_its_group(
    start: Start, ottla: Callable[..., Result], ottla_session_broker: Broker, name: str, number: signal.Signals
) -> None:
    ottla_session_broker.create_topic(name, 1)
    ottla("produce", name, "-v", "a", "-v", "b")
    consumer = start("consume", name, "--follow", "--group", name)
    assert [read_line(consumer), read_line(consumer)] == [b"a\n", b"b\n"]
    consumer.send_signal(number)
    assert consumer.communicate(timeout=60) == (b"", b"")
    assert consumer.returncode == {signal.SIGTERM: TERMINATED, signal.SIGINT: 130}[number]
    with Admin(bootstrap_servers=ottla_session_broker.bootstrap) as admin:
        (group,) = admin.describe_groups([name]).values()
        assert group.members == ()
    assert ottla("group", "lag", name, "--json").json["total"] == 0


def test_producer_sends_what_it_has_read(
    start: Start, ottla: Callable[..., Result], ottla_session_broker: Broker, name: str
) -> None:
    """The second value opens a second batch, so when the first batch arrives, the second value was read too."""
    ottla_session_broker.create_topic(name, 1)
    producer = start("produce", name, "--linger", "60000")
    assert producer.stdin is not None
    producer.stdin.write(b"a" * 16_000 + b"\n" + b"b" * 16_000 + b"\n")
    producer.stdin.flush()
    with Consumer(bootstrap_servers=ottla_session_broker.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(name, 0)])
        assert len(consumer.poll(60)) == 1
    producer.send_signal(signal.SIGTERM)
    _, err = producer.communicate(timeout=60)
    assert (producer.returncode, err.split(b" to ")[0]) == (TERMINATED, b"2 records")
    assert ottla("consume", name, "--offsets").out.count("b") == 16_000


@pytest.mark.parametrize(
    "arguments",
    [
        ("group", "lag", "{name}", "--follow", "--json", "--interval", "0.1"),
        ("consume", "{name}", "--follow", "--from", "beginning"),
    ],
    ids=" ".join,
)
def test_commands_end_silently(
    start: Start, ottla: Callable[..., Result], name: str, arguments: tuple[str, ...]
) -> None:
    ottla("produce", name, "-v", "a", "-v", "b")
    ottla("consume", name, "--group", name, "--max", "1")
    command = start(*(each.format(name=name) for each in arguments))
    read_line(command)
    command.send_signal(signal.SIGTERM)
    _, err = command.communicate(timeout=60)
    assert (command.returncode, err) == (TERMINATED, b"")


def test_ignored_sigterm_stays_ignored(ottla: Callable[..., Result]) -> None:
    """A parent that ignores the signal wants its children to survive it, as with `trap '' TERM`."""
    previous = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        assert ottla("topic", "list").code == 0
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, previous)
