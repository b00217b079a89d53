"""Record batches of a coordinator shard: built by Ottla, read from Ottla and Kafka."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.runtime.coordinator_records import BatchReader, batch_bytes_max, build, split
from ottla.wire.batches import Record, build_batch, decode_records, has_valid_checksum
from ottla.wire.errors import MalformedMessage

NOW = 1_700_000_000_000
COMMIT, ABORT = b"\0\0\0\1", b"\0\0\0\0"

pairs = st.lists(st.tuples(st.binary(max_size=300), st.none() | st.binary(max_size=300)), min_size=1, max_size=80)


def read(data: bytes, reader: BatchReader | None = None) -> list[tuple[int, bytes | None, bytes | None]]:
    return [record for _, records in (reader or BatchReader()).read(data) for record in records]


@given(records=pairs, codec=st.sampled_from((0, 0, 0, 1, 4)))
def test_built_batch_is_valid_and_read_back(records, codec):
    batch = build(records, NOW, codec)
    assert has_valid_checksum(batch)
    assert [(record.key, record.value, record.timestamp) for record in decode_records(batch)] == [
        (*pair, NOW) for pair in records
    ]
    assert read(bytes(batch)) == [(at, *pair) for at, pair in enumerate(records)]
    assert codec or len(batch) <= batch_bytes_max(records)


@given(records=pairs, bytes_max=st.integers(100, 2000))
def test_split_parts_are_in_order_and_fit_in_a_batch(records, bytes_max):
    parts = list(split(records, bytes_max))
    assert [pair for part in parts for pair in part] == records
    assert all(batch_bytes_max(part) <= bytes_max or len(part) == 1 for part in parts)


def test_records_of_every_form_are_read():
    """This includes forms that no coordinator writes: headers, no key, three-byte lengths, different timestamps."""
    records = [
        Record(0, NOW, None, b"no key"),
        Record(1, NOW + 900, b"k", b"v", (("header", b"x"),)),
        Record(2, NOW - 70_000, b"k", b"x" * 20_000),
    ]
    batch = bytes(build_batch(records, base_offset=40))
    assert read(batch) == [(40, None, b"no key"), (41, b"k", b"v"), (42, b"k", b"x" * 20_000)]


def test_incomplete_batch_at_the_end_is_not_read():
    first = bytes(build_batch([Record(0, NOW, b"a", b"1")], base_offset=7))
    second = bytes(build_batch([Record(0, NOW, b"b", None), Record(0, NOW, b"c", b"")], base_offset=8))
    found = list(BatchReader().read(first + second + first[:-1]))
    assert found == [(8, [(7, b"a", b"1")]), (10, [(8, b"b", None), (9, b"c", b"")])]


def test_malformed_batch_raises_an_error():
    batch = bytearray(build_batch([Record(0, NOW, b"a", b"1"), Record(0, NOW, b"b", b"2")]))
    batch[61] = 120
    with pytest.raises(MalformedMessage):
        read(bytes(batch))


def transactional(offset: int, producer_id: int, key: bytes) -> bytes:
    return bytes(
        build_batch(
            [Record(0, NOW, key, b"v")],
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
        )
    )


def marker(offset: int, producer_id: int, key: bytes) -> bytes:
    return bytes(
        build_batch(
            [Record(0, NOW, key, b"\0" * 6)],
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=0,
            is_transactional=True,
            is_control=True,
        )
    )


def test_records_of_a_transaction_are_returned_when_it_is_committed():
    """As Kafka writes them to a group's offsets: two concurrent transactions, one aborted, and an open one."""
    reader = BatchReader()
    log = (
        transactional(0, 5, b"a"),
        transactional(1, 6, b"b"),
        marker(2, 5, COMMIT),
        marker(3, 6, ABORT),
        transactional(4, 5, b"c"),
    )
    assert read(b"".join(log), reader) == [(0, b"a", b"v")]
    assert reader.open_transactions == 1
    assert read(marker(5, 5, COMMIT), reader) == [(4, b"c", b"v")]
    assert reader.open_transactions == 0
