"""Topic creation: automatic, and through each client's admin API."""

import asyncio
import time
from collections.abc import Callable

import pytest

from tests.compat.clients.base import Client
from tests.compat.conftest import Broker
from tests.compat.record import Sent


def eventually(what: Callable[[], bool]) -> None:
    """Wait for a condition: Kafka's brokers apply a change shortly after the response."""
    deadline = time.monotonic() + 15
    while not what():
        assert time.monotonic() < deadline, "condition not met in time"
        time.sleep(0.01)


def test_producing_creates_the_topic(broker: Broker, client: Client, new_name: Callable[[], str]) -> None:
    topic = new_name()
    client.produce(broker.bootstrap, topic, [Sent(0, b"k", b"first"), Sent(0, b"k", b"second")])
    found = client.consume(broker.bootstrap, topic, {0: 0}, {0: 2})
    assert [(record.offset, record.value) for record in found] == [(0, b"first"), (1, b"second")]


def test_metadata_request_creates_the_topic(broker: Broker, client: Client, new_name: Callable[[], str]) -> None:
    topic = new_name()
    assert client.partition_count(broker.bootstrap, topic) == 1
    assert client.offsets(broker.bootstrap, topic, [0], "latest") == {0: 0}


def test_admin_of_confluent_kafka(broker: Broker, new_name: Callable[[], str]) -> None:
    pytest.importorskip("confluent_kafka")
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic

    admin, topic = AdminClient({"bootstrap.servers": broker.bootstrap}), new_name()
    admin.create_topics([NewTopic(topic, 2, 1, config={"retention.ms": "1000", "cleanup.policy": "compact"})])[
        topic
    ].result(10)
    with pytest.raises(KafkaException) as again:
        admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(10)
    assert again.value.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
    admin.create_partitions([NewPartitions(topic, 5)])[topic].result(10)
    eventually(lambda: sorted(admin.list_topics(topic, timeout=10).topics[topic].partitions) == [0, 1, 2, 3, 4])
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    configs = next(iter(admin.describe_configs([resource]).values())).result(10)
    assert (configs["retention.ms"].value, configs["cleanup.policy"].value) == ("1000", "compact")
    assert (configs["segment.bytes"].value, configs["segment.bytes"].is_default) == ("1073741824", True)
    cluster = admin.describe_cluster().result(10)
    assert [f"{node.host}:{node.port}" for node in cluster.nodes] == [broker.bootstrap]
    admin.delete_topics([topic])[topic].result(10)
    eventually(lambda: topic not in admin.list_topics(timeout=10).topics)


def test_admin_of_kafka_python(broker: Broker, new_name: Callable[[], str]) -> None:
    pytest.importorskip("kafka")
    from kafka.admin import KafkaAdminClient

    admin, topic = KafkaAdminClient(bootstrap_servers=broker.bootstrap), new_name()
    try:
        admin.create_topics(
            {topic: {"num_partitions": 2, "replication_factor": 1, "configs": {"retention.ms": "1000"}}}
        )
        eventually(lambda: topic in admin.list_topics())
        eventually(lambda: [len(entry["partitions"]) for entry in admin.describe_topics([topic])] == [2])
        admin.create_partitions({topic: 4})
        eventually(lambda: [len(entry["partitions"]) for entry in admin.describe_topics([topic])] == [4])
        admin.delete_topics([topic])
        eventually(lambda: topic not in admin.list_topics())
    finally:
        admin.close()


def test_admin_of_aiokafka(broker: Broker, new_name: Callable[[], str]) -> None:
    pytest.importorskip("aiokafka")
    from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic

    topic = new_name()

    async def run() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
        await admin.start()
        try:
            await admin.create_topics([NewTopic(topic, 2, 1, topic_configs={"retention.ms": "1000"})])
            assert topic in await admin.list_topics()
            await admin.create_partitions({topic: NewPartitions(4)})
            assert [len(entry["partitions"]) for entry in await admin.describe_topics([topic])] == [4]
            await admin.delete_topics([topic])
            assert topic not in await admin.list_topics()
        finally:
            await admin.close()

    asyncio.run(run())
