"""Validation of a batch that a client sent, before it is assigned offsets: what Apache Kafka checks, and no more.

The expected results were recorded from a real broker; they are in the tests' catalog of batches. The order of the
checks matters: if a batch has several errors the client gets the first.
"""

from collections.abc import Iterable
from itertools import islice
from struct import Struct
from typing import NamedTuple, NoReturn

from ottla.base.errors import ErrorCode
from ottla.wire.batches import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    CONTROL_BIT,
    HEADER,
    LENGTH_AT,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    MAGIC_AT,
    NO_TIMESTAMP,
    PRODUCER_EPOCH_AT,
    RECORDS_AT,
    TRANSACTIONAL_BIT,
    build_batch,
    decode_payload,
    read_header,
)
from ottla.wire.crc import crc32c
from ottla.wire.errors import BatchRejected, MalformedMessage, RecordError
from ottla.wire.record_columns import collect_stats_large
from ottla.wire.record_scan import (
    RECORD_BYTES_MIN,
    RecordLengthTooLong,
    RecordStats,
    ScannedRecord,
    collect_stats,
    collect_stats_fast,
    scan_records,
)

__all__ = [
    "LOOP_BUDGET",
    "PROCESS_BUDGET",
    "WORKER_BUDGET",
    "BatchRejected",
    "BatchRules",
    "BudgetExceeded",
    "RecordError",
    "ValidatedBatch",
    "ValidationBudget",
    "validate_batch",
]

LONG_MAX = (1 << 63) - 1
LONG_MIN = -(1 << 63)
CODEC_MAX = 4
LENGTH_MIN = 14
"""Shortest length of a batch of any format, as Kafka checks it."""
LENGTH_MAX = (1 << 31) - 1 - LENGTH_OVERHEAD
"""A greater length overflows in Kafka's own arithmetic."""
SMALL_MAX = 20
"""Up to so many records Python is faster than NumPy."""
OUTPUT_MAX = 128 << 20
"""Upper limit of a decompressed batch. Kafka has none; clients limit batches before compression, to some megabytes."""
RECORDS_MAX = 1_000_000
"""Upper limit of the records of a batch. A record takes at least seven bytes, but much less when compressed."""
RECORD_ERRORS_MAX = 1000
"""Records for which the client gets a message; the others are only counted."""

_new_tuple = tuple.__new__
"""Skips `NamedTuple.__new__`, a Python function that takes as long as creating the tuple."""
_i32 = Struct(">i").unpack_from


class ValidationBudget(NamedTuple):
    """Limits of the work that validating one batch may take."""

    output_bytes_max: int
    """Bytes of the decompressed batch."""
    scanned_records_max: int
    """Records that are read one by one."""


LOOP_BUDGET = ValidationBudget(128 << 10, 1_000)
WORKER_BUDGET = ValidationBudget(4 << 20, 100_000)
"""Several workers run at a time."""
PROCESS_BUDGET = ValidationBudget(OUTPUT_MAX, RECORDS_MAX)


class BudgetExceeded(Exception):
    """Validation needs more time or memory than the budget allows. Not an error of the client: retry with a larger
    budget."""


class BatchRules(NamedTuple):
    """Requirements of a topic's configuration for batches."""

    max_message_bytes: int = 1_048_588
    compacted: bool = False
    log_append_time: bool = False
    timestamp_before_max_ms: int = LONG_MAX
    timestamp_after_max_ms: int = 3_600_000
    target_codec: int | None = None
    """The topic's `compression.type`; None (`producer`) stores batches as they were sent."""
    target_level: int | None = None


class ValidatedBatch(NamedTuple):
    """The result of a successful validation."""

    size: int
    record_count: int
    max_timestamp: int
    attributes: int
    is_header_correct: bool
    """Whether the maximum timestamp and the timestamp type in the header need no change."""
    producer_id: int
    producer_epoch: int
    base_sequence: int
    replacement: bytearray | None
    """The batch to append instead, recompressed with the topic's codec."""


def validate_batch(
    records: memoryview, rules: BatchRules, now_ms: int, budget: ValidationBudget = PROCESS_BUDGET
) -> ValidatedBatch:
    """Validate the records that a client sent for one partition.

    Raises BatchRejected if they are not one valid batch, BudgetExceeded if the check would exceed the budget. Longer
    than 50 lines on purpose: every Produce passes through it, and another split would add 0.15 µs to 1.4.
    """
    header = _check_header(records, rules)
    _, length, _, _, _, attributes, _, base_timestamp, max_timestamp, producer_id, producer_epoch, sequence, count = (
        header
    )
    size = length + LENGTH_OVERHEAD
    codec = attributes & CODEC_MASK
    target = codec if rules.target_codec is None else rules.target_codec
    data: bytes | memoryview = records[RECORDS_AT:size]
    if codec:
        data = _decompress(codec, bytes(data), budget)
    elif count <= SMALL_MAX:
        data = bytes(data)  # Python reads it faster than a memoryview
    if count > RECORDS_MAX:
        _reject_count(count, len(data))
    stays_compressed = codec != 0 and codec == target
    stats = collect_stats_fast(data, count, check_offsets=stays_compressed) if count <= SMALL_MAX else None
    if stats is None:
        same_timestamp = base_timestamp == max_timestamp
        stats = _collect_stats(
            data, count, codec, budget, stays_compressed=stays_compressed, same_timestamp=same_timestamp
        )
    lowest, highest, has_null_key, has_consecutive_offsets = stats
    claims_append_time = attributes & LOG_APPEND_TIME_BIT
    if claims_append_time:
        lowest = highest = max_timestamp
    else:
        lowest += base_timestamp
        highest += base_timestamp
    if (
        (has_null_key and rules.compacted)
        or claims_append_time
        or (
            not rules.log_append_time
            and (
                lowest < now_ms - rules.timestamp_before_max_ms
                or highest > now_ms + rules.timestamp_after_max_ms
                or lowest < LONG_MIN
                or highest > LONG_MAX
            )
        )
    ):
        highest = _check_records(data, header, rules, now_ms, budget, lowest, highest)
    if highest < NO_TIMESTAMP:
        highest = NO_TIMESTAMP
    if codec != target:
        if count > budget.scanned_records_max:
            raise BudgetExceeded
        return _recompress(records, bytes(data), rules, target, highest)
    if stays_compressed and not has_consecutive_offsets:
        raise BatchRejected(
            ErrorCode.UNKNOWN_SERVER_ERROR, "the offset deltas of a compressed batch are not 0, 1, 2, ..."
        )
    is_correct = highest == max_timestamp and not claims_append_time
    return _new_tuple(
        ValidatedBatch,
        (size, count, highest, attributes, is_correct, producer_id, producer_epoch, sequence, None),
    )


def _check_header(records: memoryview, rules: BatchRules) -> tuple[int, ...]:
    """Return the header's fields; raise BatchRejected unless the records are one complete batch with a valid header."""
    end = len(records)
    if end < RECORDS_AT:
        check_framing(records)
        _corrupt(f"the batch has {end} bytes; its header takes {RECORDS_AT}")
    header = HEADER.unpack_from(records)
    base_offset, length, _, magic, crc, attributes, last_offset_delta, _, _, producer_id, _, base_sequence, count = (
        header
    )
    size = length + LENGTH_OVERHEAD
    if size != end or magic != MAGIC:
        check_framing(records)
    if attributes & TRANSACTIONAL_BIT:
        raise BatchRejected(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            "transactional batch without a transactional id",
            has_log_start=False,
        )
    if base_offset != 0:
        _invalid(f"base offset of a client's batch must be 0, got {base_offset}")
    if size > rules.max_message_bytes:
        _too_large(size, rules)
    if size < RECORDS_AT or crc32c(records[ATTRIBUTES_AT:size]) != crc:
        _corrupt("wrong checksum")
    if attributes & CODEC_MASK > CODEC_MAX:
        raise BatchRejected(ErrorCode.UNKNOWN_SERVER_ERROR, f"unknown compression codec {attributes & CODEC_MASK}")
    if last_offset_delta + 1 != count or count <= 0:
        _invalid(f"record count {count} does not match the last offset delta {last_offset_delta}")
    if attributes & CONTROL_BIT:
        _invalid("clients may not write control batches")
    if producer_id >= 0 and base_sequence < 0:
        _invalid(f"producer {producer_id} sent the base sequence {base_sequence}")
    return header


def check_framing(records: memoryview) -> None:
    """Raise BatchRejected unless there is one complete batch of format 2. A few bytes after it that are no batch are
    ignored."""
    size = _next_batch(records, 0)
    if size is None:
        raise BatchRejected(ErrorCode.INVALID_RECORD, "no complete batch", has_log_start=False)
    if records[MAGIC_AT] != MAGIC:
        reason = f"unsupported batch format {records[MAGIC_AT]}; only {MAGIC} is supported"
        raise BatchRejected(ErrorCode.INVALID_RECORD, reason, has_log_start=False)
    if _next_batch(records, size) is not None:
        raise BatchRejected(ErrorCode.INVALID_RECORD, "more than one batch", has_log_start=False)
    if size < PRODUCER_EPOCH_AT:
        reason = f"batch of {size} bytes is too short"
        raise BatchRejected(ErrorCode.UNKNOWN_SERVER_ERROR, reason, has_log_start=False)


def _next_batch(records: memoryview, position: int) -> int | None:
    """Return the size of the batch at a position; None if it is not complete."""
    left = len(records) - position
    if left < LENGTH_OVERHEAD:
        return None
    length: int = _i32(records, position + LENGTH_AT)[0]
    if length < LENGTH_MIN:
        _bad_framing(f"invalid batch length {length}; the minimum is {LENGTH_MIN}", position)
    if left <= MAGIC_AT:
        return None
    magic = records[position + MAGIC_AT]
    if magic > MAGIC:
        _bad_framing(f"unknown batch format {magic}", position)
    if length > LENGTH_MAX:
        reason = f"invalid batch length {length}; the maximum is {LENGTH_MAX}"
        raise BatchRejected(ErrorCode.UNKNOWN_SERVER_ERROR, reason, has_log_start=False)
    return length + LENGTH_OVERHEAD if left >= length + LENGTH_OVERHEAD else None


def _decompress(codec: int, payload: bytes, budget: ValidationBudget) -> bytes | memoryview:
    from ottla.wire.compression import CorruptPayload, DecompressionLimit, decompress_in_place

    try:
        return decompress_in_place(codec, payload, budget.output_bytes_max)
    except DecompressionLimit:
        if budget is not PROCESS_BUDGET:
            raise BudgetExceeded from None
        reason = f"the decompressed records exceed {OUTPUT_MAX} bytes"
        raise BatchRejected(ErrorCode.MESSAGE_TOO_LARGE, reason, has_log_start=False) from None
    except CorruptPayload as error:
        raise BatchRejected(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from None


def _collect_stats(
    data: bytes | memoryview,
    count: int,
    codec: int,
    budget: ValidationBudget,
    *,
    stays_compressed: bool,
    same_timestamp: bool,
) -> RecordStats:
    """Return the stats of many records, or of records that `collect_stats_fast` does not read."""
    if count > SMALL_MAX:
        stats = collect_stats_large(data, count, check_offsets=stays_compressed, same_timestamp=same_timestamp)
        if stats is not None:
            return stats
        if count > budget.scanned_records_max:
            raise BudgetExceeded
        data = bytes(data)
        stats = collect_stats_fast(data, count, check_offsets=stays_compressed)
        if stats is not None:
            return stats
    try:
        return collect_stats(data, count, check_lengths=not stays_compressed)
    except MalformedMessage as error:
        is_too_long = isinstance(error, RecordLengthTooLong) and codec == 0
        code = ErrorCode.UNKNOWN_SERVER_ERROR if is_too_long else ErrorCode.INVALID_RECORD
        raise BatchRejected(code, str(error)) from None


def _check_records(
    data: bytes | memoryview,
    header: tuple[int, ...],
    rules: BatchRules,
    now_ms: int,
    budget: ValidationBudget,
    lowest: int,
    highest: int,
) -> int:
    """Check keys and timestamps record by record; return the highest timestamp."""
    _, _, _, _, _, attributes, _, base_timestamp, max_timestamp, _, _, _, count = header
    append_time = max_timestamp if attributes & LOG_APPEND_TIME_BIT else None
    records = scan_records(data, count, check_lengths=False)
    latest_ms = now_ms + rules.timestamp_after_max_ms
    if lowest > latest_ms >= 0 and highest <= LONG_MAX and not rules.compacted and append_time is None:
        # All records are rejected. Reading those that the client gets a message for is enough.
        unread = max(count - RECORD_ERRORS_MAX, 0)
        _check_each(islice(records, RECORD_ERRORS_MAX), rules, now_ms, base_timestamp, None, unread=unread)
    if count > budget.scanned_records_max:
        raise BudgetExceeded
    return _check_each(records, rules, now_ms, base_timestamp, append_time)


def _check_each(
    records: Iterable[ScannedRecord],
    rules: BatchRules,
    now_ms: int,
    base_timestamp: int,
    append_time: int | None,
    *,
    unread: int = 0,
) -> int:
    """Check keys and timestamps; return the highest timestamp. `unread` more records are known to be rejected."""
    errors: list[RecordError] = []
    has_bad_timestamp = False
    highest = LONG_MIN
    count = rejected = 0
    for index, (timestamp_delta, _, _, key_size, _, _, _) in enumerate(records):
        count += 1
        timestamp = _int64(base_timestamp + timestamp_delta) if append_time is None else append_time
        highest = max(highest, timestamp)
        why = None
        if rules.compacted and key_size < 0:
            why = "record has no key, but the topic is compacted"
        elif rules.log_append_time or timestamp == NO_TIMESTAMP:
            if append_time is not None:
                has_bad_timestamp = True
                why = "producers may not set the timestamp type LogAppendTime"
        elif _is_out_of_range(timestamp, rules, now_ms):
            has_bad_timestamp = True
            why = (
                f"timestamp {timestamp} is outside the range allowed by message.timestamp.before.max.ms and "
                f".after.max.ms (broker time {now_ms})"
            )
        if why is not None:
            rejected += 1
            if rejected <= RECORD_ERRORS_MAX:
                errors.append(RecordError(index, why))
    if errors:
        code = ErrorCode.INVALID_TIMESTAMP if has_bad_timestamp else ErrorCode.INVALID_RECORD
        message = f"{rejected + unread} of {count + unread} records are invalid; the first error: {errors[0].message}"
        raise BatchRejected(code, message, message=message, record_errors=tuple(errors))
    return highest


def _is_out_of_range(timestamp: int, rules: BatchRules, now_ms: int) -> bool:
    """Compute in 64 bits, as Kafka does: a timestamp of the far past may overflow to one of the future."""
    age = _int64(now_ms - timestamp)
    return age > rules.timestamp_before_max_ms or _int64(-age) > rules.timestamp_after_max_ms


def _int64(value: int) -> int:
    return (value - LONG_MIN & 0xFFFF_FFFF_FFFF_FFFF) + LONG_MIN


def _recompress(records: memoryview, payload: bytes, rules: BatchRules, target: int, highest: int) -> ValidatedBatch:
    """Build the batch with the topic's codec; its records get new offset deltas."""
    header = read_header(records)
    batch = build_batch(
        decode_payload(header, payload),
        codec=target,
        compression_level=rules.target_level,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
    )
    if len(batch) > rules.max_message_bytes:
        _too_large(len(batch), rules)
    return ValidatedBatch(
        len(batch),
        header.record_count,
        highest,
        target,
        read_header(batch).max_timestamp == highest,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        batch,
    )


def _invalid(reason: str) -> NoReturn:
    raise BatchRejected(ErrorCode.INVALID_RECORD, reason)


def _corrupt(reason: str) -> NoReturn:
    raise BatchRejected(ErrorCode.CORRUPT_MESSAGE, reason, has_log_start=False)


def _bad_framing(reason: str, position: int) -> NoReturn:
    message = reason if position == 0 else None
    raise BatchRejected(ErrorCode.CORRUPT_MESSAGE, reason, message=message, has_log_start=False)


def _reject_count(count: int, size: int) -> NoReturn:
    if count * RECORD_BYTES_MIN > size:
        _invalid(f"{count} records do not fit into {size} bytes")
    reason = f"the batch has {count} records; the limit is {RECORDS_MAX}"
    raise BatchRejected(ErrorCode.MESSAGE_TOO_LARGE, reason, has_log_start=False)


def _too_large(size: int, rules: BatchRules) -> NoReturn:
    reason = f"the batch has {size} bytes; max.message.bytes is {rules.max_message_bytes}"
    raise BatchRejected(ErrorCode.MESSAGE_TOO_LARGE, reason, has_log_start=False)
