"""One data directory used by Ottla and Apache Kafka in turn. Needs Kafka's jars."""

import shutil
import time
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.peers import ApacheKafka, BrokerProcess, OttlaProcess
from tests.compat.clients.jvm import missing

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

QUICK = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "500"}
"""Short sessions: Kafka waits for the previous broker's session with the same id to expire."""


def create(bootstrap: str, *topics: NewTopic) -> None:
    admin = AdminClient(
        {"bootstrap.servers": bootstrap}
    )  # keep the client until the response: closing it cancels the request
    for future in admin.create_topics(list(topics)).values():
        future.result(30)


def produce(bootstrap: str, topic: str, *values: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True})
    for value in values:
        producer.produce(topic, value.encode(), partition=0)
    assert producer.flush(60) == 0


def consume(bootstrap: str, topic: str, count: int) -> list[str]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[str] = []
    while len(found) < count:
        message = consumer.poll(30)
        assert message is not None, f"only {found} of {count}"
        assert message.error() is None, message.error()
        found.append(message.value().decode())
    consumer.close()
    return found


def described(broker: BrokerProcess, topic: str) -> tuple[int, str | None]:
    """Return the topic's partition count and the cluster id."""
    metadata = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(topic, timeout=30)
    return len(metadata.topics[topic].partitions), metadata.cluster_id


@pytest.mark.parametrize("stops_cleanly", [True, False], ids=["stopped", "killed"])
def test_kafka_and_ottla_share_a_directory(tmp_path: Path, stops_cleanly: bool) -> None:
    """Ottla, Kafka, Ottla: records, topics, configs and cluster id are preserved."""
    data = tmp_path / "data"

    def end(broker: BrokerProcess) -> None:
        if stops_cleanly:
            assert broker.stop() in (0, 143)
        else:
            broker.kill()

    with OttlaProcess(data_dir=data) as ottla:
        create(ottla.bootstrap, NewTopic("first", 3, 1, config={"retention.ms": "987654321"}))
        produce(ottla.bootstrap, "first", "a", "b")
        cluster_id = described(ottla, "first")[1]
        end(ottla)
    with ApacheKafka(data_dir=data, settings=QUICK, heap="512m") as kafka:
        assert described(kafka, "first") == (3, cluster_id)
        assert consume(kafka.bootstrap, "first", 2) == ["a", "b"]
        produce(kafka.bootstrap, "first", "c")
        create(kafka.bootstrap, NewTopic("second", 2, 1))
        produce(kafka.bootstrap, "second", "x")
        end(kafka)
    with OttlaProcess(data_dir=data) as ottla:
        assert described(ottla, "first") == (3, cluster_id)
        assert consume(ottla.bootstrap, "first", 3) == ["a", "b", "c"]
        assert consume(ottla.bootstrap, "second", 1) == ["x"]
        produce(ottla.bootstrap, "second", "y")
        assert consume(ottla.bootstrap, "second", 2) == ["x", "y"]
    shutil.rmtree(data)


def group_of(broker: BrokerProcess, **config: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "both",
            "enable.auto.commit": False,
            "session.timeout.ms": 6000,
            "auto.offset.reset": "earliest",
            **config,
        }
    )


def committed(broker: BrokerProcess) -> list[int]:
    """Return committed offsets, once the coordinator is loaded."""
    consumer = group_of(broker)
    deadline = time.monotonic() + 60
    try:
        while True:
            try:
                return [
                    found.offset
                    for found in consumer.committed([TopicPartition("first", index) for index in range(3)], 30)
                ]
            except KafkaException as error:
                if error.args[0].code() != KafkaError.NOT_COORDINATOR or time.monotonic() > deadline:
                    raise
    finally:
        consumer.close()


def consume_as_member(broker: BrokerProcess, offset: int) -> None:
    """Join, commit the first partition's offset and leave."""
    consumer = group_of(broker)
    consumer.subscribe(["first"])
    while not consumer.assignment():
        consumer.poll(0.1)
    consumer.commit(offsets=[TopicPartition("first", 0, offset)], asynchronous=False)
    consumer.close()


def commit_in_transactions(kafka: BrokerProcess) -> None:
    """Run three transactions: committed, aborted and left open."""
    members = group_of(kafka).consumer_group_metadata()
    for partition, offset, end in ((1, 7, "commit"), (2, 8, "abort"), (2, 9, "leave open")):
        producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": f"t-{offset}"})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce("first", b"in a transaction", partition=0)
        producer.send_offsets_to_transaction([TopicPartition("first", partition, offset)], members, 30)
        if end == "commit":
            producer.commit_transaction(30)
        elif end == "abort":
            producer.abort_transaction(30)


def test_kafka_and_ottla_share_committed_offsets(tmp_path: Path) -> None:
    """Committed offsets are preserved; transactional ones only if their transaction committed."""
    data = tmp_path / "data"
    settings = {"group.initial.rebalance.delay.ms": "0"}
    with OttlaProcess(data_dir=data, settings=settings) as ottla:
        create(ottla.bootstrap, NewTopic("first", 3, 1))
        produce(ottla.bootstrap, "first", "a", "b")
        consume_as_member(ottla, 2)
        assert committed(ottla) == [2, OFFSET_INVALID, OFFSET_INVALID]
        assert ottla.stop() == 0
    with ApacheKafka(data_dir=data, settings=QUICK, heap="512m") as kafka:
        assert committed(kafka) == [2, OFFSET_INVALID, OFFSET_INVALID]
        consume_as_member(kafka, 1)
        commit_in_transactions(kafka)
        kafka.kill()
    with OttlaProcess(data_dir=data, settings=settings) as ottla:
        assert committed(ottla) == [1, 7, OFFSET_INVALID]
        consume_as_member(ottla, 2)
        assert committed(ottla) == [2, 7, OFFSET_INVALID]
    shutil.rmtree(data)
