"""The orders that Java's hash maps have, where a choice of Kafka's depends on one."""

from collections.abc import Iterable

from ottla.base.java_hash import string_hash


def in_map_order(names: Iterable[str]) -> list[str]:
    """The names, given in the order in which they were put into a map, in the order in which the map lists them."""
    given = list(names)
    buckets = 16
    while len(given) > buckets * 3 // 4:
        buckets *= 2
    spread = {name: (value ^ value >> 16) & buckets - 1 for name in given for value in (string_hash(name),)}
    return sorted(given, key=spread.__getitem__)
