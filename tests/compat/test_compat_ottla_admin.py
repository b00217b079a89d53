"""Admin of `ottla.client`.

The same tests run against Ottla and, with OTTLA_COMPAT_BOOTSTRAP, against Apache Kafka.
"""

import asyncio
import time

import pytest

from bench.peers import free_port
from ottla.client import (
    Admin,
    AsyncAdmin,
    BootstrapError,
    BrokerError,
    ClientClosedError,
    CommittedOffset,
    ConfigError,
    ConfigResource,
    NewTopic,
    PartialFailureError,
    Producer,
    TopicPartition,
    UnknownTopicOrPartitionError,
)

LIST_GROUPS = 16


def eventually(check, seconds=10):
    """Wait for a condition: brokers apply changes with a delay."""
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return True


@pytest.fixture
def admin(broker):
    with Admin(bootstrap_servers=broker.bootstrap) as client:
        yield client


@pytest.fixture
def require_groups(api_keys):
    if LIST_GROUPS not in api_keys:
        pytest.skip("the broker has no groups")


def test_topic_lifecycle(admin, new_name):
    one, two = new_name(), new_name()
    created = admin.create_topics(
        [NewTopic(one, 3, 1, {"retention.ms": "1000"}), NewTopic(two, assignments={0: (1,), 1: (1,)})]
    )
    assert [(topic.name, topic.partitions, topic.replication_factor) for topic in created.values()] == [
        (one, 3, 1),
        (two, 2, 1),
    ]
    assert created[one].configs["retention.ms"] == "1000"
    assert eventually(lambda: {one, two} <= set(admin.list_topics()))
    described = admin.describe_topics([one])[one]
    assert described.id == created[one].id
    assert [(each.partition, each.leader.id, each.replicas, each.in_sync) for each in described.partitions] == [
        (index, 1, (1,), (1,)) for index in range(3)
    ]
    admin.delete_topics([one, two])
    assert eventually(lambda: not {one, two} & set(admin.list_topics()))


def test_single_and_partial_failures(admin, make_topic, new_name):
    """A single item raises its error; several raise PartialFailureError with all results."""
    topic, other = make_topic(), new_name()
    with pytest.raises(BrokerError, match=r"TOPIC_ALREADY_EXISTS .* Use it, pick another name"):
        admin.create_topic(topic)
    with pytest.raises(PartialFailureError, match="1 of 2 failed") as caught:
        admin.create_topics([NewTopic(topic, 1, 1), NewTopic(other, 1, 1)])
    assert list(caught.value.errors) == [topic]
    assert list(caught.value.results) == [other]
    assert caught.value.name == "TOPIC_ALREADY_EXISTS"
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.describe_topics(["no-such-topic"])
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.delete_topics(["no-such-topic"])
    with pytest.raises(BrokerError, match="INVALID_REPLICATION_FACTOR"):
        admin.create_topic(new_name(), 1, 30)


def test_validation_changes_nothing(admin, new_name):
    topic = new_name()
    assert admin.create_topics([NewTopic(topic, 2, 1)], validate_only=True)[topic].partitions == 2
    assert topic not in admin.list_topics()


def test_create_partitions(admin, make_topic):
    topic = make_topic()
    admin.create_partitions({topic: 3})
    with pytest.raises(BrokerError, match="INVALID_PARTITIONS"):
        admin.create_partitions({topic: 2})


def test_list_offsets_and_delete_records(broker, admin, make_topic):
    topic = make_topic(partitions=2)
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for index in range(10):
            producer.send(topic, b"%d" % index, partition=0, timestamp=1000 + index)
    found = admin.list_offsets({(topic, 0): "latest", (topic, 1): "latest"})
    assert {partition: result.offset for partition, result in found.items()} == {
        TopicPartition(topic, 0): 10,
        TopicPartition(topic, 1): 0,
    }
    assert [
        admin.list_offsets({(topic, 0): spec})[topic, 0].offset for spec in ("earliest", 1004, 5000, "max_timestamp")
    ] == [0, 4, -1, 9]
    assert admin.delete_records({(topic, 0): 6}) == {(topic, 0): 6}
    assert admin.list_offsets({(topic, 0): "earliest"})[topic, 0].offset == 6
    assert admin.delete_records({(topic, 0): -1}) == {(topic, 0): 10}
    with pytest.raises(BrokerError, match="OFFSET_OUT_OF_RANGE"):
        admin.delete_records({(topic, 0): 99})
    (state,) = admin.describe_producers([(topic, 0)])[topic, 0]
    assert (state.producer_epoch, state.last_sequence) == (0, 9)


def test_describe_cluster(admin):
    cluster = admin.describe_cluster()
    assert len(cluster.cluster_id) == 22
    assert [each.node.id for each in cluster.brokers] == [1]
    quorum = admin.describe_quorum()
    assert quorum.leader == 1
    assert [voter.id for voter in quorum.voters] == [1]
    features = admin.describe_features()
    low, high = features.supported["metadata.version"]
    assert low <= features.finalized["metadata.version"][1] <= high
    with pytest.raises(BrokerError, match="INVALID_UPDATE_VERSION"):
        admin.update_features({"metadata.version": 3}, kind="safe_downgrade")


def test_describe_log_dirs(broker, admin, make_topic):
    topic = make_topic()
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        producer.send(topic, b"x" * 1000)
    ((directory,),) = admin.describe_log_dirs().values()
    assert directory.error is None
    assert directory.replicas[TopicPartition(topic, 0)].size > 1000
    assert directory.total_bytes >= directory.usable_bytes > 0


def test_elect_leaders(admin, make_topic):
    topic = make_topic()
    (error,) = admin.elect_leaders([(topic, 0)]).values()
    assert error.name == "ELECTION_NOT_NEEDED"
    (error,) = admin.elect_leaders([("no-such-topic", 0)]).values()
    assert error.name == "UNKNOWN_TOPIC_OR_PARTITION"


def test_describe_and_alter_configs(admin, make_topic):
    topic = make_topic()
    resource = ConfigResource("topic", topic)
    admin.alter_configs({resource: {"retention.ms": "5000"}})
    eventually(lambda: admin.describe_configs([resource])[resource]["retention.ms"].value == "5000")
    entry = admin.describe_configs([resource], names=["retention.ms"], synonyms=True)[resource]["retention.ms"]
    assert (entry.value, entry.source, entry.is_default) == ("5000", "dynamic_topic", False)
    assert entry.synonyms[0] == ("retention.ms", "5000", "dynamic_topic")
    admin.alter_configs({resource: [("append", "cleanup.policy", "compact")]})
    assert eventually(lambda: admin.describe_configs([resource])[resource]["cleanup.policy"].value == "delete,compact")
    admin.alter_configs({resource: {"retention.ms": None}})
    assert eventually(
        lambda: admin.describe_configs([resource], names=["retention.ms"])[resource]["retention.ms"].is_default
    )
    with pytest.raises(BrokerError, match="INVALID_CONFIG"):
        admin.alter_configs({resource: {"retention.ms": "soon"}})
    broker_configs = admin.describe_configs(
        [ConfigResource("broker", "1")], names=["num.partitions"], documentation=True
    )
    assert broker_configs[ConfigResource("broker", "1")]["num.partitions"].documentation
    assert resource in admin.list_config_resources(["topic"])


def test_group_offsets_and_deletion(admin, make_topic, require_groups):
    topic, group = make_topic(partitions=2), f"group-of-{make_topic()}"
    admin.alter_group_offsets(group, {(topic, 0): 5, (topic, 1): CommittedOffset(7, metadata="here")})
    assert admin.list_group_offsets(group) == {
        (topic, 0): CommittedOffset(5),
        (topic, 1): CommittedOffset(7, metadata="here"),
    }
    assert admin.list_group_offsets(group, [(topic, 1)]) == {(topic, 1): CommittedOffset(7, metadata="here")}
    assert admin.list_groups()[group].state == "Empty"
    assert group not in admin.list_groups(states=["Stable"])
    described = admin.describe_groups([group])[group]
    assert (described.state, described.members, described.coordinator) == ("Empty", (), 1)
    admin.delete_group_offsets(group, [(topic, 0)])
    assert list(admin.list_group_offsets(group)) == [(topic, 1)]
    admin.delete_groups([group])
    assert group not in admin.list_groups()
    with pytest.raises(BrokerError, match="GROUP_ID_NOT_FOUND"):
        admin.delete_groups([group])
    with pytest.raises(BrokerError, match="GROUP_ID_NOT_FOUND"):
        admin.describe_groups([group])


def test_describe_missing_groups(admin, make_topic, require_groups):
    """Existing groups are returned anyway."""
    topic, group = make_topic(), f"group-of-{make_topic()}"
    admin.alter_group_offsets(group, {(topic, 0): 5})
    with pytest.raises(PartialFailureError, match="GROUP_ID_NOT_FOUND") as failed:
        admin.describe_groups([group, f"{group}-not"])
    assert {name: described.state for name, described in failed.value.results.items()} == {group: "Empty"}
    assert list(failed.value.errors) == [f"{group}-not"]


def test_group_with_members(broker, admin, make_topic, require_groups):
    from confluent_kafka import Consumer

    topic = make_topic(partitions=2)
    group = f"group-of-{topic}"
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "client.id": "reader",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    for _ in range(100):
        consumer.poll(0.2)
        if consumer.assignment():
            break
    described = admin.describe_groups([group])[group]
    (member,) = described.members
    assert (described.state, described.protocol_type, member.client_id) == ("Stable", "consumer", "reader")
    assert sorted(member.assignment) == [(topic, 0), (topic, 1)]
    with pytest.raises(BrokerError, match=r"NON_EMPTY_GROUP.*Stop the members"):
        admin.delete_groups([group])
    with pytest.raises(BrokerError, match=r"GROUP_SUBSCRIBED_TO_TOPIC|UNKNOWN_MEMBER_ID"):
        admin.delete_group_offsets(group, [(topic, 0)])
    consumer.close()


def test_async_admin(broker, new_name):
    topic = new_name()

    async def work():
        async with AsyncAdmin(bootstrap_servers=broker.bootstrap) as admin:
            await admin.create_topic(topic, 2, 1)
            cluster, topics = await asyncio.gather(admin.describe_cluster(), admin.list_topics())
            while topic not in topics:
                topics = await admin.list_topics()
            assert cluster.controller == 1
        with pytest.raises(ClientClosedError):
            await admin.list_topics()

    asyncio.run(work())


def test_unreachable_cluster_raises():
    address = f"127.0.0.1:{free_port()}"
    reason = f"{address} is unreachable"
    with (
        Admin(bootstrap_servers=address, default_api_timeout_ms=400) as admin,
        pytest.raises(BootstrapError, match=reason),
    ):
        admin.list_topics()
    with pytest.raises(ConfigError, match="Did you mean default_api_timeout_ms"):
        Admin(bootstrap_servers=address, default_api_timeout=400)
