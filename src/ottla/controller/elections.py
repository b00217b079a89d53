"""Leader, ISR and ELR changes when a broker joins, leaves, or returns after an unclean shutdown."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ottla.base.ids import Uuid
from ottla.metadata.directories import may_be_online
from ottla.metadata.image import NO_LEADER, ClusterImage, LeaderRecovery, PartitionImage, TopicImage
from ottla.wire.records.metadata import PartitionChangeRecord


class ElectionRules(NamedTuple):
    """Election-related configs of a topic."""

    min_insync_replicas: int
    unclean_allowed: bool


RulesOf = Callable[[str], ElectionRules]


class BrokerStateChange(NamedTuple):
    """A broker that leaves, becomes ready, or returns after an unclean shutdown. One field is set."""

    leaves: int | None = None
    joins: int | None = None
    unclean: int | None = None

    def may_lead(self, image: ClusterImage, partition: PartitionImage, broker_id: int) -> bool:
        registration = image.brokers.get(broker_id)
        if registration is None or broker_id == self.leaves or broker_id == self.unclean:
            return False
        if broker_id != self.joins and not registration.active:
            return False
        directory = _directory_of(partition, broker_id)
        return directory is not None and may_be_online(directory, registration.log_dirs)


def changes_for_isr_member(
    image: ClusterImage, broker_id: int, change: BrokerStateChange, rules_of: RulesOf
) -> list[PartitionChangeRecord]:
    """Return changes for partitions with the broker in the ISR."""
    return _changes(image, change, rules_of, lambda partition: broker_id in partition.isr)


def changes_for_elr_member(
    image: ClusterImage, broker_id: int, change: BrokerStateChange, rules_of: RulesOf
) -> list[PartitionChangeRecord]:
    """Return changes for partitions with the broker in the ELR but not in the ISR."""
    return _changes(
        image, change, rules_of, lambda partition: broker_id in partition.elr and broker_id not in partition.isr
    )


def changes_for_offline_dirs(
    image: ClusterImage, broker_id: int, log_dirs: tuple[Uuid, ...], change: BrokerStateChange, rules_of: RulesOf
) -> list[PartitionChangeRecord]:
    """Return changes for partitions whose replica on the broker is in none of these directories.

    Only partitions that the broker leads or is in sync with are affected.
    """

    def is_affected(partition: PartitionImage) -> bool:
        directory = _directory_of(partition, broker_id)
        if directory is None or may_be_online(directory, log_dirs):
            return False
        return broker_id in partition.isr or broker_id == partition.leader

    return _changes(image, change, rules_of, is_affected)


def changes_for_leaderless(
    image: ClusterImage, change: BrokerStateChange, rules_of: RulesOf
) -> list[PartitionChangeRecord]:
    return _changes(image, change, rules_of, lambda partition: partition.leader == NO_LEADER)


def _changes(
    image: ClusterImage, change: BrokerStateChange, rules_of: RulesOf, is_affected: Callable[[PartitionImage], bool]
) -> list[PartitionChangeRecord]:
    records = []
    for topic, index, partition in _partitions(image):
        if is_affected(partition):
            record = partition_change(image, topic, index, change, rules_of(topic.name))
            if record is not None:
                records.append(record)
    return records


def partition_change(
    image: ClusterImage, topic: TopicImage, index: int, change: BrokerStateChange, rules: ElectionRules
) -> PartitionChangeRecord | None:
    """Return the record that applies the broker's change to a partition, or None if the partition stays as it is."""
    partition = topic.partitions[index]
    untouched = PartitionChangeRecord(partition_id=index, topic_id=topic.topic_id)
    record = PartitionChangeRecord(partition_id=index, topic_id=topic.topic_id)
    isr = tuple(broker_id for broker_id in partition.isr if broker_id not in (change.leaves, change.unclean))
    elr = _eligible_leader_replicas(image, partition, isr, change, rules)
    leader, unclean = _elect(image, partition, isr, elr, change, rules)
    if leader != partition.leader:
        record.leader = leader
        if leader in elr:
            isr, elr = (leader,), tuple(broker_id for broker_id in elr if broker_id != leader)
        if unclean:
            # No replica is known to have all committed records: the new leader's log counts, and only it is in sync.
            isr, elr = (leader,), ()
            record.isr = [leader]
            if partition.leader_recovery != LeaderRecovery.RECOVERING:
                record.leader_recovery_state = LeaderRecovery.RECOVERING
    if elr != partition.elr:
        record.eligible_leader_replicas = list(elr)
    # Without eligible leader replicas the last member stays in the ISR: no other replica may become leader.
    if isr != partition.isr and (isr or image.elr_enabled):
        record.isr = list(isr)
    _update_last_known_leader(image, partition, record)
    return None if record == untouched else record


def _eligible_leader_replicas(
    image: ClusterImage,
    partition: PartitionImage,
    isr: tuple[int, ...],
    change: BrokerStateChange,
    rules: ElectionRules,
) -> tuple[int, ...]:
    """Return the ELR: replicas outside the ISR with all committed records.

    They left the ISR when it was smaller than min.insync.replicas, so nothing could be committed without them.
    """
    if not image.elr_enabled or len(isr) >= min(rules.min_insync_replicas, len(partition.replicas)):
        return ()
    return tuple(sorted((set(partition.elr) | set(partition.isr)) - set(isr) - {change.unclean}))


def _elect(
    image: ClusterImage,
    partition: PartitionImage,
    isr: tuple[int, ...],
    elr: tuple[int, ...],
    change: BrokerStateChange,
    rules: ElectionRules,
) -> tuple[int, bool]:
    """Return the leader, and whether the election was unclean. The current leader is preferred."""
    candidates = isr or elr
    for broker_id in (partition.leader, *partition.replicas):
        if broker_id in candidates and change.may_lead(image, partition, broker_id):
            return broker_id, False
    if image.elr_enabled and not candidates and len(partition.last_known_elr) == 1:
        last_leader = partition.last_known_elr[0]
        if change.may_lead(image, partition, last_leader):
            return last_leader, True
    if rules.unclean_allowed:
        for broker_id in partition.replicas:
            if change.may_lead(image, partition, broker_id):
                return broker_id, True
    return NO_LEADER, False


def _update_last_known_leader(image: ClusterImage, partition: PartitionImage, record: PartitionChangeRecord) -> None:
    """Remember the last leader when the ISR becomes empty, and clear it when there is a leader again."""
    if not image.elr_enabled:
        return
    if record.isr == [] and partition.last_known_elr != (partition.leader,):
        record.last_known_elr = [partition.leader]
    elif partition.last_known_elr and (
        record.leader >= 0 or (partition.leader != NO_LEADER and record.leader != NO_LEADER)
    ):
        record.last_known_elr = []


def _partitions(image: ClusterImage) -> Iterator[tuple[TopicImage, int, PartitionImage]]:
    for topic in image.topics_by_id.values():
        for index, partition in topic.partitions.items():
            yield topic, index, partition


def _directory_of(partition: PartitionImage, broker_id: int) -> Uuid | None:
    if broker_id not in partition.replicas:
        return None
    return partition.directories[partition.replicas.index(broker_id)]
