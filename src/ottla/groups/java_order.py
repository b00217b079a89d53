"""The orders that Java's hash maps have, where a choice of Kafka's depends on one."""

from collections.abc import Iterable


def string_hash(text: str) -> int:
    """Java's hash of a string as 32 unsigned bits: it counts in UTF-16."""
    value = 0
    encoded = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(encoded), 2):
        value = (31 * value + (encoded[at] << 8 | encoded[at + 1])) & 0xFFFFFFFF
    return value


def in_map_order(names: Iterable[str]) -> list[str]:
    """The names, given in the order in which they were put into a map, in the order in which the map lists them."""
    given = list(names)
    buckets = 16
    while len(given) > buckets * 3 // 4:
        buckets *= 2
    spread = {name: (value ^ value >> 16) & buckets - 1 for name in given for value in (string_hash(name),)}
    return sorted(given, key=spread.__getitem__)
