"""The controller state machine: `decide` reads and returns records, `replay` alone changes state."""

from collections.abc import Callable, Sequence
from typing import Any

from ottla.base.decision import Decision
from ottla.base.ports import Rng
from ottla.controller.bootstrap import activate
from ottla.controller.brokers import (
    allocate_producer_ids,
    assign_replicas_to_dirs,
    fence_broker,
    register_broker,
    register_controller,
    start_controlled_shutdown,
    unfence_broker,
    update_online_dirs,
)
from ottla.controller.configs import alter_configs, election_rules, incremental_alter_configs
from ottla.controller.features import update_features
from ottla.controller.partitions import create_partitions
from ottla.controller.requests import (
    AllocateProducerIds,
    AssignReplicasToDirs,
    FenceBroker,
    RegisterBroker,
    RegisterController,
    StartControlledShutdown,
    UnfenceBroker,
    UpdateOnlineDirs,
)
from ottla.controller.settings import ControllerSettings
from ottla.controller.topics import create_topics, delete_topics
from ottla.metadata.delta import ClusterDelta
from ottla.metadata.image import ClusterImage
from ottla.wire.messages.alter_configs import AlterConfigsRequest
from ottla.wire.messages.create_partitions import CreatePartitionsRequest
from ottla.wire.messages.create_topics import CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from ottla.wire.messages.update_features import UpdateFeaturesRequest


class Controller:
    """Decides requests against an image that is ahead of the committed one: it includes all decisions made so far.

    The caller replays a decision's records here before the next decision, and sends its response when they are
    committed.
    """

    def __init__(self, image: ClusterImage, settings: ControllerSettings, rng: Rng) -> None:
        self._image = image
        self._delta: ClusterDelta | None = None
        self._settings = settings
        self._rng = rng
        self._next_offset = image.last_offset + 1

    @property
    def image(self) -> ClusterImage:
        """The image with all replayed records. The delta is applied on access, so a thousand records cost one copy."""
        if self._delta is not None:
            self._image = self._delta.apply()
            self._delta = None
        return self._image

    def activate(self, next_offset: int, bootstrap: Sequence[Any]) -> Decision:
        """Become active. The first record gets `next_offset`, after the log's own records of the new epoch."""
        self._next_offset = next_offset
        return activate(self.image, bootstrap, self._settings)

    def decide(self, request: Any, now_ms: int) -> Decision:
        """Return the records and the response. Errors are responses too."""
        return _DECISIONS[type(request)](self, request)

    def replay(self, offset: int, record: Any) -> None:
        if self._delta is None:
            self._delta = ClusterDelta(self._image)
        self._delta.replay(offset, record)
        self._next_offset = offset + 1

    def _create_topics(self, request: CreateTopicsRequest) -> Decision:
        return create_topics(self.image, request, self._settings, self._rng)

    def _delete_topics(self, request: DeleteTopicsRequest) -> Decision:
        return delete_topics(self.image, request, self._settings)

    def _create_partitions(self, request: CreatePartitionsRequest) -> Decision:
        return create_partitions(self.image, request, self._settings, self._rng)

    def _alter_configs(self, request: AlterConfigsRequest) -> Decision:
        return alter_configs(self.image, request, self._settings)

    def _incremental_alter_configs(self, request: IncrementalAlterConfigsRequest) -> Decision:
        return incremental_alter_configs(self.image, request, self._settings)

    def _update_features(self, request: UpdateFeaturesRequest) -> Decision:
        return update_features(self.image, request, self._settings)

    def _allocate_producer_ids(self, request: AllocateProducerIds) -> Decision:
        return allocate_producer_ids(self.image, request)

    def _register_broker(self, request: RegisterBroker) -> Decision:
        return register_broker(self.image, request, self._next_offset, election_rules(self.image, self._settings))

    def _register_controller(self, request: RegisterController) -> Decision:
        return register_controller(self.image, request)

    def _unfence_broker(self, request: UnfenceBroker) -> Decision:
        return unfence_broker(self.image, request, election_rules(self.image, self._settings))

    def _start_controlled_shutdown(self, request: StartControlledShutdown) -> Decision:
        return start_controlled_shutdown(self.image, request, election_rules(self.image, self._settings))

    def _fence_broker(self, request: FenceBroker) -> Decision:
        return fence_broker(self.image, request, election_rules(self.image, self._settings))

    def _assign_replicas_to_dirs(self, request: AssignReplicasToDirs) -> Decision:
        return assign_replicas_to_dirs(self.image, request)

    def _update_online_dirs(self, request: UpdateOnlineDirs) -> Decision:
        return update_online_dirs(self.image, request, election_rules(self.image, self._settings))


_DECISIONS: dict[type, Callable[[Controller, Any], Decision]] = {
    AllocateProducerIds: Controller._allocate_producer_ids,
    AlterConfigsRequest: Controller._alter_configs,
    AssignReplicasToDirs: Controller._assign_replicas_to_dirs,
    CreatePartitionsRequest: Controller._create_partitions,
    CreateTopicsRequest: Controller._create_topics,
    DeleteTopicsRequest: Controller._delete_topics,
    FenceBroker: Controller._fence_broker,
    IncrementalAlterConfigsRequest: Controller._incremental_alter_configs,
    UpdateOnlineDirs: Controller._update_online_dirs,
    RegisterBroker: Controller._register_broker,
    RegisterController: Controller._register_controller,
    StartControlledShutdown: Controller._start_controlled_shutdown,
    UnfenceBroker: Controller._unfence_broker,
    UpdateFeaturesRequest: Controller._update_features,
}
