"""How many connections there may be: altogether, at a listener, from one address; and how many may come in a second. As in Kafka, one
address's surplus is closed, whoever comes while all places are taken waits until one is free, and whoever comes too fast waits a while."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from ottla.metadata.configs import BROKER_CONFIGS, BrokerLayers, broker_value, parse

_OVERRIDES = "max.connections.per.ip.overrides"
_RATE = "max.connection.creation.rate"
UNLIMITED = (1 << 31) - 1
BURST_SECONDS = 10
"""Who has been quiet for so long may come as often at once as in all of that time: Kafka's window for rates."""


class Admission(Enum):
    """What becomes of a new connection."""

    ADMITTED = "it is served"
    WAITING = "it is not read from until another one ends"
    REJECTED = "it is closed"


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """The configs behind the limits, typed."""

    total_max: int
    per_address_max: int
    per_address_overrides: Mapping[str, int] = field(default_factory=dict)
    per_listener_max: Mapping[str, int] = field(default_factory=dict)
    total_rate: int = UNLIMITED
    per_listener_rate: Mapping[str, int] = field(default_factory=dict)
    """Connections in a second."""

    def address_max(self, host: str) -> int:
        return self.per_address_overrides.get(host, self.per_address_max)


def connection_settings(layers: BrokerLayers, listeners: list[str]) -> ConnectionSettings:
    """ValueError where the overrides are no list of host:number."""
    broker = layers.merged()
    total_max, per_address_max = broker_value("max.connections", broker), broker_value("max.connections.per.ip", broker)
    total_rate = broker_value(_RATE, broker)
    assert isinstance(total_max, int)
    assert isinstance(per_address_max, int)
    assert isinstance(total_rate, int)
    return ConnectionSettings(
        total_max,
        per_address_max,
        read_overrides(broker.get(_OVERRIDES, "")),
        _listener_values("max.connections", broker, listeners),
        total_rate,
        _listener_values(_RATE, broker, listeners),
    )


def _listener_values(name: str, broker: Mapping[str, str], listeners: list[str]) -> dict[str, int]:
    """What is set for single listeners."""
    found = {}
    for listener in listeners:
        text = broker.get(f"listener.name.{listener.lower()}.{name}")
        if text is not None:
            value = parse(BROKER_CONFIGS[name], text)
            assert isinstance(value, int)
            found[listener] = value
    return found


def read_overrides(text: str) -> dict[str, int]:
    """`host:number` by host; ValueError where something else stands there."""
    overrides = {}
    for entry in text.split(","):
        if entry.strip():
            host, colon, number = entry.strip().rpartition(":")
            if not colon or not host.strip() or not number.strip().isdecimal():
                raise ValueError(f"must be a list of host:number; {entry.strip()!r} is none")
            overrides[host.strip().strip("[]")] = int(number)
    return overrides


class ConnectionQuotas:
    """Who is connected. The listener between brokers, where there are others beside it, does not wait for the places of all: a cluster
    whose clients took them could not heal itself."""

    def __init__(self, settings: ConnectionSettings, protected_listener: str | None = None) -> None:
        self.settings = settings
        self._protected = protected_listener
        self.total = 0
        self.by_listener: dict[str, int] = {}
        self._by_address: dict[str, int] = {}

    def on_accepted(self, listener: str, host: str) -> Admission:
        """A connection that is admitted is counted until `on_closed`."""
        if not self.has_slot(listener):
            return Admission.WAITING
        if self._by_address.get(host, 0) >= self.settings.address_max(host):
            return Admission.REJECTED
        self.total += 1
        self.by_listener[listener] = self.by_listener.get(listener, 0) + 1
        self._by_address[host] = self._by_address.get(host, 0) + 1
        return Admission.ADMITTED

    def on_closed(self, listener: str, host: str) -> None:
        self.total -= 1
        self.by_listener[listener] -= 1
        self._by_address[host] -= 1
        if not self._by_address[host]:
            del self._by_address[host]

    def has_slot(self, listener: str) -> bool:
        listener_max = self.settings.per_listener_max.get(listener)
        if listener_max is not None and self.by_listener.get(listener, 0) >= listener_max:
            return False
        return listener == self._protected or self.total < self.settings.total_max

    def is_closable(self, listener: str) -> bool:
        """Whether there are more than there should be, and those of this listener are the ones to go."""
        return self.total > self.settings.total_max and listener != self._protected


class RateLimiter:
    """So many in a second, and in a burst what was not used for a while."""

    __slots__ = ("_at", "_left", "_rate")

    def __init__(self, rate: int, now: float) -> None:
        self._rate = rate
        self._left = float(rate * BURST_SECONDS)
        self._at = now

    def acquire(self, now: float) -> float:
        """The seconds to wait: the place of one that waits is taken, so that the next one waits for longer."""
        if self._rate == UNLIMITED:
            return 0.0
        self._left = min(self._left + (now - self._at) * self._rate, self._rate * BURST_SECONDS) - 1
        self._at = now
        if self._left >= 0:
            return 0.0
        return -self._left / self._rate if self._rate else float("inf")

    def release(self) -> None:
        self._left += 1


class ConnectionRateLimiter:
    """Of all connections, and of each listener that has a rate of its own. Brokers wait for their listener's only."""

    def __init__(self, settings: ConnectionSettings, now: float, protected_listener: str | None = None) -> None:
        self._total = RateLimiter(settings.total_rate, now)
        self._by_listener = {listener: RateLimiter(rate, now) for listener, rate in settings.per_listener_rate.items()}
        self._protected = protected_listener

    def acquire(self, listener: str, now: float) -> float:
        own = self._by_listener.get(listener)
        total = self._total.acquire(now)
        return max(0.0 if listener == self._protected else total, 0.0 if own is None else own.acquire(now))

    def release(self, listener: str) -> None:
        """The one that took it was sent away."""
        self._total.release()
        own = self._by_listener.get(listener)
        if own is not None:
            own.release()
