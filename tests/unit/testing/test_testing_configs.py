"""Configs that docs/CONFIGS.md lists as effective: set each on a broker and observe the effect through a client."""

import pathlib
import struct
import time
from collections.abc import Mapping

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import InvalidTimestampError, KafkaError, MessageSizeTooLargeError

from ottla.base.errors import ApiError, ErrorCode
from ottla.testing import Broker

CODECS = {"uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


def send(broker: Broker, value: bytes, *, key: bytes | None = None, timestamp_ms: int | None = None) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, retries=0, max_request_size=10 << 20)
    try:
        producer.send("t", value, key=key, partition=0, timestamp_ms=timestamp_ms).get(10)
    finally:
        producer.close()


def stored_attributes(broker: Broker) -> int:
    """Return the attributes of the first batch in the log of partition 0."""
    data = (pathlib.Path(broker.data) / "t-0" / "00000000000000000000.log").read_bytes()
    return int(struct.unpack_from(">h", data, 21)[0])


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("on", ["topic", "broker"])
def test_compression_type(codec: str, on: str) -> None:
    with Broker(configs={"compression.type": codec} if on == "broker" else {}) as broker:
        broker.create_topic("t", configs={"compression.type": codec} if on == "topic" else {})
        send(broker, b"x" * 1000)
        assert stored_attributes(broker) & 7 == CODECS[codec]
        consumer = KafkaConsumer(
            bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=10_000
        )
        consumer.assign([TopicPartition("t", 0)])
        assert next(consumer).value == b"x" * 1000
        consumer.close()


@pytest.mark.parametrize(
    ("broker_config", "topic_config"),
    [
        ({"message.max.bytes": "1000"}, {}),
        ({}, {"max.message.bytes": "1000"}),
        ({"message.max.bytes": "9999999"}, {"max.message.bytes": "1000"}),
    ],
)
def test_max_message_bytes(broker_config: Mapping[str, str], topic_config: Mapping[str, str]) -> None:
    with Broker(configs=broker_config) as broker:
        broker.create_topic("t", configs=topic_config)
        send(broker, b"x" * 900)
        with pytest.raises(MessageSizeTooLargeError):
            send(broker, b"x" * 1000)


@pytest.mark.parametrize(
    ("broker_config", "topic_config"),
    [({"log.message.timestamp.type": "LogAppendTime"}, {}), ({}, {"message.timestamp.type": "LogAppendTime"})],
)
def test_log_append_time(broker_config: Mapping[str, str], topic_config: Mapping[str, str]) -> None:
    with Broker(configs=broker_config) as broker:
        broker.create_topic("t", configs=topic_config)
        send(broker, b"x", timestamp_ms=5)
        consumer = KafkaConsumer(
            bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=10_000
        )
        consumer.assign([TopicPartition("t", 0)])
        record = next(consumer)
        consumer.close()
        assert (record.timestamp_type, record.timestamp > 1_000_000_000_000) == (1, True)


@pytest.mark.parametrize(
    ("config", "shift_ms"),
    [
        ({"message.timestamp.before.max.ms": "1000"}, -100_000),
        ({"message.timestamp.after.max.ms": "1000"}, 100_000),
    ],
)
def test_timestamps_out_of_range(config: Mapping[str, str], shift_ms: int) -> None:
    with Broker() as broker:
        broker.create_topic("t", configs=config)
        now_ms = int(time.time() * 1000)
        send(broker, b"x", timestamp_ms=now_ms)
        with pytest.raises(InvalidTimestampError):
            send(broker, b"x", timestamp_ms=now_ms + shift_ms)


@pytest.mark.parametrize(("config", "segments"), [({}, 1), ({"internal.segment.bytes": "300"}, 5)])
def test_segments_roll_by_size(config: Mapping[str, str], segments: int) -> None:
    with Broker() as broker:
        broker.create_topic("t", configs=config)
        for _ in range(5):
            send(broker, b"x" * 200)
        assert len(list((pathlib.Path(broker.data) / "t-0").glob("*.log"))) == segments


def test_segments_roll_by_time() -> None:
    with Broker(configs={"log.roll.ms": "60000"}) as broker:
        broker.create_topic("t")
        for timestamp_ms in (1_000, 2_000, 100_000):
            send(broker, b"x", timestamp_ms=timestamp_ms)
        assert len(list((pathlib.Path(broker.data) / "t-0").glob("*.log"))) == 2


def test_compacted_topics_need_keys() -> None:
    with Broker(configs={"log.cleanup.policy": "compact"}) as broker:
        broker.create_topic("t")
        send(broker, b"x", key=b"k")
        with pytest.raises(KafkaError):
            send(broker, b"x")


def test_auto_create_topics() -> None:
    with Broker(configs={"num.partitions": "3"}) as broker:
        send(broker, b"x")
        assert len(list(pathlib.Path(broker.data).glob("t-*"))) == 3
    with Broker(configs={"auto.create.topics.enable": "false"}) as broker:
        consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap)
        assert not consumer.partitions_for_topic("t")
        assert consumer.topics() == set()
        consumer.close()
    with Broker(configs={"default.replication.factor": "2"}) as broker:
        with pytest.raises(ApiError) as error:
            broker.create_topic("t", replication_factor=-1)
        assert error.value.code is ErrorCode.INVALID_REPLICATION_FACTOR


def test_delete_topic_disabled() -> None:
    with Broker(configs={"delete.topic.enable": "false"}) as broker:
        broker.create_topic("t")
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        with pytest.raises(KafkaError):
            admin.delete_topics(["t"])
        admin.close()


def test_socket_request_max_bytes() -> None:
    import socket

    with Broker(configs={"socket.request.max.bytes": "1000"}) as broker:
        host, port = broker.bootstrap.split(":")
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            connection.sendall(struct.pack(">ihhih", 1001, 18, 0, 7, -1))
            assert connection.recv(10) == b""
