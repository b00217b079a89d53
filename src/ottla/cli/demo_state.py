"""What `ottla demo` knows at a moment, asked of the broker as any tool would ask it, and what has happened between two moments."""

from dataclasses import dataclass, field

from ottla.client import Admin, ClientError, TopicPartition


@dataclass(frozen=True, slots=True)
class Partition:
    number: int
    end: int
    committed: int
    owner: str | None

    @property
    def lag(self) -> int:
        return max(0, self.end - self.committed)


@dataclass(frozen=True, slots=True)
class Moment:
    """`members` has the partitions of each by name; empty while the group rebalances."""

    at_s: float
    state: str
    members: dict[str, tuple[int, ...]]
    partitions: tuple[Partition, ...]

    @property
    def produced(self) -> int:
        return sum(partition.end for partition in self.partitions)

    @property
    def handled(self) -> int:
        return sum(partition.committed for partition in self.partitions)

    @property
    def lag(self) -> int:
        return sum(partition.lag for partition in self.partitions)

    def lag_of(self, member: str) -> int:
        return sum(partition.lag for partition in self.partitions if partition.owner == member)


def look(admin: Admin, topic: str, group: str, partitions: int, at_s: float) -> Moment:
    """Ask for end offsets, committed offsets and the group's members."""
    places = [TopicPartition(topic, number) for number in range(partitions)]
    ends = admin.list_offsets(dict.fromkeys(places, "latest"))
    try:
        described = admin.describe_groups([group])[group]
        committed = admin.list_group_offsets(group)
    except ClientError:  # nobody has joined yet
        return Moment(
            at_s, "Empty", {}, tuple(Partition(place.partition, ends[place].offset, 0, None) for place in places)
        )
    members = {member.client_id: tuple(place.partition for place in member.assignment) for member in described.members}
    owners = {number: name for name, owned in members.items() for number in owned}
    offsets = {place.partition: told.offset for place, told in committed.items()}
    found = tuple(
        Partition(place.partition, ends[place].offset, offsets.get(place.partition, 0), owners.get(place.partition))
        for place in places
    )
    return Moment(at_s, described.state, dict(sorted(members.items())), found)


@dataclass(slots=True)
class Chronicle:
    """Tells what has changed. Only settled moments are compared: amid a rebalance nobody owns anything."""

    owners: dict[int, str] = field(default_factory=dict)
    members: tuple[str, ...] = ()
    moved: int = 0

    def follow(self, moment: Moment) -> list[str]:
        """Sentences on what happened since the last settled moment."""
        if moment.state != "Stable" or any(partition.owner is None for partition in moment.partitions):
            return []
        told = [f"{name} joined the group" for name in moment.members if name not in self.members]
        told += [f"{name} is no longer in the group" for name in self.members if name not in moment.members]
        ways: dict[tuple[str, str], list[int]] = {}
        for partition in moment.partitions:
            assert partition.owner is not None
            before = self.owners.get(partition.number)
            if before is not None and before != partition.owner:
                ways.setdefault((before, partition.owner), []).append(partition.number)
        for (before, after), numbers in ways.items():
            self.moved += len(numbers)
            told.append(f"{_named(numbers)} moved from {before} to {after}")
        self.owners = {
            partition.number: partition.owner for partition in moment.partitions if partition.owner is not None
        }
        self.members = tuple(moment.members)
        return told


def _named(numbers: list[int]) -> str:
    return f"partition{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
