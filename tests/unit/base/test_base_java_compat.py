"""Java's hash of strings, and the partitions of keys that follow from it."""

import pytest

from ottla.base.java_compat import partition_of, string_hash


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("polygenelubricants", 1 << 31),
        ("žluťoučký kůň", (1 << 32) - 75767329),
        ("\N{GRINNING FACE}", 1772899),
    ],
)
def test_string_hash_is_javas(text: str, value: int) -> None:
    assert string_hash(text) == value


@pytest.mark.parametrize(
    ("key", "partition"),
    [
        ("gm-g2", 20),
        ("gm-g5", 23),
        ("gm-g9", 27),
        ("gm-g10", 9),
        ("a", 47),
        ("hello", 22),
        ("žluťoučký kůň", 29),
        ("", 0),
        ("polygenelubricants", 0),
    ],
)
def test_partition_of_a_key_is_kafkas(key: str, partition: int) -> None:
    """The first four were found on a real broker; the hash of the last has no positive counterpart in 32 bits."""
    assert partition_of(key, 50) == partition
