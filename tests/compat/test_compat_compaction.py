"""A log cleaned by Apache Kafka and by Ottla: both retain the same records and can read each other's result."""

import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.peers import ApacheKafka, PeerUnavailable, kafka_tool
from ottla.io.disk import RealDisk
from ottla.log import offset_checkpoint_file
from ottla.log.compaction_plan import Cleaned
from ottla.log.config import LogConfig
from ottla.log.partition_directory import read_topic_id
from ottla.log.partition_log import PartitionLog
from ottla.wire.batches import BatchHeader, Record, build_batch, decode_records, read_header
from tests.compat.conftest import create_topic
from tests.compat.raw import RawConnection
from tests.compat.test_compat_batches import produce
from tests.unit.log.compaction_harness import clean
from tests.unit.log.log_fixtures import stored_batches

SEGMENT_BYTES = 1 << 20
DELETE_RETENTION_MS = 3000
CONFIG = LogConfig(segment_bytes=SEGMENT_BYTES, compacted=True, deletes=False, delete_retention_ms=DELETE_RETENTION_MS)
SETTINGS = {
    "log.cleaner.backoff.ms": "200",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
UNTOUCHED = {
    "cleanup.policy": "compact",
    "min.compaction.lag.ms": "100000000",
    "segment.bytes": str(SEGMENT_BYTES),
    "delete.retention.ms": str(DELETE_RETENTION_MS),
    "min.cleanable.dirty.ratio": "0.0",
    "file.delete.delay.ms": "100",
}
TOPIC = "cleaned"
WAIT_SECONDS_MAX = 60


@pytest.fixture(scope="module")
def kafka() -> Iterator[ApacheKafka]:
    try:
        with ApacheKafka(settings=SETTINGS) as broker:
            yield broker
    except PeerUnavailable as reason:
        pytest.skip(str(reason))


def fill(kafka: ApacheKafka) -> None:
    """Write batches of all codecs, tombstones, idempotent producers, committed and aborted transactions."""
    host, _, port = kafka.bootstrap.rpartition(":")
    source, now = random.Random(11), int(time.time() * 1000)

    def records(count: int) -> list[Record]:
        return [
            Record(
                timestamp=now - source.randrange(1000),
                key=b"key %d" % source.randrange(120) * source.randrange(1, 4),
                value=None if source.random() < 0.1 else source.randbytes(source.randrange(2500)),
            )
            for _ in range(count)
        ]

    with RawConnection((host, int(port))) as connection:
        for number in range(500):
            is_idempotent = number % 3 == 0
            produce(
                connection,
                TOPIC,
                0,
                bytes(
                    build_batch(
                        records(source.randrange(1, 9)),
                        codec=number % 5,
                        producer_id=500 + number % 2 if is_idempotent else -1,
                        producer_epoch=0 if is_idempotent else -1,
                        base_sequence=-1,
                    )
                )
                if not is_idempotent
                else bytes(build_batch(records(1), producer_id=5000 + number, producer_epoch=0, base_sequence=0)),
            )
    _transactions(kafka.bootstrap, source)
    with RawConnection((host, int(port))) as connection:
        for _ in range(400):
            produce(connection, TOPIC, 0, bytes(build_batch(records(5))))


def _transactions(bootstrap: str, source: random.Random) -> None:
    from confluent_kafka import Producer

    producers = [
        Producer({"bootstrap.servers": bootstrap, "transactional.id": f"t{number}", "linger.ms": 0})
        for number in range(2)
    ]
    for producer in producers:
        producer.init_transactions(30)
    for number in range(20):
        producer = producers[number % 2]
        producer.begin_transaction()
        for _ in range(source.randrange(1, 20)):
            producer.produce(
                TOPIC, source.randbytes(source.randrange(2000)), b"key %d" % source.randrange(120), partition=0
            )
        producer.flush(30)
        if number % 3 == 1:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)


def wait_for_kafka_cleaner(kafka: ApacheKafka, past: int) -> int:
    """Wait until Kafka's cleaner checkpoint is past an offset; return it."""
    from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    entry = ConfigEntry("min.compaction.lag.ms", "0", incremental_operation=AlterConfigOpType.SET)
    for future in admin.incremental_alter_configs(
        [ConfigResource("TOPIC", TOPIC, incremental_configs=[entry])]
    ).values():
        future.result(30)
    path = str(kafka.data_dir / offset_checkpoint_file.CLEAN_OFFSETS_FILE)
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while (found := offset_checkpoint_file.read(RealDisk(), path).get((TOPIC, 0), 0)) <= past:
        assert time.monotonic() < deadline, f"clean to {found} only"
        time.sleep(0.1)
    return found


def open_copy(directory: Path, *, config: LogConfig = CONFIG, recovery_point: int | None = None) -> PartitionLog:
    topic_id = read_topic_id(RealDisk(), str(directory))
    assert topic_id is not None
    return PartitionLog.open(
        RealDisk(),
        str(directory),
        config=config,
        topic_id=topic_id,
        now_ms=0,
        clean=False,
        recovery_point=recovery_point,
    )


def contents(log: PartitionLog, *, before: int) -> list[tuple[int, bool, Record]]:
    """Return offset, whether it is a marker, and record, for all retained records."""
    found = []
    for batch in stored_batches(log):
        header = read_header(batch)
        found += [
            (record.offset, header.is_control, record) for record in decode_records(batch) if record.offset < before
        ]
    return found


def shapes(log: PartitionLog, *, before: int) -> list[BatchHeader]:
    """Return the batch headers without what may differ: base timestamps, lengths, empty batches at segment ends."""
    return [
        header._replace(length=0, crc=0, base_timestamp=0)
        for header in map(read_header, stored_batches(log))
        if header.last_offset < before and header.record_count > 0
    ]


@pytest.mark.timeout(240)
def test_both_cleaners_retain_the_same_records(kafka: ApacheKafka, tmp_path: Path) -> None:
    create_topic(kafka.bootstrap, TOPIC, 1, UNTOUCHED)
    fill(kafka)
    theirs, ours = kafka.data_dir / f"{TOPIC}-0", tmp_path / "ours"
    shutil.copytree(theirs, ours)
    bases = sorted(int(path.stem) for path in theirs.glob("*.log"))
    assert len(bases) > 2
    clean_to = wait_for_kafka_cleaner(kafka, bases[-1] - 1)
    now = int(time.time() * 1000)
    log = open_copy(ours)
    all_before = contents(log, before=clean_to)
    result = clean(log, now_ms=now)
    assert isinstance(result, Cleaned)
    assert result.end_offset == clean_to
    kafka.stop()
    shutil.copytree(theirs, tmp_path / "theirs")
    cleaned = open_copy(tmp_path / "theirs")
    assert contents(log, before=clean_to) == contents(cleaned, before=clean_to)
    assert len(contents(log, before=clean_to)) < len(all_before) / 2
    assert shapes(log, before=clean_to) == shapes(cleaned, before=clean_to)
    assert [entry for segment in log.segments for entry in segment.aborted_transactions()] == [
        entry for segment in cleaned.segments for entry in segment.aborted_transactions()
    ]

    # A topic that is no longer compacted and has no checkpoint keeps its records.
    shutil.copytree(theirs, tmp_path / "copy")
    recovered = open_copy(tmp_path / "copy", config=LogConfig(segment_bytes=SEGMENT_BYTES), recovery_point=0)
    assert (recovered.log_end_offset, recovered.truncated_bytes) == (cleaned.log_end_offset, 0)
    assert stored_batches(recovered) == stored_batches(cleaned)

    # Kafka opens and reads what Ottla cleaned.
    log.close()
    files = [
        str(path) for path in sorted(ours.iterdir()) if path.suffix in (".log", ".index", ".timeindex", ".txnindex")
    ]
    dumped = kafka_tool("org.apache.kafka.tools.DumpLogSegments", "--deep-iteration", "--files", ",".join(files))
    assert "Mismatches" not in dumped.stdout + dumped.stderr
    assert "corrupt" not in (dumped.stdout + dumped.stderr).lower()
    shutil.rmtree(theirs)
    shutil.copytree(ours, theirs)
    kafka.start()
    _produce_one(kafka)
    assert _read_committed(kafka) == [
        record for _, _, record in contents(open_copy(ours), before=1 << 62) if record.offset in _data(ours)
    ]


def _data(directory: Path) -> dict[int, None]:
    """Return offsets visible with read_committed."""
    log = open_copy(directory)
    aborted = [entry for segment in log.segments for entry in segment.aborted_transactions()]
    seen: dict[int, None] = {}
    for batch in stored_batches(log):
        header = read_header(batch)
        is_aborted = header.is_transactional and any(
            entry.producer_id == header.producer_id and entry.first_offset <= header.base_offset < entry.last_offset
            for entry in aborted
        )
        if not header.is_control and not is_aborted:
            seen.update(dict.fromkeys(record.offset for record in decode_records(batch)))
    return seen


def _produce_one(kafka: ApacheKafka) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    producer.produce(TOPIC, b"last", b"last", partition=0)
    assert producer.flush(30) == 0


def _read_committed(kafka: ApacheKafka) -> list[Record]:
    """Return all records but the last one."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": kafka.bootstrap, "group.id": "reader", "isolation.level": "read_committed"}
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    found: list[Record] = []
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not found or found[-1].value != b"last":
        assert time.monotonic() < deadline
        for message in consumer.consume(500, 1):
            assert message.error() is None, message.error()
            found.append(Record(message.offset(), message.timestamp()[1], message.key(), message.value()))
    consumer.close()
    return found[:-1]
