"""The log start offset checkpoint: Kafka's format, durable, removed with the topic."""

import time
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient

from ottla.log.offset_checkpoint_file import START_OFFSETS_FILE, decode, encode
from ottla.testing import Broker


def test_checkpoint_has_kafkas_format():
    offsets = {("b", 0): 7, ("a", 11): 1 << 40, ("a", 2): 3}
    assert encode(offsets) == b"0\n3\na 2 3\na 11 1099511627776\nb 0 7\n"
    assert decode(encode(offsets)) == offsets
    assert decode(encode({})) == {}


@pytest.mark.parametrize(
    "text", [b"", b"0", b"1\n0\n", b"0\n2\na 0 1\n", b"0\n1\na 0\n", b"0\n1\na 0 x\n", b"0\nmany\n", b"\xff\n0\n"]
)
def test_corrupt_checkpoint_is_rejected(text):
    with pytest.raises(ValueError, match=r"."):
        decode(text)


def fill(broker: Broker, topic: str, count: int, size: int = 10) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, linger_ms=0)
    for number in range(count):
        producer.send(topic, b"%d" % number + b" " * size, partition=0).get(10)
    producer.close()


def delete(broker: Broker, topic: str, offset: int) -> int:
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    try:
        return int(admin.delete_records({TopicPartition(topic, 0): offset})[TopicPartition(topic, 0)]["low_watermark"])
    finally:
        admin.close()


def first_record(broker: Broker, topic: str) -> tuple[int, bytes | None]:
    """Return the first offset and its record's value."""
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=5_000
    )
    partition = TopicPartition(topic, 0)
    try:
        consumer.assign([partition])
        first = consumer.beginning_offsets([partition])[partition]
        has_records = consumer.end_offsets([partition])[partition] > first
        return first, next(consumer).value.strip() if has_records else None
    finally:
        consumer.close()


def checkpoint(broker: Broker) -> bytes:
    return (Path(broker.data) / START_OFFSETS_FILE).read_bytes()


def test_log_start_offset_survives_a_crash_and_a_shutdown(tmp_path):
    with Broker(data=tmp_path) as broker:
        broker.create_topic("t")
        fill(broker, "t", 10)
        assert delete(broker, "t", 4) == 4
        assert checkpoint(broker) == b"0\n1\nt 0 4\n"
        broker.kill()
        broker.start()
        assert first_record(broker, "t") == (4, b"4")
        assert delete(broker, "t", -1) == 10
        broker.restart()
        assert first_record(broker, "t") == (10, None)


def test_recreated_topic_starts_at_offset_0(tmp_path):
    with Broker(data=tmp_path) as broker:
        broker.create_topic("t")
        broker.create_topic("other")
        fill(broker, "t", 10)
        fill(broker, "other", 10)
        delete(broker, "t", 4)
        delete(broker, "other", 5)
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        admin.delete_topics(["t"])
        admin.close()
        assert checkpoint(broker) == b"0\n1\nother 0 5\n"
        broker.create_topic("t")
        fill(broker, "t", 3)
        broker.kill()
        broker.start()
        assert first_record(broker, "t") == (0, b"0")
        assert first_record(broker, "other") == (5, b"5")


def test_entries_of_deleted_topics_are_removed_at_startup(tmp_path):
    """A crash between deleting a topic and its entry must not affect the next topic of the same name."""
    with Broker(data=tmp_path) as broker:
        broker.kill()
        (tmp_path / START_OFFSETS_FILE).write_bytes(b"0\n1\nt 0 4\n")
        broker.start()
        assert checkpoint(broker) == b"0\n0\n"
        broker.create_topic("t")
        fill(broker, "t", 3)
        broker.kill()
        broker.start()
        assert first_record(broker, "t") == (0, b"0")


def test_files_of_deleted_records_are_removed(tmp_path):
    """They are removed after `file.delete.delay.ms`, so that current readers can finish."""
    with Broker(data=tmp_path) as broker:
        broker.create_topic("t", configs={"segment.bytes": "1048576", "file.delete.delay.ms": "1"})
        fill(broker, "t", 6, size=400_000)
        names = ["00000000000000000000.log", "00000000000000000002.log", "00000000000000000004.log"]
        assert sorted(path.name for path in (tmp_path / "t-0").glob("*.log")) == names
        delete(broker, "t", 5)
        deadline = time.monotonic() + 10
        while (left := sorted(path.name for path in (tmp_path / "t-0").glob("*.log*"))) != names[2:]:
            assert time.monotonic() < deadline, left
        assert first_record(broker, "t") == (5, b"5")
        broker.restart()
        assert first_record(broker, "t") == (5, b"5")


def test_node_starts_with_a_corrupt_checkpoint(tmp_path, caplog):
    with Broker(data=tmp_path) as broker:
        broker.create_topic("t")
        fill(broker, "t", 3)
        delete(broker, "t", 2)
        broker.kill()
        (tmp_path / START_OFFSETS_FILE).write_bytes(b"0\n7\n")
        broker.start()
        assert first_record(broker, "t") == (0, b"0")
    assert START_OFFSETS_FILE in caplog.text
