"""What a node asks of its controller on its own behalf. Clients' requests come as the wire's own messages."""

from dataclasses import dataclass, field

from ottla.base.errors import ErrorCode
from ottla.base.ids import Uuid
from ottla.metadata.image import Endpoint, VersionRange


@dataclass(frozen=True, slots=True)
class Refused:
    """The response where a request of a node cannot be granted."""

    code: ErrorCode
    message: str


@dataclass(frozen=True, slots=True)
class RegisterBroker:
    """`previous_epoch` is what the clean-shutdown marker holds, or -1 where there is none. The response is a BrokerRegistered."""

    broker_id: int
    cluster_id: str
    incarnation_id: Uuid
    endpoints: tuple[Endpoint, ...]
    log_dirs: tuple[Uuid, ...]
    features: dict[str, VersionRange] = field(default_factory=dict)
    rack: str | None = None
    previous_epoch: int = -1


@dataclass(frozen=True, slots=True)
class BrokerRegistered:
    epoch: int


@dataclass(frozen=True, slots=True)
class RegisterController:
    controller_id: int
    incarnation_id: Uuid
    endpoints: tuple[Endpoint, ...]
    features: dict[str, VersionRange] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UnfenceBroker:
    """The broker has caught up with the metadata log and is ready to lead."""

    broker_id: int
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class StartControlledShutdown:
    """The broker wants to stop: others take over what it leads."""

    broker_id: int
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class FenceBroker:
    """The broker has stopped, or is taken to have."""

    broker_id: int
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class AssignReplicasToDirs:
    """Where a broker with several log directories has put its replicas: topic id and partition to directory id."""

    broker_id: int
    broker_epoch: int
    directories: dict[tuple[Uuid, int], Uuid]


@dataclass(frozen=True, slots=True)
class AllocateProducerIds:
    """The response is a ProducerIdBlock."""

    broker_id: int
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class ProducerIdBlock:
    first: int
    size: int
