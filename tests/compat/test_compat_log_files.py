"""A partition's files equal Apache Kafka's byte for byte, and each reads the other's directory."""

import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.peers import ApacheKafka, PeerUnavailable
from ottla.base.ids import Uuid
from ottla.io.disk import RealDisk
from ottla.log.config import LogConfig
from ottla.log.partition_directory import read_topic_id
from ottla.log.partition_log import PartitionLog
from ottla.wire.batches import Record, build_batch
from tests.compat.conftest import create_topic
from tests.compat.raw import RawConnection
from tests.compat.test_compat_batches import fetch, produce

SEGMENT_BYTES = 1 << 20
CONFIG = LogConfig(segment_bytes=SEGMENT_BYTES)
TOPIC = "files"
BATCHES = 2000


@pytest.fixture(scope="module")
def kafka() -> Iterator[ApacheKafka]:
    try:
        with ApacheKafka() as broker:
            yield broker
    except PeerUnavailable as reason:
        pytest.skip(str(reason))


def batches(start_ms: int) -> Iterator[bytearray]:
    source = random.Random(7)
    for n in range(BATCHES):
        records = [
            Record(timestamp=start_ms + n * 7 - source.randrange(300), key=b"k", value=bytes(source.randrange(1500)))
            for _ in range(source.randrange(1, 4))
        ]
        if n % 2:
            yield build_batch(records, codec=source.randrange(5))
        else:  # one of five producers sends single records
            yield build_batch(records[:1], producer_id=1000 + n % 5, producer_epoch=0, base_sequence=n // 10)


def files_of(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


def test_both_write_equal_files_and_read_each_others(kafka: ApacheKafka, tmp_path: Path) -> None:
    host, _, port = kafka.bootstrap.rpartition(":")
    address, start_ms = (host, int(port)), int(time.time() * 1000) - 60_000
    create_topic(kafka.bootstrap, TOPIC, 1, {"segment.bytes": str(SEGMENT_BYTES)})
    theirs = kafka.data_dir / f"{TOPIC}-0"
    with RawConnection(address) as connection:
        offsets = [produce(connection, TOPIC, 0, bytes(one)).base_offset for one in batches(start_ms)]
        topic_id = read_topic_id(RealDisk(), str(theirs))
    assert topic_id is not None
    log = open_log(tmp_path / "ours", topic_id, clean=True)
    assert [log.append(memoryview(one), leader_epoch=0, now_ms=start_ms)[0] for one in batches(start_ms)] == offsets
    log.close()
    kafka.stop()
    found, expected = files_of(tmp_path / "ours"), files_of(theirs)
    assert list(found) == list(expected)
    # Producer snapshots are in hash table order; compare them by their fixed-size entries.
    for name, data in expected.items():
        if name.endswith(".snapshot"):
            assert entries(found[name]) == entries(data), name
        else:
            assert found[name] == data, name

    for clean in (True, False):
        copy = tmp_path / f"theirs-{clean}"
        shutil.copytree(theirs, copy)
        opened = open_log(copy, topic_id, clean=clean)
        assert opened.log_end_offset == log.log_end_offset
        assert opened.producers.encode()[6:10] == log.producers.encode()[6:10]
        assert opened.offset_of_max_timestamp() == log.offset_of_max_timestamp()

    shutil.rmtree(theirs)
    shutil.copytree(tmp_path / "ours", theirs)
    kafka.start()
    with RawConnection(address) as connection:
        first = b""
        while not first:  # until it is the leader; otherwise the test's time limit ends the loop
            first = fetch(connection, TOPIC, 0)
    assert expected[f"{0:020d}.log"].startswith(first[:100_000])
    assert len(first) > 100_000


def open_log(directory: Path, topic_id: Uuid, *, clean: bool) -> PartitionLog:
    return PartitionLog.open(RealDisk(), str(directory), config=CONFIG, topic_id=topic_id, now_ms=0, clean=clean)


def entries(snapshot: bytes) -> list[bytes]:
    return sorted(snapshot[at : at + 46] for at in range(10, len(snapshot), 46))
