"""ClusterMetadata: newer data replaces older data, never the reverse."""

from ottla.base.errors import ErrorCode
from ottla.base.ids import Uuid
from ottla.client.cluster_metadata import ClusterMetadata, Node
from ottla.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

ONE, TWO = Uuid(b"1" * 16), Uuid(b"2" * 16)


def response(*topics, brokers=((1, "a", 9), (2, "b", 9))):
    return MetadataResponse(
        brokers=[MetadataResponseBroker(*each) for each in brokers],
        cluster_id="c",
        controller_id=1,
        topics=list(topics),
    )


def topic(name="t", topic_id=ONE, *, error=0, leaders=((1, 0),)):
    partitions = [
        MetadataResponsePartition(0, index, leader, epoch, [1, 2], [1]) for index, (leader, epoch) in enumerate(leaders)
    ]
    return MetadataResponseTopic(error, name, topic_id, False, partitions)


def test_leaders_are_read_from_responses():
    cluster = ClusterMetadata()
    cluster.update(response(topic(leaders=((1, 0), (2, 0), (-1, 0)))))
    assert [cluster.leader("t", index) for index in range(-1, 4)] == [-1, 1, 2, -1, -1]
    assert cluster.leader("other", 0) == -1
    assert cluster.topic("t").available == (0, 1)
    assert cluster.topic_names == {ONE: "t"}
    assert cluster.nodes[2] == Node(2, "b", 9)


def test_older_leader_epoch_does_not_replace_a_leader():
    cluster = ClusterMetadata()
    cluster.update(response(topic(leaders=((2, 5),))))
    cluster.update(response(topic(leaders=((1, 4),))))
    assert cluster.leader("t", 0) == 2
    cluster.update(response(topic(leaders=((1, 6),))))
    assert cluster.leader("t", 0) == 1


def test_recreated_topic_replaces_the_old_one():
    """Its epochs start again, so the old ones do not apply."""
    cluster = ClusterMetadata()
    cluster.update(response(topic(leaders=((2, 5),))))
    cluster.update(response(topic(topic_id=TWO, leaders=((1, 0),))))
    assert cluster.leader("t", 0) == 1
    assert cluster.topic_names == {TWO: "t"}


def test_topic_errors_are_stored():
    cluster = ClusterMetadata()
    cluster.update(response(topic()))
    cluster.update(response(topic(error=ErrorCode.LEADER_NOT_AVAILABLE)))
    assert cluster.errors == {"t": ErrorCode.LEADER_NOT_AVAILABLE}
    assert cluster.topic("t") is not None
    cluster.update(response(topic(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)))
    assert cluster.topic("t") is None
    cluster.update(response(topic()))
    assert cluster.errors == {}


def test_complete_response_removes_missing_topics():
    cluster = ClusterMetadata()
    cluster.update(response(topic(), topic("u", TWO)))
    cluster.update(response(topic("u", TWO)))
    assert sorted(cluster.topics) == ["t", "u"]
    cluster.update(response(topic("u", TWO)), is_complete=True)
    assert sorted(cluster.topics) == ["u"]
    assert cluster.topic_names == {TWO: "u"}


def test_response_without_brokers_keeps_known_brokers():
    """A starting broker may not know any broker, not even itself."""
    cluster = ClusterMetadata()
    cluster.update(response())
    cluster.update(response(brokers=()))
    assert sorted(cluster.nodes) == [1, 2]


def test_reported_leader_is_applied_if_newer():
    cluster = ClusterMetadata()
    cluster.update(response(topic(leaders=((1, 3), (1, 3)))))
    assert cluster.set_leader("t", 0, 2, 4) is True
    assert cluster.set_leader("t", 0, 1, 4) is False
    assert cluster.set_leader("t", 0, 9, 5) is False
    assert cluster.set_leader("t", 0, 9, 5, [Node(9, "z", 1)]) is True
    assert cluster.set_leader("nope", 0, 1, 9) is False
    assert [cluster.leader("t", index) for index in (0, 1)] == [9, 1]
