"""Fetch answers as Arrow batches: the schema to the letter, sizes that are bounded, damage that is told."""

import pickle

import pytest

from ottla.spark import arrow_batches
from ottla.spark.errors import SourceError
from tests.spark.readers import batch_reader, read, source, values


def batches_of(options):
    reader = batch_reader(options)
    return [batch for partition in reader.partitions() for batch in pickle.loads(pickle.dumps(reader)).read(partition)]


@pytest.mark.parametrize("headers", ["true", "false"])
def test_the_schema_is_what_spark_makes_of_its_own(make_topic, produce, read_options, headers):
    from pyspark.sql.pandas.types import to_arrow_schema

    topic = make_topic()
    produce(topic, [b"a", None], headers=[("h", b"1")])
    produce(topic, [b"b"])
    options = read_options(topic, includeHeaders=headers)
    expected = to_arrow_schema(source(options).schema(), timezone="UTC")
    for batch in batches_of(options):
        batch.validate(full=True)
        assert batch.schema.equals(expected, check_metadata=True)


def test_compressed_answers_are_decoded_in_pieces(make_topic, produce, read_options, monkeypatch):
    """Records that are a hundred times larger than they came do not fill the memory."""
    topic = make_topic()
    wanted = [b"%06d" % index * 1000 for index in range(400)]
    produce(topic, wanted, codec="zstd")
    seen = []
    decode = arrow_batches.decode_fetched

    def watched(*arguments, **more):
        columns = decode(*arguments, **more)
        seen.append(len(columns.data))
        return columns

    monkeypatch.setattr(arrow_batches, "decode_fetched", watched)
    monkeypatch.setattr(arrow_batches, "DECODED_BYTES_MAX", 100_000)
    assert values(read(read_options(topic))) == wanted
    assert max(seen) <= 200_000
    assert len(seen) >= 12


def test_batches_have_a_size_that_suits_spark(make_topic, produce, read_options):
    topic = make_topic()
    produce(topic, [bytes(10_000)] * 500)
    sizes = [(batch.num_rows, batch.nbytes) for batch in batches_of(read_options(topic))]
    assert sum(rows for rows, _ in sizes) == 500
    assert max(size for _, size in sizes) <= arrow_batches.BATCH_BYTES_MAX * 1.1
    assert len(sizes) <= 10


def test_damage_is_told_with_its_place(make_topic, produce, read_options, monkeypatch):
    topic = make_topic()
    produce(topic, [b"a" * 100])
    decode = arrow_batches.decode_fetched

    def spoilt(partitions, **more):
        bad = bytearray(partitions[0].records)
        bad[-10] ^= 1      # inside the value
        return decode([partitions[0]._replace(records=bytes(bad))], **more)

    monkeypatch.setattr(arrow_batches, "decode_fetched", spoilt)
    with pytest.raises(SourceError, match=f"{topic}-0 is damaged between offsets 0 and 1: .*checksum"):
        read(read_options(topic))
    read(read_options(topic, kafka__check__crcs="false"))
