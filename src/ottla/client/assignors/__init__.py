"""Assignors: how the group leader assigns partitions to members. Pure functions, with the names of Kafka's assignors.

An assignor gives each partition to one member that subscribed to its topic. The same members and topics give the same
assignment, in whatever order they are passed.
"""

from ottla.client.assignors.base import Assignment, Assignor, Member, Topics
from ottla.client.assignors.cooperative_sticky import CooperativeStickyAssignor
from ottla.client.assignors.range import RangeAssignor
from ottla.client.assignors.round_robin import RoundRobinAssignor
from ottla.client.assignors.sticky import StickyAssignor

__all__ = [
    "Assignment", "Assignor", "CooperativeStickyAssignor", "Member", "RangeAssignor", "RoundRobinAssignor",
    "StickyAssignor", "Topics", "assignors_named",
]  # fmt: skip

_JAVA_NAMES = {
    "org.apache.kafka.clients.consumer.RangeAssignor": "range",
    "org.apache.kafka.clients.consumer.RoundRobinAssignor": "roundrobin",
    "org.apache.kafka.clients.consumer.StickyAssignor": "sticky",
    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor": "cooperative-sticky",
}


def assignors_named(names: "list[str | Assignor] | tuple[str | Assignor, ...]") -> "list[Assignor]":
    """Return assignors by their names or Java class names; Assignor objects are returned as they are.

    Raises ValueError for unknown names.
    """
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
            raise ValueError(f"unknown assignor {given!r}; known are {', '.join(known)}")
        found.append(cls())
    return found
