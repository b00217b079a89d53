"""`kill -9` at any moment: acknowledged records exist once, at their offsets, and files are consistent."""

import functools
import os
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.peers import BrokerProcess
from tests.compat.clients.jvm import Jvm, missing
from tests.compat.conftest import create_topic
from tests.compat.raw import RawConnection
from tests.crash.conftest import StartBroker
from tests.crash.files import check_partition
from tests.crash.load import Ledger, Sender, check, end_offset, read

ROUNDS = int(os.environ.get("OTTLA_CRASH_ROUNDS", "20"))
PARTITIONS = 3
SEGMENTS = {"segment.bytes": "1048576", "index.interval.bytes": "2048"}


def wait_for(condition: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.0005)


def address(broker: BrokerProcess) -> tuple[str, int]:
    return "127.0.0.1", broker.port


class SteadyProducer:
    """An idempotent confluent-kafka producer that runs through all crashes and records its delivery reports."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        from confluent_kafka import Producer

        self.delivered: dict[int, int] = {}
        self.failures: list[str] = []
        self.sent = 0
        self._topic = topic
        quick = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 100, "retry.backoff.ms": 20, "linger.ms": 2}
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "message.timeout.ms": 120_000,
                "log_level": 0,
                "allow.auto.create.topics": False,
                **quick,
            }
        )

    def feed(self, count: int) -> None:
        """Send some records. Earlier ones may still be queued."""
        for _ in range(count):
            if len(self._producer) > 1000:
                break
            number = self.sent
            report = functools.partial(self._on_delivery, number)
            self._producer.produce(self._topic, b"steady %d" % number, partition=0, on_delivery=report)
            self.sent += 1
        self._producer.poll(0)

    def finish(self) -> None:
        assert self._producer.flush(60) == 0
        assert not self.failures

    def _on_delivery(self, number: int, error: object, message: object) -> None:
        if error is not None:
            self.failures.append(f"{number}: {error}")
        else:
            self.delivered[number] = message.offset()  # type: ignore[attr-defined]


def values_of(broker: BrokerProcess, topic: str) -> list[bytes]:
    with RawConnection(address(broker)) as connection:
        return [record.value or b"" for record in read(connection, topic, 0, 0, end_offset(connection, topic, 0))]


def dump_logs(jvm: Jvm, directories: list[Path]) -> None:
    """Check the files with Kafka's DumpLogSegments too."""
    files = sorted(
        path
        for directory in directories
        for suffix in ("log", "index", "timeindex")
        for path in directory.glob(f"*.{suffix}")
    )
    done = jvm.tool("org.apache.kafka.tools.DumpLogSegments", "--deep-iteration", "--files", ",".join(map(str, files)))
    assert done.status == 0, done.err
    for complaint in ("isvalid: false", "mismatch", "out of order", "non-consecutive", "corrupt"):
        assert complaint not in done.out.lower(), [line for line in done.out.splitlines() if complaint in line.lower()][
            :5
        ]


@pytest.mark.timeout(240)
def test_acknowledged_records_survive_kill_9(start_broker: StartBroker) -> None:
    broker = start_broker()
    create_topic(broker.bootstrap, "load", PARTITIONS, SEGMENTS)
    create_topic(broker.bootstrap, "steady", 1, SEGMENTS)
    ledgers = {partition: Ledger() for partition in range(PARTITIONS)}
    lock = threading.Lock()
    senders = [
        Sender(0, "load", ledgers, lock, acks=1, idempotent=False),
        Sender(1, "load", ledgers, lock, acks=-1, idempotent=False),
        Sender(2, "load", ledgers, lock, acks=1, idempotent=True),
        Sender(3, "load", ledgers, lock, acks=-1, idempotent=True),
    ]
    steady = SteadyProducer(broker.bootstrap, "steady")
    chosen = random.Random(20)
    directories = [broker.data_dir / f"load-{partition}" for partition in range(PARTITIONS)]
    segments = 0
    for _ in range(ROUNDS):
        stop = threading.Event()
        goal = sum(sender.acked_batches for sender in senders) + chosen.randrange(20, 250)
        for sender in senders:
            sender.start(address(broker), stop)
        while sum(sender.acked_batches for sender in senders) < goal:
            steady.feed(20)
            failures = [sender.failure for sender in senders if sender.failure is not None]
            assert not failures, failures
            assert broker.process.poll() is None, broker.output()[-2000:]
            time.sleep(0.001)
        broker.kill()
        stop.set()
        for sender in senders:
            sender.join()
        broker.start()
        wait_until_led(broker)
        check(address(broker), "load", ledgers)
        segments = sum(check_partition(directory).segments for directory in directories)
    assert segments > PARTITIONS * min(ROUNDS, 3) // 3, "no segment was rolled: the test is too small"
    finish(broker, senders, ledgers, steady)
    if missing() is None:
        jvm = Jvm()
        dump_logs(jvm, directories)
        jvm.stop()


def wait_until_led(broker: BrokerProcess) -> None:
    """Wait until all partitions have a leader: Kafka's broker accepts connections earlier."""

    def led() -> bool:
        try:
            with RawConnection(address(broker)) as connection:
                for topic, count in {"load": PARTITIONS, "steady": 1}.items():
                    for partition in range(count):
                        end_offset(connection, topic, partition)
            return True
        except AssertionError:
            return False

    wait_for(led)


def finish(broker: BrokerProcess, senders: list[Sender], ledgers: dict[int, Ledger], steady: SteadyProducer) -> None:
    """Let idempotent producers retry their pending batches, then check all records from the first on."""
    stop = threading.Event()
    stop.set()
    for sender in senders:
        sender.start(address(broker), stop)
        sender.join()
    check(address(broker), "load", ledgers, from_start=True)
    resent = {name for ledger in ledgers.values() for name in ledger.unknown if name[0] in (2, 3)}
    assert not resent, f"idempotent producers got no response: {sorted(resent)[:5]}"
    for ledger in ledgers.values():
        assert sorted(ledger.acked) == sorted(
            offset for name, offset in ledger.seen.items() if name not in ledger.unknown
        )
    steady.finish()
    values = values_of(broker, "steady")
    assert values == [b"steady %d" % number for number in range(steady.sent)]
    assert steady.delivered == {number: number for number in range(steady.sent)}
