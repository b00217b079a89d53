"""Deltas: what each record changes in the image, and which parts stay shared."""

import time
from typing import Any

import pytest

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.metadata.delta import ClusterDelta, ImageChanges, ReplayError, TopicChange
from ottla.metadata.image import (
    BrokerRegistration,
    ClusterImage,
    ConfigResource,
    ControllerRegistration,
    Endpoint,
    LeaderRecovery,
    PartitionImage,
    ResourceType,
    TopicImage,
    VersionRange,
)
from ottla.wire.records.framing import UnknownRecord
from ottla.wire.records.metadata import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    ControllerEndpoint,
    ControllerFeature,
    DelegationTokenRecord,
    EndTransactionRecord,
    EntityData,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
)

CLUSTER = "AAAAAAAAAAAAAAAAAAAAAg"
DIR = Uuid(bytes(15) + b"\xd1")


def id_of(number: int) -> Uuid:
    return Uuid(number.to_bytes(16, "big"))


def partition_record(topic: int, index: int, **changes: Any) -> PartitionRecord:
    values: dict[str, Any] = {
        "replicas": [1, 2],
        "isr": [1, 2],
        "leader": 1,
        "leader_epoch": 0,
        "partition_epoch": 0,
        "directories": [DIR, DIR],
    }
    return PartitionRecord(partition_id=index, topic_id=id_of(topic), **(values | changes))


PARTITION = PartitionImage((1, 2), (1, 2), 1, 0, 0, (DIR, DIR))


def replayed(image: ClusterImage, *records: Any) -> ClusterImage:
    return step(image, *records)[0]


def step(image: ClusterImage, *records: Any) -> tuple[ClusterImage, ImageChanges]:
    delta = ClusterDelta(image)
    for number, record in enumerate(records):
        delta.replay(image.last_offset + 1 + number, record)
    after = delta.apply()
    return after, delta.changes(after)


@pytest.fixture
def image() -> ClusterImage:
    """Two topics, one of them with a config."""
    return replayed(
        ClusterImage(CLUSTER),
        TopicRecord("a", id_of(1)),
        ConfigRecord(ResourceType.TOPIC, "a", "retention.ms", "5"),
        partition_record(1, 0),
        partition_record(1, 1),
        TopicRecord("b", id_of(2)),
        partition_record(2, 0),
    )


def test_topics_are_found_by_id_and_name(image: ClusterImage) -> None:
    """Both lookups return the same object."""
    a = TopicImage("a", id_of(1), {0: PARTITION, 1: PARTITION})
    b = TopicImage("b", id_of(2), {0: PARTITION})
    assert image == ClusterImage(
        CLUSTER,
        topics_by_id={id_of(1): a, id_of(2): b},
        topics_by_name={"a": a, "b": b},
        configs={ConfigResource(ResourceType.TOPIC, "a"): {"retention.ms": "5"}},
        last_offset=5,
    )
    assert image.topics_by_id[id_of(1)] is image.topics_by_name["a"]


def test_unchanged_parts_are_shared(image: ClusterImage) -> None:
    """Only the changed topic is a new object; the old image is unchanged."""
    before = image.topics_by_name["a"]
    after, changes = step(image, PartitionChangeRecord(partition_id=1, topic_id=id_of(1), isr=[1]))
    changed = PartitionImage((1, 2), (1,), 1, 0, 1, (DIR, DIR))
    assert after.topics_by_name["a"].partitions == {0: PARTITION, 1: changed}
    assert changes == ImageChanges(changed=(TopicChange(before, after.topics_by_name["a"]),))
    assert changes.changed[0].partitions() == {1: (PARTITION, changed)}
    assert after.topics_by_name["b"] is image.topics_by_name["b"]
    assert after.configs is image.configs
    assert after.brokers is image.brokers
    assert before.partitions == {0: PARTITION, 1: PARTITION}


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"leader": 2}, PartitionImage((1, 2), (1, 2), 2, 1, 1, (DIR, DIR))),
        ({"leader": 1}, PartitionImage((1, 2), (1, 2), 1, 1, 1, (DIR, DIR))),
        ({"leader": -1, "isr": []}, PartitionImage((1, 2), (), -1, 1, 1, (DIR, DIR))),
        (
            {"leader_recovery_state": 1},
            PartitionImage((1, 2), (1, 2), 1, 0, 1, (DIR, DIR), leader_recovery=LeaderRecovery.RECOVERING),
        ),
        ({"directories": [id_of(7), DIR]}, PartitionImage((1, 2), (1, 2), 1, 0, 1, (id_of(7), DIR))),
        (
            {"replicas": [1, 2, 3], "adding_replicas": [3], "directories": [DIR, DIR, DIR]},
            PartitionImage((1, 2, 3), (1, 2), 1, 0, 1, (DIR, DIR, DIR), adding_replicas=(3,)),
        ),
        ({"removing_replicas": [2]}, PartitionImage((1, 2), (1, 2), 1, 0, 1, (DIR, DIR), removing_replicas=(2,))),
        (
            {"eligible_leader_replicas": [2], "last_known_elr": [1]},
            PartitionImage((1, 2), (1, 2), 1, 0, 1, (DIR, DIR), elr=(2,), last_known_elr=(1,)),
        ),
    ],
)
def test_partition_changes(image: ClusterImage, record: dict[str, Any], expected: PartitionImage) -> None:
    """The partition epoch increases with every change, the leader epoch whenever a leader is set, even the same one."""
    after = replayed(image, PartitionChangeRecord(partition_id=0, topic_id=id_of(2), **record))
    assert after.topics_by_name["b"].partitions == {0: expected}


def test_partitions_are_sorted(image: ClusterImage) -> None:
    """A snapshot may list them in any order."""
    after, changes = step(image, partition_record(1, 3), partition_record(1, 2))
    assert list(after.topics_by_name["a"].partitions) == [0, 1, 2, 3]
    assert changes.changed[0].partitions() == {2: (None, PARTITION), 3: (None, PARTITION)}


def test_removed_topic_loses_its_configs(image: ClusterImage) -> None:
    after, changes = step(image, RemoveTopicRecord(id_of(1)))
    assert (list(after.topics_by_name), list(after.topics_by_id), after.configs) == (["b"], [id_of(2)], {})
    assert changes == ImageChanges(
        deleted=(image.topics_by_name["a"],), configs=(ConfigResource(ResourceType.TOPIC, "a"),)
    )


def test_name_can_be_reused_within_one_delta(image: ClusterImage) -> None:
    """Deleted and recreated within one delta: a new id, without the old configs."""
    after, changes = step(image, RemoveTopicRecord(id_of(1)), TopicRecord("a", id_of(9)), partition_record(9, 0))
    new = TopicImage("a", id_of(9), {0: PARTITION})
    assert after.topics_by_name["a"] == new
    assert after.configs == {}
    assert (changes.deleted, changes.created, changes.changed) == ((image.topics_by_name["a"],), (new,), ())


def test_topic_created_and_removed_within_one_delta(image: ClusterImage) -> None:
    after, changes = step(
        image,
        TopicRecord("c", id_of(3)),
        ConfigRecord(ResourceType.TOPIC, "c", "retention.ms", "1"),
        partition_record(3, 0),
        RemoveTopicRecord(id_of(3)),
    )
    assert (after.topics_by_id, after.topics_by_name, after.configs) == (
        image.topics_by_id,
        image.topics_by_name,
        image.configs,
    )
    assert changes == ImageChanges()


def test_configs_are_set_and_deleted(image: ClusterImage) -> None:
    """A resource without values is removed."""
    broker = ConfigResource(ResourceType.BROKER, "1")
    after, changes = step(
        image,
        ConfigRecord(ResourceType.BROKER, "1", "num.io.threads", "4"),
        ConfigRecord(ResourceType.TOPIC, "a", "retention.ms", None),
        ConfigRecord(ResourceType.TOPIC, "b", "retention.ms", None),
    )
    assert after.configs == {broker: {"num.io.threads": "4"}}
    assert after.broker_configs(1) == {"num.io.threads": "4"}
    assert after.topic_configs("a") == after.cluster_configs() == {}
    assert changes == ImageChanges(configs=(broker, ConfigResource(ResourceType.TOPIC, "a")))


def test_broker_lifecycle() -> None:
    registered = RegisterBrokerRecord(
        broker_id=1,
        incarnation_id=id_of(5),
        broker_epoch=0,
        end_points=[BrokerEndpoint("PLAINTEXT", "here", 9092, 0)],
        features=[BrokerFeature("metadata.version", 7, 30)],
        rack="r",
        log_dirs=[DIR],
    )
    fenced = BrokerRegistration(
        1,
        0,
        id_of(5),
        {"PLAINTEXT": Endpoint("PLAINTEXT", "here", 9092, 0)},
        {"metadata.version": VersionRange(7, 30)},
        "r",
        True,
        log_dirs=(DIR,),
    )
    image, changes = step(ClusterImage(CLUSTER), registered)
    assert image.brokers == {1: fenced}
    assert changes == ImageChanges(brokers=(1,))
    image = replayed(
        image,
        BrokerRegistrationChangeRecord(1, 0, fenced=-1),
        BrokerRegistrationChangeRecord(1, 0, cordoned_log_dirs=[]),
    )
    assert (image.brokers[1].fenced, image.brokers[1].cordoned_log_dirs, image.brokers[1].active) == (False, (), True)
    image = replayed(image, BrokerRegistrationChangeRecord(1, 0, in_controlled_shutdown=1))
    assert (image.brokers[1].in_controlled_shutdown, image.brokers[1].fenced, image.brokers[1].active) == (
        True,
        False,
        False,
    )
    image = replayed(image, BrokerRegistrationChangeRecord(1, 0, log_dirs=[id_of(7)]), FenceBrokerRecord(1, 0))
    assert (image.brokers[1].log_dirs, image.brokers[1].fenced) == ((id_of(7),), True)
    image = replayed(image, UnfenceBrokerRecord(1, 0))
    assert not image.brokers[1].fenced
    image, changes = step(image, UnregisterBrokerRecord(1, 0))
    assert image.brokers == {}
    assert changes == ImageChanges(brokers=(1,))


def test_controllers_features_and_producer_ids() -> None:
    image, changes = step(
        ClusterImage(CLUSTER),
        FeatureLevelRecord("metadata.version", 30),
        FeatureLevelRecord("eligible.leader.replicas.version", 1),
        RegisterControllerRecord(
            1,
            id_of(5),
            False,
            [ControllerEndpoint("CONTROLLER", "here", 9093, 0)],
            [ControllerFeature("metadata.version", 7, 30)],
        ),
        ProducerIdsRecord(1, 0, 1000),
        NoOpRecord(),
    )
    assert image.features == {"metadata.version": 30, "eligible.leader.replicas.version": 1}
    assert (image.metadata_version, image.elr_enabled, image.next_producer_id, image.last_offset) == (30, True, 1000, 4)
    assert image.controllers == {
        1: ControllerRegistration(
            1,
            id_of(5),
            {"CONTROLLER": Endpoint("CONTROLLER", "here", 9093, 0)},
            {"metadata.version": VersionRange(7, 30)},
        )
    }
    assert changes == ImageChanges(features=True)
    assert replayed(image, FeatureLevelRecord("eligible.leader.replicas.version", 0)).features == {
        "metadata.version": 30
    }


def test_clear_elr(image: ClusterImage) -> None:
    """For one topic or all; partitions without ELR are unchanged."""
    image = replayed(
        image,
        PartitionChangeRecord(partition_id=0, topic_id=id_of(1), eligible_leader_replicas=[2]),
        PartitionChangeRecord(partition_id=0, topic_id=id_of(2), last_known_elr=[1]),
    )
    one = replayed(image, ClearElrRecord("a"))
    assert one.topics_by_name["a"].partitions == {0: PartitionImage((1, 2), (1, 2), 1, 0, 2, (DIR, DIR)), 1: PARTITION}
    assert one.topics_by_name["b"] is image.topics_by_name["b"]
    every = replayed(image, ClearElrRecord(""))
    assert [topic.partitions[0].partition_epoch for topic in every.topics_by_id.values()] == [2, 2]
    assert replayed(every, ClearElrRecord("")).topics_by_name["a"] is every.topics_by_name["a"]


def test_clear_elr_of_topic_without_partitions(image):
    """Kafka writes ClearElr before the partitions of a topic created with min.insync.replicas."""
    made = replayed(image, TopicRecord("new", Uuid(b"n" * 16)), ClearElrRecord("new"), ClearElrRecord(""))
    assert dict(made.topics_by_name["new"].partitions) == {}


def test_transaction_takes_effect_at_its_end(image: ClusterImage) -> None:
    """Also if its records span several deltas: an open transaction is stored in the image."""
    opened = replayed(image, BeginTransactionRecord("t"), TopicRecord("c", id_of(3)), partition_record(3, 0))
    assert opened.topics_by_id is image.topics_by_id
    assert opened.open_transaction == ((7, TopicRecord("c", id_of(3))), (8, partition_record(3, 0)))
    ended, changes = step(opened, EndTransactionRecord())
    assert ended.topics_by_name["c"].partitions == {0: PARTITION}
    assert (ended.open_transaction, ended.last_offset) == (None, 9)
    assert changes.created == (ended.topics_by_name["c"],)
    aborted = replayed(opened, AbortTransactionRecord("no"))
    assert (aborted.topics_by_id, aborted.open_transaction) == (image.topics_by_id, None)


def test_unserved_records_pass_through() -> None:
    """ACLs, quotas, credentials and tokens are stored and can be removed; unknown records are stored by offset."""
    acl = AccessControlEntryRecord(id_of(1), 2, "t", 3, "User:a", "*", 3, 3)
    quota = ClientQuotaRecord([EntityData("user", None)], "producer_byte_rate", 5.0, False)
    scram = UserScramCredentialRecord("u", 1, b"s", b"k", b"v", 4096)
    token = DelegationTokenRecord("User:a", "User:a", [], 1, 2, 3, "t1")
    unknown = UnknownRecord(99, 0, b"?")
    image = replayed(ClusterImage(CLUSTER), acl, quota, scram, token, unknown)
    assert image.passthrough == {
        "AccessControlEntryRecord": {id_of(1): acl},
        "ClientQuotaRecord": {((("user", None),), "producer_byte_rate"): quota},
        "UserScramCredentialRecord": {("u", 1): scram},
        "DelegationTokenRecord": {"t1": token},
        "UnknownRecord": {4: unknown},
    }
    assert image.passthrough_counts() == {
        "AccessControlEntryRecord": 1,
        "ClientQuotaRecord": 1,
        "DelegationTokenRecord": 1,
        "UnknownRecord": 1,
        "UserScramCredentialRecord": 1,
    }
    removed = replayed(
        image,
        RemoveAccessControlEntryRecord(id_of(1)),
        ClientQuotaRecord([EntityData("user", None)], "producer_byte_rate", 0.0, True),
        RemoveUserScramCredentialRecord("u", 1),
        RemoveDelegationTokenRecord("t1"),
    )
    assert removed.passthrough == {"UnknownRecord": {4: unknown}}


@pytest.mark.parametrize(
    "records",
    [
        [TopicRecord("a", id_of(1))],
        [partition_record(7, 0)],
        [PartitionChangeRecord(partition_id=9, topic_id=id_of(1), isr=[1])],
        [RemoveTopicRecord(id_of(7))],
        [RemoveTopicRecord(id_of(1)), partition_record(1, 5)],
        [BrokerRegistrationChangeRecord(1, 0, fenced=1)],
        [EndTransactionRecord()],
        [BeginTransactionRecord(), BeginTransactionRecord()],
        [ClearElrRecord("nope")],
    ],
)
def test_contradicting_records_raise(image: ClusterImage, records: list[Any]) -> None:
    with pytest.raises(ReplayError):
        replayed(image, *records)


def test_records_without_directories() -> None:
    image = replayed(ClusterImage(CLUSTER), TopicRecord("a", id_of(1)), partition_record(1, 0, directories=[]))
    assert image.topics_by_name["a"].partitions[0].directories == (ZERO_UUID, ZERO_UUID)


def test_single_change_among_many_topics_is_cheap() -> None:
    """A thousand topics with ten partitions: a change takes well under a millisecond, since nothing else is copied."""
    records: list[Any] = []
    for number in range(1, 1001):
        records.append(TopicRecord(f"t{number}", id_of(number)))
        records += [partition_record(number, index) for index in range(10)]
    image = replayed(ClusterImage(CLUSTER), *records)
    fastest = min(
        timed(lambda: replayed(image, PartitionChangeRecord(partition_id=0, topic_id=id_of(1), isr=[1])))
        for _ in range(20)
    )
    assert fastest < 0.001


def timed(work: Any) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
