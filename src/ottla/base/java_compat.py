"""Java behavior that clients depend on: the hash of strings, and the order of hash maps."""

from collections.abc import Iterable


def string_hash(text: str) -> int:
    """Return Java's `String.hashCode()` as an unsigned 32-bit number. Java counts UTF-16 code units."""
    value = 0
    encoded = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(encoded), 2):
        value = (31 * value + (encoded[at] << 8 | encoded[at + 1])) & 0xFFFF_FFFF
    return value


def partition_of(key: str, partition_count: int) -> int:
    """Return the partition of an internal topic that stores a key: the hash's absolute value modulo the count."""
    value = string_hash(key)
    if value > 0x8000_0000:
        value = 0x1_0000_0000 - value
    elif value == 0x8000_0000:  # has no positive counterpart in 32 bits
        value = 0
    return value % partition_count


def in_map_order(names: Iterable[str]) -> list[str]:
    """Return names, given in insertion order, in the iteration order of a Java `HashMap`."""
    given = list(names)
    buckets = 16
    while len(given) > buckets * 3 // 4:
        buckets *= 2
    spread = {name: (value ^ value >> 16) & buckets - 1 for name in given for value in (string_hash(name),)}
    return sorted(given, key=spread.__getitem__)
