"""What a node asks of its controller on its own behalf. Clients' requests come as the wire's own messages.

Named tuples, as a dozen dataclasses would cost 5 ms of the start.
"""

from collections.abc import Mapping
from typing import NamedTuple

from ottla.base.errors import ErrorCode
from ottla.base.ids import Uuid
from ottla.metadata.image import Endpoint, VersionRange

NO_FEATURES: Mapping[str, VersionRange] = {}


class RequestRejected(NamedTuple):
    """The response where a request of a node cannot be granted."""

    code: ErrorCode
    message: str


class RegisterBroker(NamedTuple):
    """`previous_epoch` is what the clean-shutdown marker holds, or -1 where there is none. The response is a BrokerRegistered."""

    broker_id: int
    cluster_id: str
    incarnation_id: Uuid
    endpoints: tuple[Endpoint, ...]
    log_dirs: tuple[Uuid, ...]
    features: Mapping[str, VersionRange] = NO_FEATURES
    rack: str | None = None
    previous_epoch: int = -1


class BrokerRegistered(NamedTuple):
    epoch: int


class RegisterController(NamedTuple):
    controller_id: int
    incarnation_id: Uuid
    endpoints: tuple[Endpoint, ...]
    features: Mapping[str, VersionRange] = NO_FEATURES


class UnfenceBroker(NamedTuple):
    """The broker has caught up with the metadata log and is ready to lead."""

    broker_id: int
    broker_epoch: int


class StartControlledShutdown(NamedTuple):
    """The broker wants to stop: others take over what it leads."""

    broker_id: int
    broker_epoch: int


class FenceBroker(NamedTuple):
    """The broker has stopped, or is taken to have."""

    broker_id: int
    broker_epoch: int


class AssignReplicasToDirs(NamedTuple):
    """Where a broker with several log directories has put its replicas: topic id and partition to directory id."""

    broker_id: int
    broker_epoch: int
    directories: dict[tuple[Uuid, int], Uuid]


class UpdateOnlineDirs(NamedTuple):
    """The log directories that a broker can still use: the replicas in its others are lost to it until it is started with them."""

    broker_id: int
    broker_epoch: int
    log_dirs: tuple[Uuid, ...]


class AllocateProducerIds(NamedTuple):
    """The response is a ProducerIdBlock."""

    broker_id: int
    broker_epoch: int


class ProducerIdBlock(NamedTuple):
    first: int
    size: int
