"""Batches are rejected for the same errors as in Apache Kafka, and stored with the same headers."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from ottla.base.ids import Uuid
from ottla.io.disk import RealDisk
from ottla.log.config import Compression, LogConfig, TimestampType
from ottla.log.partition_log import PartitionLog
from ottla.wire.batch_validation import OUTPUT_MAX, BatchRejected, BatchRules, validate_batch
from ottla.wire.batches import BatchHeader, decode_records, has_valid_checksum, read_header
from ottla.wire.compression import decompress
from ottla.wire.varint import varint
from tests.unit.wire.batch_catalog import (
    FRAMING,
    HEADERS,
    RECORDS,
    STORED_DIFFERENTLY,
    TIMES,
    Case,
    batch,
    good,
    has_log_start,
    has_message,
    several,
)
from tests.unit.wire.batch_catalog_compressed import COMPRESSED, CONVERTED, packed

NOW = 1_700_000_000_000
KEPT = (*FRAMING, *HEADERS, *TIMES, *RECORDS, *COMPRESSED)


def log_config(configs: Mapping[str, str]) -> LogConfig:
    known = LogConfig()
    return LogConfig(
        segment_bytes=int(configs.get("segment.bytes", known.segment_bytes)),
        max_message_bytes=int(configs.get("max.message.bytes", known.max_message_bytes)),
        compacted="compact" in configs.get("cleanup.policy", "delete"),
        timestamp_type=TimestampType.APPEND
        if configs.get("message.timestamp.type") == "LogAppendTime"
        else TimestampType.CREATE,
        timestamp_before_max_ms=int(configs.get("message.timestamp.before.max.ms", known.timestamp_before_max_ms)),
        timestamp_after_max_ms=int(configs.get("message.timestamp.after.max.ms", known.timestamp_after_max_ms)),
        compression=Compression[configs.get("compression.type", "producer").upper()],
    )


def append(case: Case, directory: Path, sent: bytes) -> tuple[object, bytes]:
    """Return the outcome of an append in the form of the catalog, and the bytes stored."""
    log = PartitionLog.open(
        RealDisk(), str(directory), config=log_config(case.configs), topic_id=Uuid(bytes(16)), now_ms=NOW, clean=True
    )
    try:
        assert log.append(memoryview(bytearray(sent)), leader_epoch=3, now_ms=NOW + 7) == (
            0,
            NOW + 7 if "message.timestamp.type" in case.configs else -1,
        )
        outcome: object = (0, (), False, True)
    except BatchRejected as rejected:
        assert log.log_end_offset == 0
        indexes = tuple(error.batch_index for error in rejected.record_errors)
        outcome = (rejected.code, indexes, rejected.message is not None, rejected.has_log_start)
    return outcome, RealDisk().read(log.segments[0].log_path)


@pytest.mark.parametrize("case", [*KEPT, *CONVERTED], ids=lambda case: case.name)
def test_catalog_cases_have_the_recorded_outcome(case: Case, tmp_path: Path) -> None:
    outcome, stored = append(case, tmp_path, case.batch(NOW))
    assert outcome == (case.code, case.record_errors, has_message(case), has_log_start(case))
    assert bool(stored) == (case.code == 0)


def stored_header(case: Case, sent: BatchHeader) -> BatchHeader:
    attributes, max_timestamp = sent.attributes, sent.max_timestamp
    if case.name in STORED_DIFFERENTLY:
        attributes, max_timestamp = STORED_DIFFERENTLY[case.name][0], STORED_DIFFERENTLY[case.name][1](NOW)
    if "message.timestamp.type" in case.configs:
        attributes, max_timestamp = attributes | 8, NOW + 7
    return sent._replace(base_offset=0, leader_epoch=3, attributes=attributes, max_timestamp=max_timestamp)


@pytest.mark.parametrize("case", [case for case in KEPT if case.code == 0], ids=lambda case: case.name)
def test_accepted_batch_is_stored_unchanged_except_for_its_header(case: Case, tmp_path: Path) -> None:
    sent = case.batch(NOW)
    _, stored = append(case, tmp_path, sent)
    header = read_header(stored)
    assert header == stored_header(case, read_header(sent))._replace(crc=header.crc)
    assert has_valid_checksum(stored)
    assert stored[61:] == sent[61 : header.size]


@pytest.mark.parametrize("case", [case for case in CONVERTED if case.code == 0], ids=lambda case: case.name)
def test_recompressed_batch_keeps_its_records(case: Case, tmp_path: Path) -> None:
    sent = case.batch(NOW)
    _, stored = append(case, tmp_path, sent)
    header, codec = read_header(stored), log_config(case.configs).compression.value
    assert header.codec == codec
    assert has_valid_checksum(stored)
    before, after = decode_records(sent), decode_records(stored)
    assert [record.offset for record in after] == list(range(len(before)))
    assert [(r.key, r.value, r.headers) for r in after] == [(r.key, r.value, r.headers) for r in before]
    if "message.timestamp.type" in case.configs:
        assert {record.timestamp for record in after} == {NOW + 7}
    else:
        assert [record.timestamp for record in after] == [record.timestamp for record in before]
        assert header.max_timestamp == max(record.timestamp for record in after)


@pytest.mark.parametrize("count", [1, 2, 30, 64, 65, 100, 500, 2000])
@pytest.mark.parametrize("codec", [0, 4])
def test_one_invalid_record_among_many_is_found(count: int, codec: int) -> None:
    """For each of the functions that read batches of these sizes."""
    plain = several(count, value=b"\x10abcdefgh")
    validate_batch(memoryview(bytearray(packed(NOW, codec, plain, count=count))), BatchRules(), NOW)
    for missing in (-1, 1):
        with pytest.raises(BatchRejected):
            validate_batch(memoryview(bytearray(packed(NOW, codec, plain, count=count + missing))), BatchRules(), NOW)
    where = plain.index(b"abcdefgh", len(plain) // 2) if count > 2 else plain.index(b"abcdefgh")
    torn = bytearray(plain)
    torn[where - 1] ^= 0x02  # the length of a value
    with pytest.raises(BatchRejected):
        validate_batch(memoryview(bytearray(packed(NOW, codec, bytes(torn), count=count))), BatchRules(), NOW)


def test_record_errors_contain_the_index_in_a_large_batch() -> None:
    keyed = b"".join(b"\x14\0\0\0\2k\x06abc\0" for _ in range(300))
    mixed = keyed[: 11 * 150] + b"\x12\0\0\0\1\x06abc\0" + keyed[11 * 151 :]
    rules = BatchRules(compacted=True)
    assert validate_batch(memoryview(bytearray(batch(NOW, keyed, count=300))), rules, NOW).record_count == 300
    with pytest.raises(BatchRejected) as rejected:
        validate_batch(memoryview(bytearray(batch(NOW, mixed, count=300))), rules, NOW)
    assert [error.batch_index for error in rejected.value.record_errors] == [150]


def test_decompression_bomb_is_rejected() -> None:
    import zlib

    maker = zlib.compressobj(9, zlib.DEFLATED, 31)
    chunk = bytes(1 << 20)
    bomb = b"".join(maker.compress(chunk) for _ in range((OUTPUT_MAX >> 20) + 1)) + maker.flush()
    with pytest.raises(BatchRejected) as rejected:
        validate_batch(memoryview(bytearray(batch(NOW, bomb, attributes=1))), BatchRules(), NOW)
    assert rejected.value.code == 10


def test_batch_with_too_many_records_is_rejected() -> None:
    """Each would become an object; a few compressed kilobytes may contain millions."""
    tiny = b"\x0c\0\0\0\1\1\0"
    with pytest.raises(BatchRejected) as rejected:
        validate_batch(memoryview(bytearray(packed(NOW, 4, tiny * 1_000_001, count=1_000_001))), BatchRules(), NOW)
    assert rejected.value.code == 10


def test_record_errors_are_limited() -> None:
    late = batch(NOW + 10_000_000, b"\x0c\0\0\0\1\1\0" * 1001, count=1001)
    with pytest.raises(BatchRejected) as rejected:
        validate_batch(memoryview(bytearray(late)), BatchRules(), NOW)
    assert (rejected.value.code, len(rejected.value.record_errors)) == (32, 1000)
    assert str(rejected.value.message).startswith("1001 of 1001 records are invalid")


def test_record_with_too_many_headers_is_rejected() -> None:
    for count, code in ((100_000, None), (100_001, 87)):
        body = b"\0\0\0\1\1" + varint(count) + b"\0\1" * count
        record = memoryview(bytearray(batch(NOW, varint(len(body)) + body)))
        if code is None:
            assert validate_batch(record, BatchRules(), NOW).record_count == 1
        else:
            with pytest.raises(BatchRejected) as rejected:
                validate_batch(record, BatchRules(), NOW)
            assert rejected.value.code == code


def test_buffer_may_be_reused_after_an_append(tmp_path: Path) -> None:
    log = PartitionLog.open(
        RealDisk(), str(tmp_path), config=LogConfig(), topic_id=Uuid(bytes(16)), now_ms=NOW, clean=True
    )
    buffer = bytearray(good(NOW, 2))
    log.append(memoryview(buffer), leader_epoch=0, now_ms=NOW)
    buffer[:] = bytes(len(buffer))
    assert [r.key for r in decode_records(RealDisk().read(log.segments[0].log_path))] == [b"k0", b"k1"]


def test_recompression_uses_the_configured_level() -> None:
    payload = several(200)
    sizes = [
        validate_batch(
            memoryview(bytearray(batch(NOW, payload, count=200))), BatchRules(target_codec=1, target_level=level), NOW
        ).size
        for level in (1, 9)
    ]
    assert sizes[0] > sizes[1]
    found = validate_batch(
        memoryview(bytearray(batch(NOW, payload, count=200))), BatchRules(target_codec=1), NOW
    ).replacement
    assert found is not None
    assert decompress(1, bytes(found[61:]), 1 << 20) == payload
