"""How the leader of a group spreads partitions over its members: pure functions, by the names that Kafka's consumers use.

Each assignor is a module with the same rules for everybody: a partition goes to one member that subscribed to its topic, and the same
members and topics give the same response, whatever order they come in.
"""

from ottla.client.assignors.base import Assignment, Assignor, Member, Topics
from ottla.client.assignors.cooperative_sticky import CooperativeStickyAssignor
from ottla.client.assignors.range import RangeAssignor
from ottla.client.assignors.round_robin import RoundRobinAssignor
from ottla.client.assignors.sticky import StickyAssignor

__all__ = [
    "Assignment", "Assignor", "CooperativeStickyAssignor", "Member", "RangeAssignor", "RoundRobinAssignor", "StickyAssignor", "Topics",
    "assignors_named",
]  # fmt: skip

_JAVA_NAMES = {
    "org.apache.kafka.clients.consumer.RangeAssignor": "range",
    "org.apache.kafka.clients.consumer.RoundRobinAssignor": "roundrobin",
    "org.apache.kafka.clients.consumer.StickyAssignor": "sticky",
    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor": "cooperative-sticky",
}


def assignors_named(names: "list[str | Assignor] | tuple[str | Assignor, ...]") -> "list[Assignor]":
    """Assignors by their names or by those of Java's classes; an assignor of one's own is taken as it is. ValueError for others."""
    known: dict[str, type] = {
        cls.name: cls for cls in (RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor)
    }
    found: list[Assignor] = []
    for given in names:
        if not isinstance(given, str):
            found.append(given)
            continue
        cls = known.get(_JAVA_NAMES.get(given, given))
        if cls is None:
            raise ValueError(f"no assignor is called {given!r}; there are {', '.join(known)}")
        found.append(cls())
    return found
