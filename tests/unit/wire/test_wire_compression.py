"""Compression codecs: interoperability with other clients, round trips, and the output limit."""

import base64
import gzip
import json
import tracemalloc
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.wire.batches import decode_records
from ottla.wire.compression import CODEC_NAMES, CorruptPayload, DecompressionLimit, compress, decompress

CODECS = (1, 2, 3, 4)
VALUE = b"".join(b"%d: the quick brown fox\n" % (i * i % 977) for i in range(6000))[:100_000]
WRITTEN = json.loads((Path(__file__).parents[2] / "data" / "compressed_batches.json").read_text())


@pytest.mark.parametrize(
    ("client", "codec"), [(client, codec) for client, batches in WRITTEN.items() for codec in batches]
)
def test_batches_of_other_clients_are_decompressed(client: str, codec: str) -> None:
    """Compressed by Java, librdkafka, kafka-python and aiokafka, and stored by Apache Kafka."""
    found = decode_records(base64.b64decode(WRITTEN[client][codec]))
    assert [(record.offset, record.key, record.value) for record in found] == [(0, b"k", VALUE)]


@pytest.mark.parametrize("codec", CODECS, ids=CODEC_NAMES[1:])
@pytest.mark.parametrize("client", ["aiokafka", "kafka"])
@pytest.mark.parametrize("data", [b"a", VALUE, b"z" * 70_000], ids=["a byte", "text", "one letter"])
def test_other_clients_decompress_our_output(client: str, codec: int, data: bytes) -> None:
    codecs, name = pytest.importorskip(f"{client}.codec"), CODEC_NAMES[codec]
    if not getattr(codecs, f"has_{name}")():
        pytest.skip(f"{client} has no {name} here")
    assert bytes(getattr(codecs, f"{name}_decode")(compress(codec, data))) == data


@pytest.mark.parametrize("codec", [0, *CODECS], ids=CODEC_NAMES)
@given(
    data=st.binary(max_size=5000)
    | st.builds(lambda piece, times: piece * times, st.binary(max_size=20), st.integers(0, 20_000))
)
def test_compressed_data_survives_a_round_trip(codec: int, data: bytes) -> None:
    packed = compress(codec, data)
    assert decompress(codec, packed, len(data)) == data
    assert decompress(codec, memoryview(bytearray(packed)), 1 << 22) == data


@pytest.mark.parametrize("codec", CODECS, ids=CODEC_NAMES[1:])
def test_output_over_the_limit_is_rejected(codec: int) -> None:
    packed = compress(codec, VALUE)
    assert decompress(codec, packed, len(VALUE)) == VALUE
    for limit in (len(VALUE) - 1, 1000, 1, 0):
        with pytest.raises(DecompressionLimit):
            decompress(codec, packed, limit)


@pytest.mark.parametrize("codec", CODECS, ids=CODEC_NAMES[1:])
@given(data=st.binary(max_size=300))
def test_arbitrary_bytes_are_decompressed_or_corrupt(codec: int, data: bytes) -> None:
    try:
        assert len(decompress(codec, data, 1 << 16)) <= 1 << 16
    except CorruptPayload:
        return


@pytest.mark.parametrize("codec", CODECS, ids=CODEC_NAMES[1:])
@given(st.data())
def test_truncated_payload_is_corrupt(codec: int, data: st.DataObject) -> None:
    packed = compress(codec, VALUE[:3000])
    with pytest.raises(CorruptPayload):
        decompress(codec, packed[: data.draw(st.integers(17 if codec == 2 else 1, len(packed) - 1))], 1 << 20)


def _bombs() -> dict[str, tuple[int, bytes]]:
    zeros = bytes(64 << 20)
    return {
        "gzip": (1, zlib_gzip(zeros)),
        "gzip in members": (1, gzip.compress(zeros) + gzip.compress(zeros) + b"junk"),
        "snappy": (2, compress(2, zeros)),
        "lz4": (3, compress(3, zeros)),
        "zstd": (4, compress(4, zeros)),
    }


def zlib_gzip(data: bytes) -> bytes:
    maker = zlib.compressobj(9, zlib.DEFLATED, 31)
    return maker.compress(data) + maker.flush()


@pytest.mark.parametrize("name", ["gzip", "gzip in members", "snappy", "lz4", "zstd"])
def test_decompression_bomb_takes_no_more_memory_than_the_limit(name: str) -> None:
    codec, packed = _bombs()[name]
    limit = 1 << 20
    with pytest.raises(CorruptPayload):
        decompress(codec, packed[:100], limit)  # imports the codec before memory is measured
    tracemalloc.start()
    try:
        with pytest.raises(DecompressionLimit):
            decompress(codec, packed, limit)
        assert tracemalloc.get_traced_memory()[1] < 4 * limit + len(packed)
    finally:
        tracemalloc.stop()


def test_unknown_codec_is_rejected() -> None:
    with pytest.raises(ValueError, match="unknown compression codec 5"):
        compress(5, b"")
    with pytest.raises(ValueError, match="unknown compression codec 7"):
        decompress(7, b"", 1)
