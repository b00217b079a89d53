"""Where Java's hash puts a key."""

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
def test_the_hash_is_javas(text: str, value: int) -> None:
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
def test_a_key_lives_where_kafka_keeps_it(key: str, partition: int) -> None:
    """The first four were found in partitions of a broker; the last has the hash that no 32 bits can negate."""
    assert partition_of(key, 50) == partition
