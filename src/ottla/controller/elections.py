"""Who leads a partition, and who counts as in sync, when a broker comes, goes, or comes back without its last writes."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ottla.base.ids import Uuid
from ottla.metadata.directories import may_be_online
from ottla.metadata.image import NO_LEADER, ClusterImage, LeaderRecovery, PartitionImage, TopicImage
from ottla.wire.records.metadata import PartitionChangeRecord


class ElectionRules(NamedTuple):
    """What the configs of a topic say about its elections."""

    min_insync_replicas: int
    unclean_allowed: bool


RulesOf = Callable[[str], ElectionRules]


class BrokerStateChange(NamedTuple):
    """One broker whose standing changes: it leaves, becomes ready, or lost what was not yet on its disk."""

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
    """For the partitions that count the broker as in sync."""
    return _changes(image, change, rules_of, lambda partition: broker_id in partition.isr)


def changes_for_elr_member(
    image: ClusterImage, broker_id: int, change: BrokerStateChange, rules_of: RulesOf
) -> list[PartitionChangeRecord]:
    """For the partitions that could still elect the broker, though they do not count it as in sync."""
    return _changes(
        image, change, rules_of, lambda partition: broker_id in partition.elr and broker_id not in partition.isr
    )


def changes_for_offline_dirs(
    image: ClusterImage, broker_id: int, log_dirs: tuple[Uuid, ...], change: BrokerStateChange, rules_of: RulesOf
) -> list[PartitionChangeRecord]:
    """For the partitions that count the broker as in sync, or follow it, though they are in none of these directories."""

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
    """The record that brings the partition into line with the change; None where nothing changes."""
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
            # Nobody who surely has all committed records is left: the leader's log is now the truth, and it alone is in sync.
            isr, elr = (leader,), ()
            record.isr = [leader]
            if partition.leader_recovery != LeaderRecovery.RECOVERING:
                record.leader_recovery_state = LeaderRecovery.RECOVERING
    if elr != partition.elr:
        record.eligible_leader_replicas = list(elr)
    # Without eligible leader replicas the last in-sync replica stays listed, as it is the only one that may lead again.
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
    """Replicas out of sync that still have every committed record: they left when too few were in sync to commit anything."""
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
    """The leader, and whether the election was unclean. A leader that may stay stays."""
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
    """A partition that loses its last in-sync replica remembers who led it; one that has a leader forgets."""
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
