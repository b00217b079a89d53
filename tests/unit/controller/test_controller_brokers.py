"""Broker registration, fencing and shutdown. The records match those of a single Apache Kafka 4.3 node."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.base.decision import Decision
from ottla.base.errors import ErrorCode
from ottla.base.ids import Uuid
from ottla.controller.bootstrap import bootstrap_records
from ottla.controller.controller import Controller
from ottla.controller.requests import (
    AllocateProducerIds,
    AssignReplicasToDirs,
    BrokerRegistered,
    FenceBroker,
    ProducerIdBlock,
    RegisterBroker,
    RegisterController,
    RequestRejected,
    StartControlledShutdown,
    UnfenceBroker,
    UpdateOnlineDirs,
)
from ottla.controller.settings import ControllerSettings
from ottla.metadata.image import ClusterImage, Endpoint, ResourceType, VersionRange
from ottla.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.wire.records.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    ControllerEndpoint,
    ControllerFeature,
    EndTransactionRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)

CLUSTER = "AAAAAAAAAAAAAAAAAAAAAg"
INCARNATION = Uuid(b"i" * 16)
DIRECTORY = Uuid(b"d" * 16)


def change(index: int, topic: Uuid, **fields: Any) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=index, topic_id=topic, **fields)


def registration(**changes: Any) -> RegisterBroker:
    values: dict[str, Any] = {
        "broker_id": 1,
        "cluster_id": CLUSTER,
        "incarnation_id": INCARNATION,
        "endpoints": (Endpoint("PLAINTEXT", "here", 9092, 0),),
        "log_dirs": (DIRECTORY,),
        "features": {"metadata.version": VersionRange(7, 30)},
    }
    return RegisterBroker(**(values | changes))


def test_activation_of_empty_log_writes_bootstrap_records() -> None:
    """In one transaction, with the cluster's min.insync.replicas that eligible leader replicas require."""
    controller = Controller(ClusterImage(CLUSTER), ControllerSettings(1, {"min.insync.replicas": "2"}), rng=None)
    assert controller.activate(1, bootstrap_records()) == Decision(
        (
            BeginTransactionRecord("Bootstrap records"),
            FeatureLevelRecord("metadata.version", 30),
            FeatureLevelRecord("eligible.leader.replicas.version", 1),
            ConfigRecord(ResourceType.BROKER, "", "min.insync.replicas", "2"),
            EndTransactionRecord(),
        )
    )


def test_activation_aborts_and_repeats_unfinished_bootstrap(new_controller: Any) -> None:
    """A crash while writing the bootstrap records leaves a transaction open."""
    controller = Controller(ClusterImage(CLUSTER), ControllerSettings(1), rng=None)
    first = controller.activate(1, bootstrap_records())
    for number, record in enumerate(first.records[:3]):
        controller.replay(1 + number, record)
    again = controller.activate(5, bootstrap_records())
    assert again.records == (AbortTransactionRecord("Controller failover"), *first.records)
    for number, record in enumerate(again.records):
        controller.replay(5 + number, record)
    assert controller.image.features == {"metadata.version": 30, "eligible.leader.replicas.version": 1}
    assert controller.activate(11, bootstrap_records()) == Decision()


def test_register_broker(new_controller: Any) -> None:
    """The epoch is the offset of the registration record; the broker starts fenced."""
    cluster = new_controller()
    assert cluster.next_offset == 6
    decision = cluster.do(registration(rack="r"))
    assert decision == Decision(
        (
            RegisterBrokerRecord(
                broker_id=1,
                incarnation_id=INCARNATION,
                broker_epoch=6,
                end_points=[BrokerEndpoint("PLAINTEXT", "here", 9092, 0)],
                features=[BrokerFeature("metadata.version", 7, 30)],
                rack="r",
                fenced=True,
                log_dirs=[DIRECTORY],
            ),
        ),
        BrokerRegistered(6),
    )
    assert cluster.do(UnfenceBroker(1, 6)).records == (
        BrokerRegistrationChangeRecord(1, 6, fenced=-1),
        BrokerRegistrationChangeRecord(1, 6, cordoned_log_dirs=[]),
    )
    assert cluster.do(UnfenceBroker(1, 6)) == Decision()


def test_same_incarnation_keeps_its_epoch(cluster: Any) -> None:
    before = cluster.image.brokers[1]
    decision = cluster.do(registration(incarnation_id=before.incarnation_id))
    (record,) = decision.records
    assert (decision.response, record.broker_epoch, record.fenced) == (
        BrokerRegistered(before.epoch),
        before.epoch,
        False,
    )


def test_broker_without_finalized_features_is_registered(cluster: Any) -> None:
    cluster.controller.replay(cluster.next_offset, FeatureLevelRecord("transaction.version", 2))
    cluster.next_offset += 1
    assert cluster.do(registration()).response == BrokerRegistered(cluster.next_offset - 1)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"log_dirs": ()}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": (Uuid(bytes(16)),)}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": (DIRECTORY, DIRECTORY)}, ErrorCode.INVALID_REGISTRATION),
        ({"broker_id": 2, "log_dirs": None}, ErrorCode.INVALID_REGISTRATION),
    ],
)
def test_invalid_registration_is_rejected(
    cluster: Any, dir_id: Callable[[int], Uuid], changes: dict[str, Any], code: ErrorCode
) -> None:
    """The last case has broker 1's directory."""
    if changes.get("log_dirs", ()) is None:
        changes = changes | {"log_dirs": (dir_id(1),)}
    decision = cluster.decide(registration(**changes))
    assert decision.records == ()
    assert isinstance(decision.response, RequestRejected)
    assert decision.response.code == code


def test_register_controller(new_controller: Any) -> None:
    request = RegisterController(
        1, INCARNATION, (Endpoint("CONTROLLER", "here", 9093, 0),), {"metadata.version": VersionRange(7, 30)}
    )
    assert new_controller().decide(request) == Decision(
        (
            RegisterControllerRecord(
                1,
                INCARNATION,
                False,
                [ControllerEndpoint("CONTROLLER", "here", 9093, 0)],
                [ControllerFeature("metadata.version", 7, 30)],
            ),
        )
    )


def test_clean_restart_elects_broker_again(cluster: Any, new_topic_id: Callable[[int], Uuid]) -> None:
    """The partition remembers its last leader; after a clean restart it leads again, two leader epochs later."""
    cluster.do(CreateTopicsRequest([CreatableTopic("a", 2, 1)]))
    topic = new_topic_id(1)
    epoch = cluster.image.brokers[1].epoch
    lost = {"isr": [], "leader": -1, "eligible_leader_replicas": [1], "last_known_elr": [1]}
    assert cluster.do(StartControlledShutdown(1, epoch)).records == (
        BrokerRegistrationChangeRecord(1, epoch, in_controlled_shutdown=1),
        change(0, topic, **lost),
        change(1, topic, **lost),
    )
    assert cluster.do(FenceBroker(1, epoch)).records == (BrokerRegistrationChangeRecord(1, epoch, fenced=1),)
    assert cluster.do(FenceBroker(1, epoch)) == Decision()
    directories = cluster.image.brokers[1].log_dirs
    decision = cluster.do(registration(previous_epoch=epoch, log_dirs=directories))
    assert [type(record) for record in decision.records] == [RegisterBrokerRecord]
    found = {"isr": [1], "leader": 1, "eligible_leader_replicas": [], "last_known_elr": []}
    assert cluster.do(UnfenceBroker(1, decision.response.epoch)).records == (
        BrokerRegistrationChangeRecord(1, decision.response.epoch, fenced=-1),
        change(0, topic, **found),
        change(1, topic, **found),
        BrokerRegistrationChangeRecord(1, decision.response.epoch, cordoned_log_dirs=[]),
    )
    partition = cluster.image.topics_by_name["a"].partitions[0]
    assert (partition.leader, partition.isr, partition.leader_epoch, partition.partition_epoch) == (1, (1,), 2, 2)


def test_unclean_restart_elects_last_known_leader(cluster: Any, new_topic_id: Callable[[int], Uuid]) -> None:
    """It may have lost writes: it is not in the ELR and is elected uncleanly as the last known leader, in recovery."""
    cluster.do(CreateTopicsRequest([CreatableTopic("a", 1, 1)]))
    topic = new_topic_id(1)
    directories = cluster.image.brokers[1].log_dirs
    for recovery in ({"leader_recovery_state": 1}, {}):
        decision = cluster.do(
            registration(incarnation_id=Uuid(bytes([cluster.next_offset]) * 16), log_dirs=directories)
        )
        assert decision.records[0] == change(0, topic, isr=[], leader=-1, last_known_elr=[1])
        assert isinstance(decision.records[1], RegisterBrokerRecord)
        assert decision.records[1].broker_epoch == decision.response.epoch == cluster.next_offset - 2
        assert cluster.do(UnfenceBroker(1, decision.response.epoch)).records[1] == change(
            0, topic, isr=[1], leader=1, last_known_elr=[], **recovery
        )


def test_unclean_restart_after_fencing(cluster: Any, new_topic_id: Callable[[int], Uuid]) -> None:
    """As in Kafka: the session expires first, then the new incarnation reports an unclean shutdown."""
    cluster.do(CreateTopicsRequest([CreatableTopic("a", 1, 1)]))
    topic = new_topic_id(1)
    epoch, directories = cluster.image.brokers[1].epoch, cluster.image.brokers[1].log_dirs
    assert cluster.do(FenceBroker(1, epoch)).records == (
        change(0, topic, isr=[], leader=-1, eligible_leader_replicas=[1], last_known_elr=[1]),
        BrokerRegistrationChangeRecord(1, epoch, fenced=1),
    )
    decision = cluster.do(registration(log_dirs=directories))
    assert decision.records[0] == change(0, topic, eligible_leader_replicas=[])
    assert decision.response == BrokerRegistered(cluster.next_offset - 2)


def test_next_in_sync_replica_becomes_leader(new_controller: Any, new_topic_id: Callable[[int], Uuid]) -> None:
    cluster = new_controller()
    for broker_id in (1, 2, 3):
        cluster.add_broker(broker_id)
    cluster.do(
        CreateTopicsRequest([CreatableTopic("a", -1, -1, assignments=[CreatableReplicaAssignment(0, [1, 2, 3])])])
    )
    topic = new_topic_id(1)
    assert cluster.do(FenceBroker(1, cluster.image.brokers[1].epoch)).records[0] == change(
        0, topic, isr=[2, 3], leader=2
    )
    assert cluster.do(FenceBroker(3, cluster.image.brokers[3].epoch)).records[0] == change(0, topic, isr=[2])


def test_replica_that_leaves_small_isr_stays_eligible(new_controller: Any, new_topic_id: Callable[[int], Uuid]) -> None:
    """With min.insync.replicas=2, the second last replica to leave still has every committed record."""
    cluster = new_controller()
    for broker_id in (1, 2):
        cluster.add_broker(broker_id)
    configs = [CreatableTopicConfig("min.insync.replicas", "2")]
    cluster.do(
        CreateTopicsRequest(
            [CreatableTopic("a", -1, -1, assignments=[CreatableReplicaAssignment(0, [1, 2])], configs=configs)]
        )
    )
    topic = new_topic_id(1)
    assert cluster.do(FenceBroker(1, cluster.image.brokers[1].epoch)).records[0] == change(
        0, topic, isr=[2], leader=2, eligible_leader_replicas=[1]
    )
    assert cluster.do(FenceBroker(2, cluster.image.brokers[2].epoch)).records[0] == change(
        0, topic, isr=[], leader=-1, eligible_leader_replicas=[1, 2], last_known_elr=[2]
    )
    # Broker 1 left first, but nothing could be committed without it: it may lead without losing records.
    assert cluster.do(UnfenceBroker(1, cluster.image.brokers[1].epoch)).records[1] == change(
        0, topic, isr=[1], leader=1, eligible_leader_replicas=[2], last_known_elr=[]
    )


def test_unclean_election_depends_on_topic_config(new_controller: Any, new_topic_id: Callable[[int], Uuid]) -> None:
    """Broker 2 is out of sync; only a topic with unclean.leader.election.enable elects it."""
    cluster = new_controller()
    for broker_id in (1, 2):
        cluster.add_broker(broker_id)
    for name, unclean in (("strict", "false"), ("lenient", "true")):
        configs = [CreatableTopicConfig("unclean.leader.election.enable", unclean)]
        cluster.do(
            CreateTopicsRequest(
                [CreatableTopic(name, -1, -1, assignments=[CreatableReplicaAssignment(0, [1, 2])], configs=configs)]
            )
        )
    strict, lenient = new_topic_id(1), new_topic_id(2)
    for topic in (strict, lenient):
        cluster.replay(Decision((change(0, topic, isr=[1]),)))
    assert cluster.do(FenceBroker(1, cluster.image.brokers[1].epoch)).records[:2] == (
        change(0, strict, isr=[], leader=-1, eligible_leader_replicas=[1], last_known_elr=[1]),
        change(0, lenient, isr=[2], leader=2, leader_recovery_state=1),
    )


def test_last_in_sync_replica_stays_without_elr(new_controller: Any, new_topic_id: Callable[[int], Uuid]) -> None:
    cluster = new_controller()
    cluster.add_broker(1)
    cluster.replay(Decision((FeatureLevelRecord("eligible.leader.replicas.version", 0),)))
    cluster.do(CreateTopicsRequest([CreatableTopic("a", 1, 1)]))
    topic = new_topic_id(1)
    assert cluster.do(FenceBroker(1, cluster.image.brokers[1].epoch)).records[0] == change(0, topic, leader=-1)
    directories = cluster.image.brokers[1].log_dirs
    decision = cluster.do(registration(log_dirs=directories))
    assert [type(record) for record in decision.records] == [RegisterBrokerRecord]
    assert cluster.do(UnfenceBroker(1, decision.response.epoch)).records[1] == change(0, topic, leader=1)


def test_replica_in_lost_directory_is_not_elected(cluster: Any) -> None:
    """The disk was replaced: the empty log must not become the leader's."""
    cluster.do(CreateTopicsRequest([CreatableTopic("a", 1, 1)]))
    epoch = cluster.image.brokers[1].epoch
    cluster.do(StartControlledShutdown(1, epoch))
    decision = cluster.do(registration(previous_epoch=epoch, log_dirs=(DIRECTORY,)))
    records = cluster.do(UnfenceBroker(1, decision.response.epoch)).records
    assert [type(record) for record in records] == [BrokerRegistrationChangeRecord, BrokerRegistrationChangeRecord]
    assert cluster.image.topics_by_name["a"].partitions[0].leader == -1


def test_assign_replicas_to_dirs(
    new_controller: Any, dir_id: Callable[[int], Uuid], new_topic_id: Callable[[int], Uuid]
) -> None:
    cluster = new_controller()
    epoch = cluster.add_broker(1, log_dirs=(dir_id(1), dir_id(2)))
    cluster.do(CreateTopicsRequest([CreatableTopic("a", 2, 1)]))
    topic = new_topic_id(1)
    requested = {(topic, 0): dir_id(2), (topic, 1): dir_id(1), (topic, 9): dir_id(1), (new_topic_id(7), 0): dir_id(1)}
    assert cluster.do(AssignReplicasToDirs(1, epoch, requested)).records == (
        change(0, topic, directories=[dir_id(2)]),
        change(1, topic, directories=[dir_id(1)]),
    )
    assert cluster.do(AssignReplicasToDirs(1, epoch, requested)) == Decision()


@pytest.mark.parametrize("request_type", [UnfenceBroker, FenceBroker, StartControlledShutdown, AllocateProducerIds])
def test_unknown_broker_or_stale_epoch_is_rejected(cluster: Any, request_type: Any) -> None:
    """A broker that is not registered, or an earlier registration."""
    unknown, stale = cluster.decide(request_type(9, 0)), cluster.decide(request_type(1, 5))
    assert (unknown.records, unknown.response.code) == ((), ErrorCode.BROKER_ID_NOT_REGISTERED)
    assert (stale.records, stale.response.code) == ((), ErrorCode.STALE_BROKER_EPOCH)


def test_producer_ids_are_allocated_in_blocks(cluster: Any) -> None:
    epoch = cluster.image.brokers[1].epoch
    assert cluster.do(AllocateProducerIds(1, epoch)) == Decision(
        (ProducerIdsRecord(1, epoch, 1000),), ProducerIdBlock(0, 1000)
    )
    assert cluster.do(AllocateProducerIds(1, epoch)) == Decision(
        (ProducerIdsRecord(1, epoch, 2000),), ProducerIdBlock(1000, 1000)
    )
    cluster.replay(Decision((ProducerIdsRecord(1, epoch, 2**63 - 1000),)))
    exhausted = cluster.decide(AllocateProducerIds(1, epoch))
    assert (exhausted.records, exhausted.response.code) == ((), ErrorCode.UNKNOWN_SERVER_ERROR)


def test_replicas_in_offline_directory_lose_leader(new_controller: Any, new_topic_id: Callable[[int], Uuid]) -> None:
    """Only partitions in the offline directory change; repeating the request changes nothing."""
    cluster = new_controller()
    cluster.add_broker(1)
    online, lost = Uuid(b"k" * 16), Uuid(b"l" * 16)
    epoch = cluster.image.brokers[1].epoch
    cluster.replay(Decision((BrokerRegistrationChangeRecord(1, epoch, log_dirs=[online, lost]),)))
    cluster.do(CreateTopicsRequest([CreatableTopic("a", 2, 1)]))
    topic = new_topic_id(1)
    cluster.do(AssignReplicasToDirs(1, epoch, {(topic, 0): online, (topic, 1): lost}))
    assert cluster.do(UpdateOnlineDirs(1, epoch, (online,))).records == (
        BrokerRegistrationChangeRecord(1, epoch, log_dirs=[online]),
        change(1, topic, isr=[], leader=-1, eligible_leader_replicas=[1], last_known_elr=[1]),
    )
    assert cluster.image.offline_replicas(cluster.image.topics_by_id[topic].partitions[1]) == [1]
    assert cluster.image.offline_replicas(cluster.image.topics_by_id[topic].partitions[0]) == []
    assert cluster.do(UpdateOnlineDirs(1, epoch, (online,))).records == ()
