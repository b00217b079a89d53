"""Files as a crash, or worse, may leave them: torn tails are truncated, indexes are rebuilt."""

import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.peers import BrokerProcess
from ottla.wire.batches import Record, build_batch, iterate_batches
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.compat.conftest import create_topic
from tests.compat.raw import RawConnection
from tests.crash.conftest import StartBroker
from tests.crash.files import check_partition
from tests.crash.load import START_MS, end_offset, new_producer_id, read
from tests.crash.test_crash_under_load import address, wait_for

BATCHES = 60
TOPIC = "torn"


def produce(connection: RawConnection, number: int, producer_id: int) -> tuple[int, int]:
    """Produce one batch whose sequence is its number. Return error code and offset."""
    records = [Record(0, START_MS + number, b"k", b"%d " % number + b"x" * 40_000)]
    batch = build_batch(records, producer_id=producer_id, producer_epoch=0, base_sequence=number)
    data = [PartitionProduceData(index=0, records=bytes(batch))]
    request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[TopicProduceData(name=TOPIC, partition_data=data)])
    response = connection.call(request, 11).responses[0].partition_responses[0]
    return response.error_code, response.base_offset


def fill(broker: BrokerProcess) -> int:
    """Produce three segments of idempotent batches with one record each. Return the producer id."""
    create_topic(broker.bootstrap, TOPIC, 1, {"segment.bytes": "1048576", "index.interval.bytes": "4096"})
    with RawConnection(address(broker)) as connection:
        producer_id = new_producer_id(connection)
        wait_for(lambda: produce(connection, 0, producer_id)[0] == 0)
        for number in range(1, BATCHES):
            assert produce(connection, number, producer_id) == (0, number)
    return producer_id


def wait_until_led(broker: BrokerProcess) -> None:
    def led() -> bool:
        try:
            with RawConnection(address(broker)) as connection:
                end_offset(connection, TOPIC, 0)
            return True
        except AssertionError:
            return False

    wait_for(led)


def numbers(broker: BrokerProcess) -> list[int]:
    with RawConnection(address(broker)) as connection:
        found = read(connection, TOPIC, 0, 0, end_offset(connection, TOPIC, 0))
        return [int((record.value or b"").split(b" ")[0]) for record in found]


def active(directory: Path, suffix: str = "log") -> Path:
    return sorted(directory.glob(f"*.{suffix}"))[-1]


def append(data: bytes) -> Callable[[Path], None]:
    def change(directory: Path) -> None:
        with active(directory).open("ab") as log:
            log.write(data)

    return change


def truncate_by(count: int) -> Callable[[Path], None]:
    def change(directory: Path) -> None:
        os.truncate(active(directory), active(directory).stat().st_size - count)

    return change


def flip_in_last_batch(directory: Path) -> None:
    path = active(directory)
    data = bytearray(path.read_bytes())
    position, _ = list(iterate_batches(data))[-1]
    data[position + 500] ^= 1
    path.write_bytes(data)


def remove(suffix: str) -> Callable[[Path], None]:
    def change(directory: Path) -> None:
        for path in directory.glob(f"*.{suffix}"):
            path.unlink()

    return change


def corrupt(suffix: str) -> Callable[[Path], None]:
    """Overwrite files that are not flushed with the log, so that they may be wrong after a crash."""

    def change(directory: Path) -> None:
        for path in directory.glob(f"*.{suffix}"):
            path.write_bytes(struct.pack(">qi", 2**40, 5) * 7)

    return change


def empty(suffix: str) -> Callable[[Path], None]:
    def change(directory: Path) -> None:
        for path in directory.glob(f"*.{suffix}"):
            path.write_bytes(b"")

    return change


NEXT = bytes(
    build_batch([Record(0, START_MS, b"k", b"61 never acknowledged" * 100)], base_offset=BATCHES, leader_epoch=0)
)
CORRUPTIONS: dict[str, tuple[Callable[[Path], None], int]] = {
    "half a batch at the end": (append(NEXT[:1000]), BATCHES),
    "half a batch header at the end": (append(NEXT[:30]), BATCHES),
    "one byte at the end": (append(b"\0"), BATCHES),
    "zeros at the end": (append(bytes(100_000)), BATCHES),
    "garbage at the end": (append(b"\x07" * 5000), BATCHES),
    "batch with a wrong checksum at the end": (append(NEXT[:-1] + b"?"), BATCHES),
    "last batch truncated by a byte": (truncate_by(1), BATCHES - 1),
    "last batch truncated to its header": (truncate_by(40_000), BATCHES - 1),
    "bit flipped in the last batch": (flip_in_last_batch, BATCHES - 1),
    "no offset indexes": (remove("index"), BATCHES),
    "no time indexes": (remove("timeindex"), BATCHES),
    "empty indexes": (empty("index"), BATCHES),
    "wrong offset indexes": (corrupt("index"), BATCHES),
    "wrong time indexes": (corrupt("timeindex"), BATCHES),
    "no producer snapshots": (remove("snapshot"), BATCHES),
    "wrong producer snapshots": (corrupt("snapshot"), BATCHES),
    "no leader epochs": (lambda directory: (directory / "leader-epoch-checkpoint").unlink(missing_ok=True), BATCHES),
}


@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_corrupt_directory_is_repaired(start_broker: StartBroker, corruption: str) -> None:
    """The log continues after the last complete batch, for readers, writers and idempotent producers."""
    broker = start_broker()
    producer_id = fill(broker)
    directory = broker.data_dir / f"{TOPIC}-0"
    assert len(list(directory.glob("*.log"))) == 3
    broker.kill()
    change, end = CORRUPTIONS[corruption]
    change(directory)
    broker.start()
    wait_until_led(broker)

    assert numbers(broker) == list(range(end))
    with RawConnection(address(broker)) as connection:
        last = end - 1
        assert produce(connection, last, producer_id) == (0, last), "a duplicate is recognized after the crash"
        assert produce(connection, end + 1, producer_id)[0] == 45, "a gap is rejected after the crash"
        assert produce(connection, end, producer_id) == (0, end)
    assert numbers(broker) == list(range(end + 1))
    checked = check_partition(directory)
    assert (checked.segments, checked.end_offset) == (3, end + 1)
    assert checked.offset_entries > 10
    assert checked.time_entries > 10


def test_many_crashes_without_load(start_broker: StartBroker) -> None:
    """A node that is killed repeatedly during startup loses nothing."""
    broker = start_broker()
    fill(broker)
    for _ in range(5):
        broker.kill()
        broker.spawn()
        wait_for(lambda: broker.process.poll() is None)
    broker.kill()
    broker.start()
    wait_until_led(broker)
    assert numbers(broker) == list(range(BATCHES))
