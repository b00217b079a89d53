"""Records of a metadata snapshot: replaying them recreates the image."""

from collections.abc import Iterator
from typing import Any

from ottla.metadata.image import (
    METADATA_VERSION,
    BrokerRegistration,
    ClusterImage,
    ControllerRegistration,
    PartitionImage,
    TopicImage,
)
from ottla.wire.records.metadata import (
    BrokerEndpoint,
    BrokerFeature,
    ConfigRecord,
    ControllerEndpoint,
    ControllerFeature,
    FeatureLevelRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    TopicRecord,
)

NO_BROKER = -1


def image_records(image: ClusterImage) -> Iterator[Any]:
    """Yield the records of an image. The metadata version comes first, since it determines how to read the others."""
    assert image.open_transaction is None, "snapshot during an open transaction"
    for name in sorted(image.features, key=lambda name: (name != METADATA_VERSION, name)):
        yield FeatureLevelRecord(name, image.features[name])
    for broker in image.brokers.values():
        yield _broker_record(broker)
    for controller in image.controllers.values():
        yield _controller_record(controller)
    for topic in image.topics_by_id.values():
        yield TopicRecord(topic.name, topic.topic_id)
        for index, partition in topic.partitions.items():
            yield _partition_record(topic, index, partition)
    for resource, values in image.configs.items():
        for name, value in values.items():
            yield ConfigRecord(resource.type, resource.name, name, value)
    if image.next_producer_id:
        yield ProducerIdsRecord(NO_BROKER, -1, image.next_producer_id)
    for records in image.passthrough.values():
        yield from records.values()


def _broker_record(broker: BrokerRegistration) -> RegisterBrokerRecord:
    cordoned = broker.cordoned_log_dirs
    return RegisterBrokerRecord(
        broker_id=broker.broker_id,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=[
            BrokerEndpoint(at.listener, at.host, at.port, at.security_protocol) for at in broker.endpoints.values()
        ],
        features=[BrokerFeature(name, levels.min, levels.max) for name, levels in broker.features.items()],
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=list(broker.log_dirs),
        cordoned_log_dirs=None if cordoned is None else list(cordoned),
    )


def _controller_record(controller: ControllerRegistration) -> RegisterControllerRecord:
    return RegisterControllerRecord(
        controller_id=controller.controller_id,
        incarnation_id=controller.incarnation_id,
        end_points=[
            ControllerEndpoint(at.listener, at.host, at.port, at.security_protocol)
            for at in controller.endpoints.values()
        ],
        features=[ControllerFeature(name, levels.min, levels.max) for name, levels in controller.features.items()],
    )


def _partition_record(topic: TopicImage, index: int, partition: PartitionImage) -> PartitionRecord:
    return PartitionRecord(
        partition_id=index,
        topic_id=topic.topic_id,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        removing_replicas=list(partition.removing_replicas),
        adding_replicas=list(partition.adding_replicas),
        leader=partition.leader,
        leader_recovery_state=partition.leader_recovery,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=list(partition.directories),
        eligible_leader_replicas=list(partition.elr) or None,
        last_known_elr=list(partition.last_known_elr) or None,
    )
