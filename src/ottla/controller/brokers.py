"""Requests from brokers: registration, fencing, controlled shutdown, directories, and producer ids."""

from typing import Any

from ottla.base.decision import Decision
from ottla.base.errors import ErrorCode
from ottla.controller.elections import (
    BrokerStateChange,
    RulesOf,
    changes_for_elr_member,
    changes_for_isr_member,
    changes_for_leaderless,
    changes_for_offline_dirs,
)
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
from ottla.metadata.directories import is_reserved_directory
from ottla.metadata.features import CORDONED_DIRECTORIES_MIN_VERSION
from ottla.metadata.image import ClusterImage
from ottla.wire.records.metadata import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ControllerEndpoint,
    ControllerFeature,
    PartitionChangeRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)

PRODUCER_ID_BLOCK_SIZE = 1000
PRODUCER_ID_MAX = 2**63 - 1
FENCE = 1
UNFENCE = -1


def check_broker_epoch(image: ClusterImage, broker_id: int, epoch: int) -> RequestRejected | None:
    """Return the error if the broker is not registered in this epoch."""
    registration = image.brokers.get(broker_id)
    if registration is None:
        return RequestRejected(ErrorCode.BROKER_ID_NOT_REGISTERED, f"broker {broker_id} is not registered")
    if registration.epoch != epoch:
        return RequestRejected(
            ErrorCode.STALE_BROKER_EPOCH, f"broker {broker_id} is registered in epoch {registration.epoch}, not {epoch}"
        )
    return None


def register_broker(image: ClusterImage, request: RegisterBroker, next_offset: int, rules_of: RulesOf) -> Decision:
    """Register a broker, fenced. A new incarnation gets a new epoch: the offset of its registration record.

    Finalized features that the broker does not support are not a reason to reject it.
    """
    rejection = _check_registration(image, request)
    if rejection is not None:
        return Decision(response=rejection)
    existing = image.brokers.get(request.broker_id)
    amended = existing is not None and existing.incarnation_id == request.incarnation_id
    records: list[Any] = []
    if existing is not None and not amended and existing.epoch != request.previous_epoch:
        records = _unclean_shutdown_changes(image, request.broker_id, rules_of)
    record = RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=next_offset,
        end_points=[
            BrokerEndpoint(point.listener, point.host, point.port, point.security_protocol)
            for point in request.endpoints
        ],
        features=[BrokerFeature(name, levels.min, levels.max) for name, levels in sorted(request.features.items())],
        rack=request.rack,
        fenced=True,
        log_dirs=list(request.log_dirs),
    )
    if existing is not None and amended:
        record.broker_epoch = existing.epoch
        record.fenced = existing.fenced
        record.in_controlled_shutdown = existing.in_controlled_shutdown
    return Decision((*records, record), BrokerRegistered(record.broker_epoch))


def _check_registration(image: ClusterImage, request: RegisterBroker) -> RequestRejected | None:
    if request.cluster_id != image.cluster_id:
        return RequestRejected(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"cluster id mismatch: the broker has {request.cluster_id}, this cluster is {image.cluster_id}",
        )
    if not request.log_dirs:
        return RequestRejected(ErrorCode.INVALID_REGISTRATION, "broker has no log directories")
    if any(is_reserved_directory(directory) for directory in request.log_dirs):
        return RequestRejected(ErrorCode.INVALID_REGISTRATION, "log directory id is reserved")
    if len(set(request.log_dirs)) != len(request.log_dirs):
        return RequestRejected(
            ErrorCode.INVALID_REGISTRATION, "two log directories have the same id; was one copied from the other?"
        )
    for other in image.brokers.values():
        if other.broker_id != request.broker_id and set(other.log_dirs) & set(request.log_dirs):
            return RequestRejected(
                ErrorCode.INVALID_REGISTRATION, f"log directory is registered by broker {other.broker_id}"
            )
    return None


def _unclean_shutdown_changes(image: ClusterImage, broker_id: int, rules_of: RulesOf) -> list[PartitionChangeRecord]:
    """Remove a broker from ISR and ELR after an unclean shutdown, which may have lost its last records.

    Without eligible leader replicas the partitions are unchanged, as in Kafka.
    """
    if not image.elr_enabled:
        return []
    change = BrokerStateChange(unclean=broker_id)
    return changes_for_isr_member(image, broker_id, change, rules_of) + changes_for_elr_member(
        image, broker_id, change, rules_of
    )


def register_controller(image: ClusterImage, request: RegisterController) -> Decision:
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        end_points=[
            ControllerEndpoint(point.listener, point.host, point.port, point.security_protocol)
            for point in request.endpoints
        ],
        features=[ControllerFeature(name, levels.min, levels.max) for name, levels in sorted(request.features.items())],
    )
    return Decision((record,))


def unfence_broker(image: ClusterImage, request: UnfenceBroker, rules_of: RulesOf) -> Decision:
    """Let the broker lead partitions, and elect it where a leader is missing."""
    rejection = check_broker_epoch(image, request.broker_id, request.broker_epoch)
    if rejection is not None:
        return Decision(response=rejection)
    registration = image.brokers[request.broker_id]
    records: list[Any] = []
    if registration.fenced:
        records.append(BrokerRegistrationChangeRecord(request.broker_id, request.broker_epoch, fenced=UNFENCE))
        records += changes_for_leaderless(image, BrokerStateChange(joins=request.broker_id), rules_of)
    if registration.cordoned_log_dirs is None and image.metadata_version >= CORDONED_DIRECTORIES_MIN_VERSION:
        records.append(BrokerRegistrationChangeRecord(request.broker_id, request.broker_epoch, cordoned_log_dirs=[]))
    return Decision(tuple(records))


def start_controlled_shutdown(image: ClusterImage, request: StartControlledShutdown, rules_of: RulesOf) -> Decision:
    rejection = check_broker_epoch(image, request.broker_id, request.broker_epoch)
    if rejection is not None:
        return Decision(response=rejection)
    records: list[Any] = []
    if not image.brokers[request.broker_id].in_controlled_shutdown:
        records.append(
            BrokerRegistrationChangeRecord(request.broker_id, request.broker_epoch, in_controlled_shutdown=1)
        )
    records += changes_for_isr_member(image, request.broker_id, BrokerStateChange(leaves=request.broker_id), rules_of)
    return Decision(tuple(records))


def fence_broker(image: ClusterImage, request: FenceBroker, rules_of: RulesOf) -> Decision:
    rejection = check_broker_epoch(image, request.broker_id, request.broker_epoch)
    if rejection is not None:
        return Decision(response=rejection)
    if image.brokers[request.broker_id].fenced:
        return Decision()
    records: list[Any] = [
        *changes_for_isr_member(image, request.broker_id, BrokerStateChange(leaves=request.broker_id), rules_of)
    ]
    records.append(BrokerRegistrationChangeRecord(request.broker_id, request.broker_epoch, fenced=FENCE))
    return Decision(tuple(records))


def assign_replicas_to_dirs(image: ClusterImage, request: AssignReplicasToDirs) -> Decision:
    """Write the directories that changed. Deleted partitions are ignored."""
    rejection = check_broker_epoch(image, request.broker_id, request.broker_epoch)
    if rejection is not None:
        return Decision(response=rejection)
    records = []
    for (topic_id, index), directory in request.directories.items():
        topic = image.topics_by_id.get(topic_id)
        partition = None if topic is None else topic.partitions.get(index)
        if partition is None or request.broker_id not in partition.replicas:
            continue
        directories = list(partition.directories)
        position = partition.replicas.index(request.broker_id)
        if directories[position] != directory:
            directories[position] = directory
            records.append(PartitionChangeRecord(partition_id=index, topic_id=topic_id, directories=directories))
    return Decision(tuple(records))


def update_online_dirs(image: ClusterImage, request: UpdateOnlineDirs, rules_of: RulesOf) -> Decision:
    """Take replicas in other directories offline: elect other leaders, or none."""
    rejection = check_broker_epoch(image, request.broker_id, request.broker_epoch)
    if rejection is not None:
        return Decision(response=rejection)
    records: list[Any] = []
    if image.brokers[request.broker_id].log_dirs != request.log_dirs:
        records.append(
            BrokerRegistrationChangeRecord(request.broker_id, request.broker_epoch, log_dirs=list(request.log_dirs))
        )
    records += changes_for_offline_dirs(
        image, request.broker_id, request.log_dirs, BrokerStateChange(leaves=request.broker_id), rules_of
    )
    return Decision(tuple(records))


def allocate_producer_ids(image: ClusterImage, request: AllocateProducerIds) -> Decision:
    """Return the next block of producer ids. Blocks save a metadata record per new producer."""
    rejection = check_broker_epoch(image, request.broker_id, request.broker_epoch)
    if rejection is not None:
        return Decision(response=rejection)
    first = image.next_producer_id
    if first > PRODUCER_ID_MAX - PRODUCER_ID_BLOCK_SIZE:
        return Decision(response=RequestRejected(ErrorCode.UNKNOWN_SERVER_ERROR, "producer ids are exhausted"))
    record = ProducerIdsRecord(request.broker_id, request.broker_epoch, first + PRODUCER_ID_BLOCK_SIZE)
    return Decision((record,), ProducerIdBlock(first, PRODUCER_ID_BLOCK_SIZE))
