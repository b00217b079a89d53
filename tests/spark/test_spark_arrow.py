"""Fetch responses as Arrow batches: exact schema, bounded sizes, and errors for corrupt batches."""

import pickle

import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from ottla.client.fetcher import CompletedFetch
from ottla.client.records import TopicPartition
from ottla.spark import arrow_batches
from ottla.spark.data_source import record_schema
from ottla.spark.errors import SourceError
from ottla.spark.ranges import OffsetRange
from ottla.wire.batches import Record, build_batch
from ottla.wire.column_decoding import FetchedBatches
from tests.spark.readers import batch_reader, read, source, values


def batches_of(options):
    reader = batch_reader(options)
    return [batch for partition in reader.partitions() for batch in pickle.loads(pickle.dumps(reader)).read(partition)]


@pytest.mark.parametrize("headers", ["true", "false"])
def test_schema_matches_spark(make_topic, produce, read_options, headers):
    topic = make_topic()
    produce(topic, [b"a", None], headers=[("h", b"1")])
    produce(topic, [b"b"])
    options = read_options(topic, includeHeaders=headers)
    expected = to_arrow_schema(source(options).schema(), timezone="UTC")
    for batch in batches_of(options):
        batch.validate(full=True)
        assert batch.schema.equals(expected, check_metadata=True)


def test_compressed_responses_are_decoded_in_pieces(make_topic, produce, read_options, monkeypatch):
    """Records that are a hundred times larger than their compressed batches do not fill the memory."""
    topic = make_topic()
    requested = [b"%06d" % index * 1000 for index in range(400)]
    produce(topic, requested, codec="zstd")
    seen = []
    decode = FetchedBatches.decode

    def watched(*arguments):
        columns = decode(*arguments)
        seen.append(len(columns.data))
        return columns

    monkeypatch.setattr(FetchedBatches, "decode", watched)
    monkeypatch.setattr(arrow_batches, "DECODED_BYTES_MAX", 100_000)
    assert values(read(read_options(topic))) == requested
    assert max(seen) <= 200_000
    assert len(seen) >= 12


@pytest.mark.parametrize("codec", [0, 4])
def test_responses_with_aborted_transactions_are_decoded_in_pieces(monkeypatch, codec):
    """Each requested batch is a piece.

    Producer 7 aborts twice and commits between and after; producer 8 always commits.
    """
    scenario = [
        (7, "a"),
        (8, "b"),
        (7, "a"),
        (7, "abort"),
        (7, "b"),
        (7, "commit"),
        (7, "a"),
        (8, "b"),
        (8, "commit"),
        (7, "abort"),
        (8, "b"),
        (7, "b"),
        (7, "commit"),
        (8, "commit"),
    ]
    records = bytearray()
    for offset, (producer, word) in enumerate(scenario):
        is_marker = word in ("abort", "commit")
        key = {"abort": b"\0\0\0\0", "commit": b"\0\0\0\1"}.get(word)
        records += build_batch(
            [Record(offset, 0, key, b"%d" % offset)],
            base_offset=offset,
            codec=0 if is_marker else codec,
            producer_id=producer,
            producer_epoch=0,
            base_sequence=0,
            is_control=is_marker,
            is_transactional=True,
        )
    fetched = CompletedFetch(TopicPartition("t", 0), 0, 0, bytes(records), ((7, 0), (7, 6)))
    schema = to_arrow_schema(record_schema(include_headers=False), timezone="UTC")
    pieces = []
    decode = FetchedBatches.decode
    monkeypatch.setattr(FetchedBatches, "decode", lambda *arguments: pieces.append(arguments) or decode(*arguments))
    requested = [offset for offset, (_, word) in enumerate(scenario) if word == "b"]
    for bytes_max, count in ((1, len(requested)), (1 << 20, 1)):
        monkeypatch.setattr(arrow_batches, "DECODED_BYTES_MAX", bytes_max)
        pieces.clear()
        decoder = arrow_batches.ArrowDecoder(
            schema, OffsetRange("t", 0, 0, len(scenario)), read_committed=True, check_crcs=True
        )
        found = [
            int(value)
            for columns in decoder.columns_of(fetched)
            for batch in decoder.batches_of(columns)
            for value in batch.column("value").to_pylist()
        ]
        assert found == requested
        assert len(pieces) == count


def test_batch_size_is_bounded(make_topic, produce, read_options):
    topic = make_topic()
    produce(topic, [bytes(10_000)] * 500)
    sizes = [(batch.num_rows, batch.nbytes) for batch in batches_of(read_options(topic))]
    assert sum(rows for rows, _ in sizes) == 500
    assert max(size for _, size in sizes) <= arrow_batches.BATCH_BYTES_MAX * 1.1
    assert len(sizes) <= 10


def test_corrupt_batch_error_names_partition_and_offsets(make_topic, produce, read_options, monkeypatch):
    topic = make_topic()
    produce(topic, [b"a" * 100])
    list_batches = FetchedBatches.__init__

    def spoilt(batches, partitions, **more):
        bad = bytearray(partitions[0].records)
        bad[-10] ^= 1  # within the value
        list_batches(batches, [partitions[0]._replace(records=bytes(bad))], **more)

    monkeypatch.setattr(FetchedBatches, "__init__", spoilt)
    with pytest.raises(SourceError, match=f"{topic}-0 is corrupt between offsets 0 and 1: .*checksum"):
        read(read_options(topic))
    read(read_options(topic, kafka__check__crcs="false"))
