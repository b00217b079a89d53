"""Requests of a broker to its controller. Client requests are wire messages.

Named tuples: a dozen dataclasses would add 5 ms to startup.
"""

from collections.abc import Mapping
from typing import NamedTuple

from ottla.base.errors import ErrorCode
from ottla.base.ids import Uuid
from ottla.metadata.image import Endpoint, VersionRange

NO_FEATURES: Mapping[str, VersionRange] = {}


class RequestRejected(NamedTuple):
    """Error response to a broker's request."""

    code: ErrorCode
    message: str


class RegisterBroker(NamedTuple):
    """`previous_epoch` is from the clean-shutdown marker, -1 without one. The response is a BrokerRegistered."""

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
    """The broker is about to stop: other brokers take over its partitions."""

    broker_id: int
    broker_epoch: int


class FenceBroker(NamedTuple):
    """The broker has stopped or its session expired."""

    broker_id: int
    broker_epoch: int


class AssignReplicasToDirs(NamedTuple):
    """Directories that a broker with several log directories has chosen: topic id and partition to directory id."""

    broker_id: int
    broker_epoch: int
    directories: dict[tuple[Uuid, int], Uuid]


class UpdateOnlineDirs(NamedTuple):
    """The broker's usable log directories. Replicas in others are offline until the broker starts with them again."""

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
