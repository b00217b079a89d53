"""Variable-length integers: round trips, limits and malformed input; columns of them are read as single ones are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.wire.column_fields import read_varints
from ottla.wire.errors import MalformedMessage
from ottla.wire.varint import (
    VARINT_BYTES_MAX,
    VARLONG_BYTES_MAX,
    read_unsigned_varint,
    read_varint,
    read_varlong,
    unsigned_varint,
    varint,
    varlong,
)


@given(st.integers(0, 2**32 - 1), st.binary(max_size=3))
def test_unsigned_varint_survives_a_round_trip(value: int, before: bytes) -> None:
    encoded = unsigned_varint(value)
    assert read_unsigned_varint(before + encoded + b"rest", len(before)) == (value, len(before) + len(encoded))


@given(st.integers(-(2**31), 2**31 - 1))
def test_varint_survives_a_round_trip(value: int) -> None:
    encoded = varint(value)
    assert read_varint(memoryview(encoded), 0) == (value, len(encoded))


@given(st.integers(-(2**63), 2**63 - 1))
def test_varlong_survives_a_round_trip(value: int) -> None:
    encoded = varlong(value)
    assert read_varlong(encoded, 0) == (value, len(encoded))


@pytest.mark.parametrize(
    ("encoded", "value"),
    [
        ("00", 0),
        ("7f", 127),
        ("8001", 128),
        ("ac02", 300),
        ("ff7f", 16383),
        ("808001", 16384),
        ("ffff7f", 2097151),
        ("80808001", 2097152),
        ("ffffffff0f", 2**32 - 1),
        ("ffffffffffffffffff01", 2**64 - 1),
    ],
)
def test_encoded_bytes_of_unsigned_varints(encoded: str, value: int) -> None:
    assert unsigned_varint(value).hex() == encoded


@pytest.mark.parametrize(
    ("encoded", "value"),
    [("00", 0), ("01", -1), ("02", 1), ("7e", 63), ("7f", -64), ("8001", 64), ("ffffffff0f", -(2**31))],
)
def test_encoded_bytes_of_varints(encoded: str, value: int) -> None:
    assert varint(value).hex() == encoded
    assert varlong(value).hex() == encoded


def test_encoded_bytes_of_the_limits_of_varlong() -> None:
    assert varlong(-(2**63)).hex() == "ffffffffffffffffff01"
    assert varlong(2**63 - 1).hex() == "feffffffffffffffff01"


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (read_unsigned_varint, "808080808000"),
        (read_varint, "ffffffffff01"),
        (read_varlong, "ff" * 11),
        (read_unsigned_varint, ""),
        (read_unsigned_varint, "80"),
        (read_varlong, "ffff"),
    ],
)
def test_truncated_or_too_long_varint_is_malformed(read: object, text: str) -> None:
    assert callable(read)
    with pytest.raises(MalformedMessage):
        read(bytes.fromhex(text), 0)


def test_overflowing_bits_are_dropped() -> None:
    """As in Kafka, which only checks the length of a varint."""
    assert read_unsigned_varint(bytes.fromhex("8180808070"), 0) == (1, 5)
    assert read_varlong(bytes.fromhex("82" + "80" * 8 + "7e"), 0) == (1, 10)


@pytest.mark.parametrize(
    ("write", "value"),
    [(unsigned_varint, -1), (unsigned_varint, 2**64), (varint, 2**31), (varint, -(2**31) - 1), (varlong, 2**63)],
)
def test_numbers_out_of_range_are_rejected(write: object, value: int) -> None:
    assert callable(write)
    with pytest.raises(ValueError, match=r"is not a"):
        write(value)


@given(
    st.lists(st.lists(st.integers(128, 255), max_size=11).map(bytes), min_size=1, max_size=30),
    st.sampled_from([(read_varint, VARINT_BYTES_MAX), (read_varlong, VARLONG_BYTES_MAX)]),
)
def test_columns_of_numbers_are_read_as_single_numbers(prefixes, reader) -> None:
    """Including bits that overflow, and numbers that are too long."""
    read_one, bytes_max = reader
    data, positions = bytearray(), []
    for index, prefix in enumerate(prefixes):
        positions.append(len(data))
        data += prefix + bytes((index * 37 % 128,))
    octets, at = np.frombuffer(data, np.uint8), np.array(positions)
    if max(map(len, prefixes)) >= bytes_max:
        with pytest.raises(MalformedMessage):
            read_varints(octets, at, bytes_max)
        return
    values, after = read_varints(octets, at, bytes_max)
    assert list(zip(values.tolist(), after.tolist(), strict=True)) == [read_one(data, each) for each in positions]
