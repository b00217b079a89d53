"""Retention and compaction in a complete node."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import OffsetOutOfRangeError

from ottla.log.offset_checkpoint_file import CLEAN_OFFSETS_FILE
from ottla.node.assemble import Node
from ottla.runtime.partition import Partition
from ottla.testing import Broker

QUICK = {"log.cleaner.backoff.ms": "20", "log.retention.check.interval.ms": "50", "log.initial.task.delay.ms": "0"}
COMPACTED = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "2000",
    "min.cleanable.dirty.ratio": "0.01",
    "file.delete.delay.ms": "1",
}
WAIT_SECONDS_MAX = 20


def until(condition: Callable[[], object], message: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, message
        time.sleep(0.01)


def send(broker: Broker, topic: str, count: int, *, keys: int = 5, first: int = 0) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, linger_ms=0)
    for number in range(first, first + count):
        producer.send(topic, key=b"k%d" % (number % keys), value=b"%d" % number + b" " * 30, partition=0).get(10)
    producer.close()


def read(broker: Broker, topic: str) -> dict[int, tuple[bytes, bytes]]:
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest")
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    end = consumer.end_offsets([partition])[partition]
    found = {}
    while consumer.position(partition) < end:
        for records in consumer.poll(1000).values():
            found.update({record.offset: (record.key, record.value) for record in records})
    consumer.close()
    return found


def node_of(broker: Broker) -> Node:
    return broker._broker.node


def partition_of(broker: Broker, topic: str) -> Partition:
    found = node_of(broker).broker.partition(topic, 0)
    assert found is not None
    return found


def clean_offset(broker: Broker, topic: str) -> int:
    path = Path(broker.data) / CLEAN_OFFSETS_FILE
    lines = path.read_text().splitlines() if path.exists() else []
    return next((int(line.split()[2]) for line in lines if line.startswith(f"{topic} 0 ")), 0)


def is_clean(broker: Broker, topic: str) -> bool:
    return clean_offset(broker, topic) == partition_of(broker, topic).log.segments[-1].base_offset > 0


def test_compacted_topic_keeps_the_latest_record_per_key_even_after_a_crash():
    with Broker(configs=QUICK) as broker:
        broker.create_topic("c", configs=COMPACTED)
        send(broker, "c", 100)
        until(lambda: is_clean(broker, "c"), "it is not cleaned")
        found = read(broker, "c")
        assert len(found) < 40
        assert dict(found.values()) == {b"k%d" % (at % 5): b"%d" % at + b" " * 30 for at in range(95, 100)}
        broker.kill()
        broker.start()
        assert read(broker, "c").items() <= found.items()
        before = clean_offset(broker, "c")
        send(broker, "c", 100, first=100)
        until(lambda: is_clean(broker, "c") and clean_offset(broker, "c") > before, "it is not cleaned again")
        found = read(broker, "c")
        broker.restart()
        assert read(broker, "c").items() <= found.items()


def test_corrupt_log_is_excluded_and_others_are_cleaned(caplog):
    with Broker(configs=QUICK) as broker:
        for name in ("bad", "good"):
            broker.create_topic(name, configs={**COMPACTED, "min.cleanable.dirty.ratio": "1"})
            send(broker, name, 60)
            until(
                lambda name=name: partition_of(broker, name).log.segments[-2].offset_index is None,
                "its segments are not flushed",
            )
        path = partition_of(broker, "bad").log.segments[0].log_path
        data = bytearray(Path(path).read_bytes())
        data[70] ^= 0xFF
        Path(path).write_bytes(data)
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        from kafka.admin import ConfigResource, ConfigResourceType

        for name in ("bad", "good"):
            admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, COMPACTED)])
        admin.close()
        until(lambda: is_clean(broker, "good"), "the valid log is not cleaned")
        cleaner = node_of(broker).broker.log_cleaner
        assert cleaner is not None
        until(lambda: cleaner.uncleanable_count == 1, "the corrupt log is not excluded")
        assert Path(path).read_bytes() == data
        assert "compaction of bad-0 disabled until restart" in caplog.text


def test_topic_deleted_during_cleaning_leaves_no_files():
    """Cleaning is throttled, so that the deletion happens in between."""
    with Broker(configs={**QUICK, "log.cleaner.io.max.bytes.per.second": "2000"}) as broker:
        broker.create_topic("c", configs=COMPACTED)
        send(broker, "c", 100)
        cleaner = node_of(broker).broker.log_cleaner
        assert cleaner is not None
        until(lambda: list((Path(broker.data) / "c-0").glob("*.cleaned")), "it is not cleaned")
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        admin.delete_topics(["c"])
        broker.create_topic("c", configs=COMPACTED)
        until(
            lambda: not [path for path in Path(broker.data).iterdir() if path.name.endswith("-delete")],
            "it is not removed",
        )
        admin.close()
        send(broker, "c", 5)
        assert len(read(broker, "c")) == 5
        assert cleaner.uncleanable_count == 0


def test_deleted_segments_cause_offset_out_of_range():
    with Broker(configs=QUICK) as broker:
        broker.create_topic(
            "r", config={"internal.segment.bytes": "2000", "retention.bytes": "4000", "file.delete.delay.ms": "1"}
        )
        send(broker, "r", 200)
        log = partition_of(broker, "r").log
        until(lambda: log.size_bytes <= 6000, "nothing was deleted")
        until(lambda: not list((Path(broker.data) / "r-0").glob("*.deleted")), "the files are still there")
        start = log.log_start_offset
        assert min(read(broker, "r")) == start > 100
        consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="none")
        consumer.assign([TopicPartition("r", 0)])
        consumer.seek(TopicPartition("r", 0), 0)
        with pytest.raises(OffsetOutOfRangeError):
            [consumer.poll(100) for _ in range(100)]
        consumer.close()
        broker.kill()
        broker.start()
        assert partition_of(broker, "r").log.log_start_offset >= start


def test_active_segment_is_deleted_once_expired():
    with Broker(configs=QUICK) as broker:
        broker.create_topic("r", configs={"retention.ms": "1", "file.delete.delay.ms": "1"})
        send(broker, "r", 3)
        until(lambda: partition_of(broker, "r").log.log_start_offset == 3, "it is still there")
        assert read(broker, "r") == {}
        send(broker, "r", 1)
        assert partition_of(broker, "r").log.log_end_offset == 4


def test_topic_with_both_policies_is_compacted_and_deleted():
    with Broker(configs=QUICK) as broker:
        broker.create_topic("b", configs={**COMPACTED, "cleanup.policy": "compact,delete", "retention.bytes": "3000"})
        send(broker, "b", 300, keys=1000)
        until(lambda: partition_of(broker, "b").log.size_bytes <= 5000 and is_clean(broker, "b"), "nothing was deleted")
        assert max(read(broker, "b")) == 299


def test_groups_are_loaded_from_a_compacted_log():
    config = {**QUICK, "offsets.topic.num.partitions": "1", "log.cleaner.min.cleanable.ratio": "0.01"}
    with Broker(configs=config) as broker:
        broker.create_topic("t", partitions=3)
        committer = KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id="g", enable_auto_commit=False)
        committer.assign([TopicPartition("t", index) for index in range(3)])
        from kafka.structs import OffsetAndMetadata

        for number in range(60):
            committer.commit(
                {TopicPartition("t", index): OffsetAndMetadata(number + index, "m", -1) for index in range(3)}
            )
            if number == 30:
                _roll(broker, "__consumer_offsets")
        _roll(broker, "__consumer_offsets")
        before = partition_of(broker, "__consumer_offsets").log.size_bytes
        until(lambda: is_clean(broker, "__consumer_offsets"), "it is not cleaned")
        assert partition_of(broker, "__consumer_offsets").log.size_bytes < before / 4
        committer.close(autocommit=False)
        broker.restart()
        reader = KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id="g", enable_auto_commit=False)
        assert [reader.committed(TopicPartition("t", index)) for index in range(3)] == [59, 60, 61]
        reader.close()


def _roll(broker: Broker, topic: str) -> None:
    """Close the active segment, in the node's event loop."""
    done = threading.Event()
    loop = node_of(broker).broker.loop

    def roll() -> None:
        partition_of(broker, topic).log.roll(now_ms=0)
        done.set()

    loop.call_soon_threadsafe(roll)
    assert done.wait(10)


def test_stop_during_cleaning_leaves_a_valid_log():
    with Broker(configs={**QUICK, "log.cleaner.io.max.bytes.per.second": "20000"}) as broker:
        broker.create_topic("c", configs=COMPACTED)
        send(broker, "c", 100)
        until(lambda: list((Path(broker.data) / "c-0").glob("*.cleaned")), "it is not cleaned")
        broker.restart()
        values = dict(read(broker, "c").values())
        assert values == {b"k%d" % (at % 5): b"%d" % at + b" " * 30 for at in range(95, 100)}
