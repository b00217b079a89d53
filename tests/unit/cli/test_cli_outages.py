"""Brokers that are away, stopped or full, topics that are deleted: timeouts, their messages, and notes during waits."""

import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from ottla.cli.main import main
from ottla.client import Admin
from ottla.testing.broker import Broker
from tests.unit.cli.conftest import Result

SLACK_SECONDS = 5.0
"""Allowed beyond a timeout: four times the timeout, as once, is more than that."""
TIMEOUT = 3.0


class Command:
    """A running command, and its lines of stderr."""

    def __init__(self, bootstrap: str, *arguments: str) -> None:
        pipe = subprocess.PIPE
        variables = {**os.environ, "OTTLA_BOOTSTRAP": bootstrap, "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-m", "ottla", *arguments]
        self.process = subprocess.Popen(command, env=variables, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        self._notes: queue.Queue[str] = queue.Queue()
        assert self.process.stderr is not None
        threading.Thread(target=self._read, args=(self.process.stderr,), daemon=True).start()

    def _read(self, stream: object) -> None:
        for line in stream:  # type: ignore[attr-defined]
            self._notes.put(line)
        self._notes.put("")

    def note(self) -> str:
        """Return the next line of stderr, or an empty string after the last."""
        return self._notes.get(timeout=60)

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def write(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)


@contextmanager
def running(bootstrap: str, *arguments: str) -> Iterator[Command]:
    command = Command(bootstrap, *arguments)
    try:
        yield command
    finally:
        command.process.kill()
        command.process.wait()


@pytest.fixture
def broker() -> Iterator[Broker]:
    """A broker of its own: these tests stop it."""
    with Broker() as broker:
        broker.create_topic("orders", 1)
        yield broker


class TestTimeout:
    """`--timeout` limits the whole command."""

    def test_missing_partition_fails_at_once(self, ottla: Callable[..., Result], name: str) -> None:
        ottla("topic", "create", name, "-p", "2")
        started = time.monotonic()
        failed = ottla("produce", name, "-p", "7", "-v", "a", "--timeout", "60")
        assert time.monotonic() - started < 60
        assert failed.err == (
            f"ottla: {name} has no partition 7, only 0 to 1\n"
            f"       `ottla topic describe {name}` shows its partitions.\n"
        )
        assert failed.code == 1
        lines = b'{"value": 1, "partition": 1}\n{"value": 2, "partition": 2}\n{"value": 3}\n'
        failed = ottla("produce", name, "--json", "--keep-partitions", "--timeout", "60", stdin=lines)
        sent, reason, _ = failed.err.splitlines()
        assert sent.startswith("1 record to ")
        assert reason == f"ottla: {name} has no partition 2, only 0 to 1"
        assert ottla("consume", name).out == "1\n"

    def test_partition_added_while_producing(
        self, ottla: Callable[..., Result], ottla_session_broker: Broker, name: str
    ) -> None:
        ottla_session_broker.create_topic(name, 1)
        bootstrap = ottla_session_broker.bootstrap
        with running(bootstrap, "produce", name, "--json", "--keep-partitions") as producer:
            with running(bootstrap, "consume", name, "--follow", "--from", "beginning", "-p", "0") as consumer:
                producer.write(f'{{"value": "{"a" * 20_000}", "partition": 0}}\n' * 2)
                assert len(consumer.line()) == 20_001
            assert main(["topic", "alter", name, "--partitions", "2", "--bootstrap", bootstrap]) == 0
            producer.write('{"value": "b", "partition": 1}\n')
            assert producer.process.stdin is not None
            producer.process.stdin.close()
            assert producer.process.wait(60) == 0
        assert ottla("consume", name, "-p", "1").out == "b\n"

    def test_advertised_host_that_does_not_resolve(self, capsys: pytest.CaptureFixture[str]) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            bootstrap = f"127.0.0.1:{free.getsockname()[1]}"
        advertised = "PLAINTEXT://nowhere.invalid:9092"
        config = {"listeners": f"PLAINTEXT://{bootstrap}", "advertised.listeners": advertised}
        with Broker(configs=config) as broker:
            broker.create_topic("orders", 1)
            started = time.monotonic()
            arguments = ["produce", "orders", "-v", "a", "--bootstrap", bootstrap, "--timeout", str(TIMEOUT)]
            assert main(arguments) == 1
            assert time.monotonic() - started < TIMEOUT + SLACK_SECONDS
        note, reason, advice = capsys.readouterr().err.splitlines()
        assert note.startswith("ottla: nowhere.invalid:9092 is unreachable: ")
        assert note.endswith("; retrying")
        assert reason.startswith(
            f"ottla: 1 record for partition 0 of topic 'orders' was not delivered within {TIMEOUT:g} s. "
            "nowhere.invalid:9092 is unreachable: "
        )
        assert advice == "       A broker advertises this address; check that it can be reached from here."

    def test_broker_that_does_not_respond(self, tmp_path: os.PathLike[str]) -> None:
        """As with SIGSTOP: the kernel accepts connections, but nothing answers."""
        command = [sys.executable, "-m", "ottla", "start", "--data", f"{tmp_path}/data", "--port", "0"]
        node = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            assert node.stdout is not None
            bootstrap = next(word for line in node.stdout if "listening on" in line for word in line.split()[-1:])
            assert main(["topic", "create", "orders", "--bootstrap", bootstrap]) == 0
            with running(bootstrap, "produce", "orders", "--timeout", str(TIMEOUT)) as producer:
                with running(bootstrap, "consume", "orders", "--follow", "--from", "beginning") as consumer:
                    producer.write("a" * 20_000 + "\n" + "b" * 20_000 + "\n")
                    assert len(consumer.line()) == 20_001
                node.send_signal(signal.SIGSTOP)
                started = time.monotonic()
                producer.write("c" * 20_000 + "\n")
                assert producer.process.stdin is not None
                producer.process.stdin.close()
                assert producer.process.wait(60) == 1
                assert time.monotonic() - started < TIMEOUT + SLACK_SECONDS
                notes = list(iter(producer.note, ""))
            assert "not delivered within" in notes[-2]
            assert "did not respond" in notes[-2]
        finally:
            node.kill()
            node.communicate()


class TestNotes:
    """A command that waits says what it waits for, once, and when the wait is over."""

    @pytest.mark.parametrize("group", [(), ("--group", "readers")], ids=["", "group"])
    def test_follow_while_the_broker_is_away(self, broker: Broker, group: tuple[str, ...]) -> None:
        address = broker.bootstrap
        send = ["produce", "orders", "--bootstrap", address, "-v"]
        assert main([*send, "before"]) == 0
        with running(address, "consume", "orders", "--follow", "--from", "beginning", *group) as consumer:
            assert consumer.line() == "before\n"
            broker.stop()
            assert consumer.note() == f"ottla: {address} is unreachable: Connection refused; retrying\n"
            broker.start()
            assert consumer.note() == f"ottla: {address} is back\n"
            assert main([*send, "after"]) == 0
            assert consumer.line() == "after\n"
            assert consumer.end() == 130
            assert consumer.note() == ""

    def test_ctrl_c_while_the_broker_is_away(self, broker: Broker) -> None:
        with running(broker.bootstrap, "consume", "orders", "--follow", "--group", "readers") as consumer:
            with Admin(bootstrap_servers=broker.bootstrap) as admin:
                while "readers" not in admin.list_groups():
                    pass
            broker.stop()
            assert "is unreachable" in consumer.note()
            started = time.monotonic()
            assert consumer.end() == 130
            assert time.monotonic() - started < SLACK_SECONDS
            assert consumer.note() == ""

    @pytest.mark.parametrize("group", [(), ("--group", "readers")], ids=["", "group"])
    def test_follow_when_the_topic_is_deleted(self, broker: Broker, group: tuple[str, ...]) -> None:
        """The new topic is read from its beginning, even with fewer records than the old one."""
        address = broker.bootstrap
        send = ["produce", "orders", "--bootstrap", address, "-v"]
        assert main([*send, "a", "-v", "b", "-v", "c"]) == 0
        with running(address, "consume", "orders", "--follow", "--from", "beginning", *group) as consumer:
            assert [consumer.line() for _ in range(3)] == ["a\n", "b\n", "c\n"]
            with Admin(bootstrap_servers=address) as admin:
                admin.delete_topics(["orders"])
                assert consumer.note() == "ottla: topic 'orders' was deleted; waiting for it to be created again\n"
                admin.create_topic("orders", 1)
            assert main([*send, "new"]) == 0
            assert consumer.note() == "ottla: orders is back\n"
            assert consumer.line() == "new\n"
            assert main([*send, "newer"]) == 0
            assert consumer.line() == "newer\n"

    def test_consume_to_the_end_fails_when_the_broker_goes_away(self, broker: Broker) -> None:
        """The output pipe and the buffered fetches hold only a part of the topic, so the broker stops in between."""
        address = broker.bootstrap
        with running(address, "produce", "orders") as producer:
            producer.write(("x" * 1_000 + "\n") * 8_000)
            assert producer.process.stdin is not None
            producer.process.stdin.close()
            assert producer.process.wait(60) == 0
        arguments = ("--timeout", "1", "--client-config", self.slow_client(broker))
        with running(address, "consume", "orders", *arguments) as consumer:
            assert len(consumer.line()) == 1_001
            broker.stop()
            assert consumer.process.stdout is not None
            consumer.process.stdout.read()
            assert consumer.process.wait(60) == 1
            notes = list(iter(consumer.note, ""))
        assert notes[0] == f"ottla: {address} is unreachable: Connection refused; retrying\n"
        assert notes[1].endswith(f" {address} is unreachable: Connection refused.\n")

    def slow_client(self, broker: Broker) -> str:
        path = f"{broker.data}/client.properties"
        with open(path, "w") as file:
            file.write("fetch.max.bytes=10000\n")
        return path

    def test_produce_during_an_outage(self, broker: Broker) -> None:
        address = broker.bootstrap
        with running(address, "produce", "orders", "--timeout", "60") as producer:
            with running(address, "consume", "orders", "--follow", "--from", "beginning") as consumer:
                producer.write("a" * 20_000 + "\n" + "b" * 20_000 + "\n")
                assert len(consumer.line()) == 20_001
            broker.stop()
            producer.write("c" * 20_000 + "\n" + "d" * 20_000 + "\n")
            assert producer.note() == f"ottla: {address} is unreachable: Connection refused; retrying\n"
            broker.start()
            assert producer.note() == f"ottla: {address} is back\n"
            assert producer.process.stdin is not None
            producer.process.stdin.close()
            assert producer.note().startswith("4 records to orders in ")
            assert producer.process.wait(60) == 0
