"""Limits on connections: in total, per listener, per address, and on how many are created per second.

As in Kafka, connections over the limit of their address are closed; those over the total or their listener's limit wait
for a free slot; those over the creation rate are delayed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from ottla.metadata.configs import BROKER_CONFIGS, BrokerLayers, broker_value, parse

_OVERRIDES = "max.connections.per.ip.overrides"
_RATE = "max.connection.creation.rate"
UNLIMITED = (1 << 31) - 1
BURST_SECONDS = 10
"""A burst may use the permits of this much time (Kafka's quota window)."""


class Admission(Enum):
    """Decision about a new connection."""

    ADMITTED = "requests are handled"
    WAITING = "not read until another connection closes"
    REJECTED = "closed"


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """The connection limits, parsed from the configs."""

    total_max: int
    per_address_max: int
    per_address_overrides: Mapping[str, int] = field(default_factory=dict)
    per_listener_max: Mapping[str, int] = field(default_factory=dict)
    total_rate: int = UNLIMITED
    per_listener_rate: Mapping[str, int] = field(default_factory=dict)
    """Connections per second."""

    def address_max(self, host: str) -> int:
        return self.per_address_overrides.get(host, self.per_address_max)


def connection_settings(layers: BrokerLayers, listeners: list[str]) -> ConnectionSettings:
    """Parse the limits. Raises ValueError if the overrides are not a list of host:number."""
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
    """Return the values of `listener.name.NAME.<name>`, by listener."""
    found = {}
    for listener in listeners:
        text = broker.get(f"listener.name.{listener.lower()}.{name}")
        if text is not None:
            value = parse(BROKER_CONFIGS[name], text)
            assert isinstance(value, int)
            found[listener] = value
    return found


def read_overrides(text: str) -> dict[str, int]:
    """Parse a list of host:number. Raises ValueError for anything else."""
    overrides = {}
    for entry in text.split(","):
        if entry.strip():
            host, colon, number = entry.strip().rpartition(":")
            if not colon or not host.strip() or not number.strip().isdecimal():
                raise ValueError(f"must be a list of host:number, got {entry.strip()!r}")
            overrides[host.strip().strip("[]")] = int(number)
    return overrides


class ConnectionQuotas:
    """Counts of open connections against the limits.

    The protected listener (between brokers) is exempt from the total limit: clients must not lock brokers out.
    """

    def __init__(self, settings: ConnectionSettings, protected_listener: str | None = None) -> None:
        self.settings = settings
        self._protected = protected_listener
        self.total = 0
        self.by_listener: dict[str, int] = {}
        self._by_address: dict[str, int] = {}

    def on_accepted(self, listener: str, host: str) -> Admission:
        """Decide about a new connection; an admitted one counts until `on_closed`."""
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
        """Return whether the total limit is exceeded and connections of this listener may be closed for it."""
        return self.total > self.settings.total_max and listener != self._protected


class RateLimiter:
    """A rate per second that allows bursts of recently unused permits."""

    __slots__ = ("_at", "_left", "_rate")

    def __init__(self, rate: int, now: float) -> None:
        self._rate = rate
        self._left = float(rate * BURST_SECONDS)
        self._at = now

    def acquire(self, now: float) -> float:
        """Take one slot and return the seconds to wait for it; the next caller waits longer."""
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
    """The total creation rate and those of listeners. The protected listener is exempt from the total."""

    def __init__(self, settings: ConnectionSettings, now: float, protected_listener: str | None = None) -> None:
        self._total = RateLimiter(settings.total_rate, now)
        self._by_listener = {listener: RateLimiter(rate, now) for listener, rate in settings.per_listener_rate.items()}
        self._protected = protected_listener

    def acquire(self, listener: str, now: float) -> float:
        own = self._by_listener.get(listener)
        total = self._total.acquire(now)
        return max(0.0 if listener == self._protected else total, 0.0 if own is None else own.acquire(now))

    def release(self, listener: str) -> None:
        """Return the slot of a connection that was rejected."""
        self._total.release()
        own = self._by_listener.get(listener)
        if own is not None:
            own.release()
