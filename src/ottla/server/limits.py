"""How many connections there may be: altogether, at a listener, from one address. As in Kafka, one address's surplus is closed, and
whoever comes while all places are taken waits until one is free."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from ottla.metadata.configs import BROKER_CONFIGS, BrokerLayers, broker_value, parse

_OVERRIDES = "max.connections.per.ip.overrides"


class Admission(Enum):
    """What becomes of a new connection."""

    ADMITTED = "it is served"
    WAITING = "it is not read from until another one ends"
    REFUSED = "it is closed"


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """The configs behind the limits, typed."""

    total_max: int
    per_address_max: int
    per_address_overrides: Mapping[str, int] = field(default_factory=dict)
    per_listener_max: Mapping[str, int] = field(default_factory=dict)

    def of_address(self, host: str) -> int:
        return self.per_address_overrides.get(host, self.per_address_max)


def connection_settings(layers: BrokerLayers, listeners: list[str]) -> ConnectionSettings:
    """ValueError where the overrides are no list of host:number."""
    broker = layers.merged()
    total_max, per_address_max = broker_value("max.connections", broker), broker_value("max.connections.per.ip", broker)
    assert isinstance(total_max, int)
    assert isinstance(per_address_max, int)
    per_listener = {}
    for listener in listeners:
        text = broker.get(f"listener.name.{listener.lower()}.max.connections")
        if text is not None:
            most = parse(BROKER_CONFIGS["max.connections"], text)
            assert isinstance(most, int)
            per_listener[listener] = most
    return ConnectionSettings(total_max, per_address_max, read_overrides(broker.get(_OVERRIDES, "")), per_listener)


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


class ConnectionCounts:
    """Who is connected. The listener between brokers, where there are others beside it, does not wait for the places of all: a cluster
    whose clients took them could not heal itself."""

    def __init__(self, settings: ConnectionSettings, protected_listener: str | None = None) -> None:
        self.settings = settings
        self._protected = protected_listener
        self.total = 0
        self.by_listener: dict[str, int] = {}
        self._by_address: dict[str, int] = {}

    def on_accepted(self, listener: str, host: str) -> Admission:
        """A connection that is admitted is counted until `on_ended`."""
        if not self.has_place(listener):
            return Admission.WAITING
        if self._by_address.get(host, 0) >= self.settings.of_address(host):
            return Admission.REFUSED
        self.total += 1
        self.by_listener[listener] = self.by_listener.get(listener, 0) + 1
        self._by_address[host] = self._by_address.get(host, 0) + 1
        return Admission.ADMITTED

    def on_ended(self, listener: str, host: str) -> None:
        self.total -= 1
        self.by_listener[listener] -= 1
        self._by_address[host] -= 1
        if not self._by_address[host]:
            del self._by_address[host]

    def has_place(self, listener: str) -> bool:
        listener_max = self.settings.per_listener_max.get(listener)
        if listener_max is not None and self.by_listener.get(listener, 0) >= listener_max:
            return False
        return listener == self._protected or self.total < self.settings.total_max

    def may_be_closed(self, listener: str) -> bool:
        """Whether there are more than there should be, and those of this listener are the ones to go."""
        return self.total > self.settings.total_max and listener != self._protected
