"""Replica placement for new partitions: round robin over racks, and over the brokers of each rack (KIP-36)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.ids import Uuid
from ottla.base.ports import Rng
from ottla.metadata.directories import DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED
from ottla.metadata.image import BrokerRegistration


def default_directory(registration: BrokerRegistration | None) -> Uuid:
    """Return the directory of a new replica: the broker's only usable one, or UNASSIGNED if the broker must choose."""
    if registration is None:
        return DIRECTORY_UNASSIGNED
    if not registration.log_dirs:
        return DIRECTORY_MIGRATING
    cordoned = registration.cordoned_log_dirs or ()
    usable = [directory for directory in registration.log_dirs if directory not in cordoned]
    return usable[0] if len(usable) == 1 else DIRECTORY_UNASSIGNED


def usable_brokers(brokers: Iterable[BrokerRegistration]) -> list[BrokerRegistration]:
    """Return the brokers that may get replicas: not shutting down, and with a directory that is not cordoned."""
    return [
        broker
        for broker in brokers
        if not broker.in_controlled_shutdown
        and not (broker.log_dirs and set(broker.log_dirs) <= set(broker.cordoned_log_dirs or ()))
    ]


@dataclass(slots=True)
class _Rack:
    """Brokers of one rack, rotated by one for every partition to spread the load.

    Leaders have a counter of their own: with as many racks as brokers per rack, a shared one would always pick the same
    leader.
    """

    unfenced: list[int]
    fenced: list[int]
    leader_start: int = 0
    unfenced_start: int = 0
    fenced_start: int = 0

    def rotation(self, *, is_leading: bool) -> Iterator[int]:
        """Yield all brokers once, fenced ones last: they may get a replica, but cannot lead."""
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
    """Return the replicas of each new partition, leader first.

    Raises ApiError if there are too few brokers, or none can lead.
    """
    usable = usable_brokers(brokers)
    unfenced = sum(not broker.fenced for broker in usable)
    if not unfenced:
        raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, "no broker can lead a partition: all are fenced")
    if replication_factor > len(usable):
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"replication factor {replication_factor} is larger than the number of usable brokers, {len(usable)}",
        )
    racks = _racks(usable, rng)
    first = rng.below(len(racks))
    placed = []
    for number in range(partitions):
        if unfenced > 1 and number and number % unfenced == 0:
            _shuffle(racks, rng)  # each broker has led once: reshuffle, or the same replica sets would repeat
        placed.append(_place_partition(racks[first:] + racks[:first], replication_factor))
        first = (first + 1) % len(racks)
    return placed


def _place_partition(racks: list[_Rack], replication_factor: int) -> tuple[int, ...]:
    """Return the leader, from the first rack with an unfenced broker, and one replica from each rack in turn."""
    leading = next(index for index, rack in enumerate(racks) if rack.unfenced)
    iterators = [rack.rotation(is_leading=index == leading) for index, rack in enumerate(racks)]
    chosen = [next(iterators[leading])]
    step = 0
    while len(chosen) < replication_factor:
        index = step % len(racks)
        step += 1
        if step <= len(racks) and index == leading:
            continue  # this rack has the leader
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
    lists: list[list[Any]] = [racks, *(rack.unfenced for rack in racks), *(rack.fenced for rack in racks)]
    for items in lists:
        for last in range(len(items) - 1, 0, -1):
            other = rng.below(last + 1)
            items[last], items[other] = items[other], items[last]
