"""Which brokers get the replicas of new partitions: racks in turn, then the brokers within a rack in turn."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.ids import Uuid
from ottla.base.ports import Rng
from ottla.metadata.directories import DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED
from ottla.metadata.image import BrokerRegistration


def default_directory(registration: BrokerRegistration | None) -> Uuid:
    """Where a new replica goes: with one directory it is known at once, with more of them the broker chooses and says so later."""
    if registration is None:
        return DIRECTORY_UNASSIGNED
    if not registration.log_dirs:
        return DIRECTORY_MIGRATING
    cordoned = registration.cordoned_log_dirs or ()
    usable = [directory for directory in registration.log_dirs if directory not in cordoned]
    return usable[0] if len(usable) == 1 else DIRECTORY_UNASSIGNED


def usable_brokers(brokers: Iterable[BrokerRegistration]) -> list[BrokerRegistration]:
    """A broker that is leaving, or takes nothing new into any of its directories, gets no replicas."""
    return [
        broker
        for broker in brokers
        if not broker.in_controlled_shutdown
        and not (broker.log_dirs and set(broker.log_dirs) <= set(broker.cordoned_log_dirs or ()))
    ]


@dataclass(slots=True)
class _Rack:
    """Brokers are dealt from a place that moves on with every partition, so that neighbours share the load.

    Leaders are counted apart: with as many racks as brokers in a rack, one counter would make the same broker lead every time.
    """

    unfenced: list[int]
    fenced: list[int]
    leader_start: int = 0
    unfenced_start: int = 0
    fenced_start: int = 0

    def rotation(self, *, is_leading: bool) -> Iterator[int]:
        """All brokers once, fenced ones last: they can hold a replica, but cannot serve yet."""
        if self.unfenced:
            if is_leading:
                start = self.leader_start = (self.leader_start + 1) % len(self.unfenced)
            else:
                start = self.unfenced_start = (self.unfenced_start + 1) % len(self.unfenced)
            yield from self.unfenced[start:]
            yield from self.unfenced[:start]
        if self.fenced:
            self.fenced_start = (self.fenced_start + 1) % len(self.fenced)
            yield from self.fenced[self.fenced_start :]
            yield from self.fenced[: self.fenced_start]


def place_replicas(
    brokers: Iterable[BrokerRegistration], partitions: int, replication_factor: int, rng: Rng
) -> list[tuple[int, ...]]:
    """The replicas of each new partition, leader first; ApiError where there are too few brokers, or none that could lead."""
    usable = usable_brokers(brokers)
    unfenced = sum(not broker.fenced for broker in usable)
    if not unfenced:
        raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, "no broker is ready to lead a partition: all are fenced")
    if replication_factor > len(usable):
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"{replication_factor} replicas need as many brokers, but only {len(usable)} can take replicas",
        )
    racks = _racks(usable, rng)
    first = rng.below(len(racks))
    placed = []
    for number in range(partitions):
        if unfenced > 1 and number and number % unfenced == 0:
            _shuffle(
                racks, rng
            )  # each broker has led once: a new order keeps the same sets of replicas from coming back
        placed.append(_place_partition(racks[first:] + racks[:first], replication_factor))
        first = (first + 1) % len(racks)
    return placed


def _place_partition(racks: list[_Rack], replication_factor: int) -> tuple[int, ...]:
    """The leader from the first rack that has a broker ready to lead, then one replica from each rack in turn."""
    leading = next(index for index, rack in enumerate(racks) if rack.unfenced)
    iterators = [rack.rotation(is_leading=index == leading) for index, rack in enumerate(racks)]
    chosen = [next(iterators[leading])]
    turn = 0
    while len(chosen) < replication_factor:
        index = turn % len(racks)
        turn += 1
        if turn <= len(racks) and index == leading:
            continue  # this rack has given the leader already
        broker_id = next(iterators[index], None)
        if broker_id is not None:
            chosen.append(broker_id)
    return tuple(chosen)


def _racks(brokers: list[BrokerRegistration], rng: Rng) -> list[_Rack]:
    by_name: dict[str, _Rack] = {}
    for broker in sorted(brokers, key=lambda broker: (broker.rack or "", broker.broker_id)):
        rack = by_name.setdefault(broker.rack or "", _Rack([], []))
        (rack.fenced if broker.fenced else rack.unfenced).append(broker.broker_id)
    for rack in by_name.values():
        rack.leader_start = rack.unfenced_start = rng.below(len(rack.unfenced)) if rack.unfenced else 0
        rack.fenced_start = rng.below(len(rack.fenced)) if rack.fenced else 0
    return list(by_name.values())


def _shuffle(racks: list[_Rack], rng: Rng) -> None:
    decks: list[list[Any]] = [racks, *(rack.unfenced for rack in racks), *(rack.fenced for rack in racks)]
    for deck in decks:
        for last in range(len(deck) - 1, 0, -1):
            other = rng.below(last + 1)
            deck[last], deck[other] = deck[other], deck[last]
