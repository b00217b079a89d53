"""Replaying a snapshot's records restores the image."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ottla.base.ids import Uuid
from ottla.metadata.delta import ClusterDelta
from ottla.metadata.features import bootstrap_features, supported_features, unsupported_features
from ottla.metadata.image import ClusterImage
from ottla.metadata.record_versions import record_version
from ottla.metadata.snapshot_records import image_records
from ottla.wire.records.framing import RECORD_CLASSES, UnknownRecord, decode_metadata_record, encode_metadata_record
from ottla.wire.records.metadata import (
    AccessControlEntryRecord,
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    TopicRecord,
)

CLUSTER = "AAAAAAAAAAAAAAAAAAAAAg"


def id_of(number: int) -> Uuid:
    return Uuid(number.to_bytes(16, "big"))


def replayed(records: Any) -> ClusterImage:
    delta = ClusterDelta(ClusterImage(CLUSTER))
    for record in records:
        delta.replay(7, record)
    return delta.apply()


def full_image() -> ClusterImage:
    return replayed(
        [
            FeatureLevelRecord("eligible.leader.replicas.version", 1),
            FeatureLevelRecord("metadata.version", 30),
            RegisterBrokerRecord(
                broker_id=1,
                incarnation_id=id_of(5),
                broker_epoch=3,
                end_points=[BrokerEndpoint("PLAINTEXT", "here", 9092, 0)],
                features=[BrokerFeature("metadata.version", 7, 30)],
                rack=None,
                log_dirs=[id_of(6)],
            ),
            BrokerRegistrationChangeRecord(1, 3, fenced=-1, in_controlled_shutdown=1, cordoned_log_dirs=[id_of(6)]),
            RegisterControllerRecord(1, id_of(5)),
            TopicRecord("a", id_of(1)),
            PartitionRecord(
                partition_id=0,
                topic_id=id_of(1),
                replicas=[1, 2],
                isr=[1],
                leader=1,
                leader_epoch=4,
                partition_epoch=9,
                directories=[id_of(6), id_of(8)],
            ),
            PartitionChangeRecord(
                partition_id=0,
                topic_id=id_of(1),
                leader_recovery_state=1,
                eligible_leader_replicas=[2],
                last_known_elr=[1],
                adding_replicas=[2],
                removing_replicas=[1],
            ),
            TopicRecord("without partitions", id_of(2)),
            ConfigRecord(2, "a", "retention.ms", "5"),
            ConfigRecord(4, "", "min.insync.replicas", "1"),
            ProducerIdsRecord(1, 3, 2000),
            AccessControlEntryRecord(id_of(9), 2, "t", 3, "User:a", "*", 3, 3),
            UnknownRecord(99, 3, b"later"),
        ]
    )


def test_snapshot_restores_image() -> None:
    """Also through encoding, in the record versions of the cluster's metadata version."""
    image = full_image()
    records = list(image_records(image))
    assert records[0] == FeatureLevelRecord("metadata.version", 30)
    assert replayed(records) == image
    stored = [encode_metadata_record(record, record_version(record, image.metadata_version)) for record in records]
    assert replayed(decode_metadata_record(value) for value in stored) == image


def test_empty_image_has_no_records() -> None:
    assert list(image_records(ClusterImage(CLUSTER))) == []


@given(st.dictionaries(st.integers(1, 50), st.integers(1, 5), max_size=20), st.integers(0, 2**40))
def test_snapshot_restores_any_topics(topics: dict[int, int], next_producer_id: int) -> None:
    records: list[Any] = [ProducerIdsRecord(1, 1, next_producer_id)]
    for number, partitions in topics.items():
        records.append(TopicRecord(f"t{number}", id_of(number)))
        records += [
            PartitionRecord(
                partition_id=index,
                topic_id=id_of(number),
                replicas=[index],
                isr=[index],
                leader=index,
                directories=[id_of(1)],
            )
            for index in range(partitions)
        ]
    image = replayed(records)
    if not topics and not next_producer_id:
        assert list(image_records(image)) == []
    else:
        assert replayed(image_records(image)) == image


def test_record_versions_follow_metadata_version() -> None:
    """The same versions as in Kafka; every record can be written at every supported level."""
    partition, change, broker = PartitionRecord(), PartitionChangeRecord(), RegisterBrokerRecord()
    assert [record_version(partition, level) for level in (7, 16, 17, 22, 23, 30)] == [0, 0, 1, 1, 2, 2]
    assert [record_version(change, level) for level in (7, 16, 17, 22, 23, 30)] == [0, 0, 1, 1, 2, 2]
    assert [record_version(broker, level) for level in (7, 8, 16, 17, 29, 30)] == [1, 2, 2, 3, 3, 4]
    changes = [
        BrokerRegistrationChangeRecord(1, 1, fenced=1),
        BrokerRegistrationChangeRecord(1, 1, in_controlled_shutdown=1),
        BrokerRegistrationChangeRecord(1, 1, log_dirs=[id_of(1)]),
        BrokerRegistrationChangeRecord(1, 1, cordoned_log_dirs=[]),
    ]
    assert [record_version(record, 30) for record in changes] == [0, 1, 2, 3]
    for cls in RECORD_CLASSES.values():
        for level in range(7, 31):
            assert cls.MIN_VERSION <= record_version(cls(), level) <= cls.MAX_VERSION


def test_unimplemented_features_are_not_supported() -> None:
    """A new cluster's feature levels are supported by this version."""
    assert unsupported_features(bootstrap_features()) == {}
    assert unsupported_features({"metadata.version": 31, "transaction.version": 2}) == {
        "metadata.version": 31,
        "transaction.version": 2,
    }
    assert "transaction.version" not in supported_features()
