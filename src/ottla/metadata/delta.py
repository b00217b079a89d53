"""Replays metadata records on an image and produces the next image."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.metadata.image import (
    BrokerRegistration,
    ClusterImage,
    ConfigResource,
    ControllerRegistration,
    Endpoint,
    PartitionImage,
    ResourceType,
    TopicImage,
    VersionRange,
)
from ottla.wire.records.metadata import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
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
    ZkMigrationStateRecord,
)

NO_LEADER_CHANGE = -2
NO_RECOVERY_CHANGE = -1


class ReplayError(Exception):
    """A record contradicts the image it is replayed on: the log is corrupt or was not written by a controller."""


class TopicChange(NamedTuple):
    """A topic that exists in both images."""

    before: TopicImage
    after: TopicImage

    def partitions(self) -> dict[int, tuple[PartitionImage | None, PartitionImage]]:
        """Return partitions that changed or are new. Partitions are never removed from a topic."""
        old = self.before.partitions
        return {
            index: (old.get(index), new) for index, new in self.after.partitions.items() if old.get(index) is not new
        }


class ImageChanges(NamedTuple):
    """Differences between two consecutive images."""

    created: tuple[TopicImage, ...] = ()
    changed: tuple[TopicChange, ...] = ()
    deleted: tuple[TopicImage, ...] = ()
    configs: tuple[ConfigResource, ...] = ()
    brokers: tuple[int, ...] = ()
    features: bool = False


class ClusterDelta:
    """Changes on top of an image. Records of a metadata transaction take effect together when it ends."""

    def __init__(self, image: ClusterImage) -> None:
        self._image = image
        self._last_offset = image.last_offset
        self._transaction: list[tuple[int, Any]] | None = (
            None if image.open_transaction is None else list(image.open_transaction)
        )
        self._names: dict[Uuid, str] = {}
        self._partitions: dict[Uuid, dict[int, PartitionImage]] = {}
        self._deleted: dict[Uuid, TopicImage] = {}
        self._configs: dict[ConfigResource, dict[str, str]] = {}
        self._brokers: dict[int, BrokerRegistration | None] = {}
        self._controllers: dict[int, ControllerRegistration] = {}
        self._features: dict[str, int] | None = None
        self._next_producer_id = image.next_producer_id
        self._passthrough: dict[str, dict[Any, Any]] = {}
        self._applied = False

    @property
    def image(self) -> ClusterImage:
        """The image this delta starts from."""
        return self._image

    def replay(self, offset: int, record: Any) -> None:
        assert not self._applied, "replay after apply would change the image"
        self._last_offset = offset
        record_type = type(record)
        if record_type is BeginTransactionRecord:
            if self._transaction is not None:
                raise ReplayError(f"metadata transaction begins at offset {offset} while another is open")
            self._transaction = []
        elif record_type is EndTransactionRecord or record_type is AbortTransactionRecord:
            if self._transaction is None:
                raise ReplayError(f"metadata transaction ends at offset {offset}, but none is open")
            buffered, self._transaction = self._transaction, None
            if record_type is EndTransactionRecord:
                for buffered_offset, buffered_record in buffered:
                    self._apply_record(buffered_offset, buffered_record)
        elif self._transaction is not None:
            self._transaction.append((offset, record))
        else:
            self._apply_record(offset, record)

    def apply(self) -> ClusterImage:
        """Return the next image, which shares unchanged parts with the old one.

        No records can be replayed afterwards.
        """
        self._applied = True
        image = self._image
        by_id, by_name = self._apply_topics()
        return ClusterImage(
            cluster_id=image.cluster_id,
            features=image.features if self._features is None else self._features,
            brokers=self._apply_brokers(),
            controllers=image.controllers if not self._controllers else {**image.controllers, **self._controllers},
            topics_by_id=by_id,
            topics_by_name=by_name,
            configs=_merge_non_empty(image.configs, self._configs),
            next_producer_id=self._next_producer_id,
            passthrough=_merge_non_empty(image.passthrough, self._passthrough),
            open_transaction=None if self._transaction is None else tuple(self._transaction),
            last_offset=self._last_offset,
        )

    def changes(self, after: ClusterImage) -> ImageChanges:
        """Return the differences between the image this delta started from and `after`, the result of `apply`."""
        before = self._image
        touched = [topic_id for topic_id in self._partitions if topic_id in after.topics_by_id]
        return ImageChanges(
            created=tuple(after.topics_by_id[topic_id] for topic_id in touched if topic_id not in before.topics_by_id),
            changed=tuple(
                TopicChange(before.topics_by_id[topic_id], after.topics_by_id[topic_id])
                for topic_id in touched
                if topic_id in before.topics_by_id
            ),
            deleted=tuple(self._deleted.values()),
            configs=tuple(
                resource
                for resource in self._configs
                if before.configs.get(resource, {}) != after.configs.get(resource, {})
            ),
            brokers=tuple(
                broker_id
                for broker_id in self._brokers
                if before.brokers.get(broker_id) != after.brokers.get(broker_id)
            ),
            features=before.features != after.features,
        )

    def _apply_record(self, offset: int, record: Any) -> None:
        handler = _HANDLERS.get(type(record))
        if handler is None:
            self._pass_through(record, offset)
        else:
            handler(self, record)

    def _apply_topics(self) -> tuple[Mapping[Uuid, TopicImage], Mapping[str, TopicImage]]:
        image = self._image
        if not self._partitions and not self._deleted:
            return image.topics_by_id, image.topics_by_name
        by_id = dict(image.topics_by_id)
        by_name = dict(image.topics_by_name)
        for topic_id, topic in self._deleted.items():
            del by_id[topic_id]
            del by_name[topic.name]
        for topic_id, partitions in self._partitions.items():
            name = self._name_of(topic_id)
            topic = TopicImage(name, topic_id, _sorted_partitions(partitions))
            by_id[topic_id] = topic
            by_name[name] = topic
        return by_id, by_name

    def _apply_brokers(self) -> Mapping[int, BrokerRegistration]:
        if not self._brokers:
            return self._image.brokers
        brokers = {**self._image.brokers, **self._brokers}
        return {broker_id: registration for broker_id, registration in brokers.items() if registration is not None}

    def _name_of(self, topic_id: Uuid) -> str:
        name = self._names.get(topic_id)
        return self._image.topics_by_id[topic_id].name if name is None else name

    def _partitions_of(self, topic_id: Uuid) -> dict[int, PartitionImage]:
        """Return the topic's partitions, copied when a record first changes them."""
        partitions = self._partitions.get(topic_id)
        if partitions is None:
            topic = None if topic_id in self._deleted else self._image.topics_by_id.get(topic_id)
            if topic is None:
                raise ReplayError(f"record for unknown topic id {topic_id.hex()}")
            partitions = self._partitions[topic_id] = dict(topic.partitions)
        return partitions

    def _on_topic(self, record: TopicRecord) -> None:
        topic_id = Uuid(record.topic_id)
        if topic_id in self._partitions or topic_id in self._image.topics_by_id:
            raise ReplayError(f"topic {record.name} is created twice with the same id")
        self._names[topic_id] = record.name
        self._partitions[topic_id] = {}

    def _on_partition(self, record: PartitionRecord) -> None:
        self._partitions_of(Uuid(record.topic_id))[record.partition_id] = _new_partition(record)

    def _on_partition_change(self, record: PartitionChangeRecord) -> None:
        partitions = self._partitions_of(Uuid(record.topic_id))
        before = partitions.get(record.partition_id)
        if before is None:
            raise ReplayError(f"record changes unknown partition {record.partition_id}")
        partitions[record.partition_id] = merge_partition_change(before, record)

    def _on_remove_topic(self, record: RemoveTopicRecord) -> None:
        topic_id = Uuid(record.topic_id)
        self._partitions_of(topic_id)
        name = self._name_of(topic_id)
        self._names.pop(topic_id, None)
        del self._partitions[topic_id]
        known = self._image.topics_by_id.get(topic_id)
        if known is not None:
            self._deleted[topic_id] = known
        self._configs[ConfigResource(ResourceType.TOPIC, name)] = {}

    def _on_clear_elr(self, record: ClearElrRecord) -> None:
        if record.topic_name:
            created = {name: topic_id for topic_id, name in self._names.items()}
            known = self._image.topics_by_name.get(record.topic_name)
            topic_id = created.get(record.topic_name) or (known.topic_id if known else None)
            if topic_id is None:
                raise ReplayError(f"record for unknown topic {record.topic_name}")
            topic_ids = [topic_id]
        else:
            topic_ids = [topic_id for topic_id in self._image.topics_by_id if topic_id not in self._deleted]
            topic_ids += [topic_id for topic_id in self._partitions if topic_id not in self._image.topics_by_id]
        for topic_id in topic_ids:
            known_partitions: Mapping[int, PartitionImage] | None = self._partitions.get(topic_id)
            if known_partitions is None:
                known_partitions = self._image.topics_by_id[topic_id].partitions
            if not any(partition.elr or partition.last_known_elr for partition in known_partitions.values()):
                continue
            partitions = self._partitions_of(topic_id)
            for index, partition in partitions.items():
                if partition.elr or partition.last_known_elr:
                    partitions[index] = partition._replace(
                        elr=(), last_known_elr=(), partition_epoch=partition.partition_epoch + 1
                    )

    def _on_config(self, record: ConfigRecord) -> None:
        resource = ConfigResource(record.resource_type, record.resource_name)
        values = self._configs.get(resource)
        if values is None:
            values = self._configs[resource] = dict(self._image.configs.get(resource, {}))
        if record.value is None:
            values.pop(record.name, None)
        else:
            values[record.name] = record.value

    def _broker(self, broker_id: int, epoch: int) -> BrokerRegistration:
        registration = self._brokers[broker_id] if broker_id in self._brokers else self._image.brokers.get(broker_id)
        if registration is None or registration.epoch != epoch:
            raise ReplayError(f"record for broker {broker_id} in epoch {epoch}, which is not registered")
        return registration

    def _on_register_broker(self, record: RegisterBrokerRecord) -> None:
        self._brokers[record.broker_id] = BrokerRegistration(
            broker_id=record.broker_id,
            epoch=record.broker_epoch,
            incarnation_id=Uuid(record.incarnation_id),
            endpoints=_endpoints(record.end_points),
            features=_features(record.features),
            rack=record.rack,
            fenced=record.fenced,
            in_controlled_shutdown=record.in_controlled_shutdown,
            log_dirs=_uuids(record.log_dirs),
            cordoned_log_dirs=None if record.cordoned_log_dirs is None else _uuids(record.cordoned_log_dirs),
        )

    def _on_unregister_broker(self, record: UnregisterBrokerRecord) -> None:
        self._broker(record.broker_id, record.broker_epoch)
        self._brokers[record.broker_id] = None

    def _on_broker_change(self, record: BrokerRegistrationChangeRecord) -> None:
        registration = self._broker(record.broker_id, record.broker_epoch)
        cordoned = record.cordoned_log_dirs
        self._brokers[record.broker_id] = registration._replace(
            fenced=registration.fenced if record.fenced == 0 else record.fenced > 0,
            in_controlled_shutdown=registration.in_controlled_shutdown or record.in_controlled_shutdown > 0,
            log_dirs=_uuids(record.log_dirs) or registration.log_dirs,
            cordoned_log_dirs=registration.cordoned_log_dirs if cordoned is None else _uuids(cordoned),
        )

    def _on_fence(self, record: FenceBrokerRecord) -> None:
        self._brokers[record.id] = self._broker(record.id, record.epoch)._replace(fenced=True)

    def _on_unfence(self, record: UnfenceBrokerRecord) -> None:
        self._brokers[record.id] = self._broker(record.id, record.epoch)._replace(fenced=False)

    def _on_register_controller(self, record: RegisterControllerRecord) -> None:
        self._controllers[record.controller_id] = ControllerRegistration(
            record.controller_id, Uuid(record.incarnation_id), _endpoints(record.end_points), _features(record.features)
        )

    def _on_feature(self, record: FeatureLevelRecord) -> None:
        if self._features is None:
            self._features = dict(self._image.features)
        if record.feature_level == 0:
            self._features.pop(record.name, None)
        else:
            self._features[record.name] = record.feature_level

    def _on_producer_ids(self, record: ProducerIdsRecord) -> None:
        self._next_producer_id = record.next_producer_id

    def _on_no_op(self, record: NoOpRecord) -> None:
        """Ignore records that Kafka's controllers write as a heartbeat of the log."""

    def _passthrough_of(self, name: str) -> dict[Any, Any]:
        records = self._passthrough.get(name)
        if records is None:
            records = self._passthrough[name] = dict(self._image.passthrough.get(name, {}))
        return records

    def _pass_through(self, record: Any, offset: int) -> None:
        record_type = type(record)
        identity = _PASSTHROUGH_KEYS.get(record_type)
        self._passthrough_of(record_type.__name__)[offset if identity is None else identity(record)] = record

    def _drop_passthrough(self, record: Any) -> None:
        record_type, identity = _PASSTHROUGH_REMOVALS[type(record)]
        self._passthrough_of(record_type.__name__).pop(identity(record), None)

    def _on_client_quota(self, record: ClientQuotaRecord) -> None:
        key = (tuple((entity.entity_type, entity.entity_name) for entity in record.entity), record.key)
        records = self._passthrough_of("ClientQuotaRecord")
        if record.remove:
            records.pop(key, None)
        else:
            records[key] = record


def merge_partition_change(before: PartitionImage, record: PartitionChangeRecord) -> PartitionImage:
    """Apply a change record: null (or -1, -2) fields stay.

    The partition epoch always increases, the leader epoch per election.
    """

    def changed(new: Any, old: tuple[int, ...]) -> tuple[int, ...]:
        return old if new is None else tuple(new)

    elected = record.leader != NO_LEADER_CHANGE
    return PartitionImage(
        replicas=changed(record.replicas, before.replicas),
        isr=changed(record.isr, before.isr),
        leader=record.leader if elected else before.leader,
        leader_epoch=before.leader_epoch + 1 if elected else before.leader_epoch,
        partition_epoch=before.partition_epoch + 1,
        directories=before.directories if record.directories is None else _uuids(record.directories),
        removing_replicas=changed(record.removing_replicas, before.removing_replicas),
        adding_replicas=changed(record.adding_replicas, before.adding_replicas),
        leader_recovery=(
            before.leader_recovery
            if record.leader_recovery_state == NO_RECOVERY_CHANGE
            else record.leader_recovery_state
        ),
        elr=changed(record.eligible_leader_replicas, before.elr),
        last_known_elr=changed(record.last_known_elr, before.last_known_elr),
    )


def _new_partition(record: PartitionRecord) -> PartitionImage:
    return PartitionImage(
        replicas=tuple(record.replicas),
        isr=tuple(record.isr),
        leader=record.leader,
        leader_epoch=record.leader_epoch,
        partition_epoch=record.partition_epoch,
        # Records from before directory ids have none: use one zero id ("unknown") per replica.
        directories=_uuids(record.directories) or (ZERO_UUID,) * len(record.replicas),
        removing_replicas=tuple(record.removing_replicas),
        adding_replicas=tuple(record.adding_replicas),
        leader_recovery=record.leader_recovery_state,
        elr=tuple(record.eligible_leader_replicas or ()),
        last_known_elr=tuple(record.last_known_elr or ()),
    )


def _uuids(values: Any) -> tuple[Uuid, ...]:
    return tuple(Uuid(value) for value in values)


def _endpoints(values: Any) -> dict[str, Endpoint]:
    return {value.name: Endpoint(value.name, value.host, value.port, value.security_protocol) for value in values}


def _features(values: Any) -> dict[str, VersionRange]:
    return {value.name: VersionRange(value.min_supported_version, value.max_supported_version) for value in values}


def _sorted_partitions(partitions: dict[int, PartitionImage]) -> dict[int, PartitionImage]:
    indexes = list(partitions)
    return partitions if indexes == sorted(indexes) else dict(sorted(partitions.items()))


def _merge_non_empty(
    before: Mapping[Any, Mapping[Any, Any]], touched: dict[Any, dict[Any, Any]]
) -> Mapping[Any, Mapping[Any, Any]]:
    """Overlay the changed mappings, dropping those that became empty."""
    if not touched:
        return before
    return {key: values for key, values in {**before, **touched}.items() if values}


_PASSTHROUGH_KEYS: dict[type, Callable[[Any], Any]] = {
    AccessControlEntryRecord: lambda record: record.id,
    DelegationTokenRecord: lambda record: record.token_id,
    UserScramCredentialRecord: lambda record: (record.name, record.mechanism),
    ZkMigrationStateRecord: lambda record: 0,
}

_PASSTHROUGH_REMOVALS: dict[type, tuple[type, Callable[[Any], Any]]] = {
    RemoveAccessControlEntryRecord: (AccessControlEntryRecord, lambda record: record.id),
    RemoveDelegationTokenRecord: (DelegationTokenRecord, lambda record: record.token_id),
    RemoveUserScramCredentialRecord: (UserScramCredentialRecord, lambda record: (record.name, record.mechanism)),
}

_HANDLERS: dict[type, Callable[[ClusterDelta, Any], None]] = {
    BrokerRegistrationChangeRecord: ClusterDelta._on_broker_change,
    ClearElrRecord: ClusterDelta._on_clear_elr,
    ClientQuotaRecord: ClusterDelta._on_client_quota,
    ConfigRecord: ClusterDelta._on_config,
    FeatureLevelRecord: ClusterDelta._on_feature,
    FenceBrokerRecord: ClusterDelta._on_fence,
    NoOpRecord: ClusterDelta._on_no_op,
    PartitionChangeRecord: ClusterDelta._on_partition_change,
    PartitionRecord: ClusterDelta._on_partition,
    ProducerIdsRecord: ClusterDelta._on_producer_ids,
    RegisterBrokerRecord: ClusterDelta._on_register_broker,
    RegisterControllerRecord: ClusterDelta._on_register_controller,
    RemoveTopicRecord: ClusterDelta._on_remove_topic,
    TopicRecord: ClusterDelta._on_topic,
    UnfenceBrokerRecord: ClusterDelta._on_unfence,
    UnregisterBrokerRecord: ClusterDelta._on_unregister_broker,
    RemoveAccessControlEntryRecord: ClusterDelta._drop_passthrough,
    RemoveDelegationTokenRecord: ClusterDelta._drop_passthrough,
    RemoveUserScramCredentialRecord: ClusterDelta._drop_passthrough,
}
