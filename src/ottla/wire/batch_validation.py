"""What is looked at inside a batch that a client sent, before it is given an offset: all that Apache Kafka looks at, and no more.

Its answers were asked of a real one; the catalogue of batches in the tests holds them. The order of the checks matters where a batch is
wrong in two ways, as the client is told of one.
"""

from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple, NoReturn

from ottla.base.errors import ErrorCode
from ottla.wire.batch_framing import check_framing
from ottla.wire.batches import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    CONTROL_BIT,
    HEADER,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    NO_TIMESTAMP,
    RECORDS_AT,
    TRANSACTIONAL_BIT,
    build_batch,
    decode_payload,
    read_header,
)
from ottla.wire.crc import crc32c
from ottla.wire.errors import MalformedMessage
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
from ottla.wire.rejection import BatchRejected, RecordError

__all__ = [
    "PROCESS_BUDGET",
    "WORKER_BUDGET",
    "LOOP_BUDGET",
    "BatchRejected",
    "ValidationBudget",
    "ValidatedBatch",
    "RecordError",
    "BatchRules",
    "BudgetExceeded",
    "validate_batch",
]

LONG_MAX = (1 << 63) - 1
LONG_MIN = -(1 << 63)
CODEC_MAX = 4
WALK_MAX = 20
"""From more records on NumPy is faster."""
OUTPUT_MAX = 128 << 20
"""Of a batch that is decompressed. Apache Kafka has no limit; clients fill batches by their size before compression, some megabytes."""
RECORDS_MAX = 1_000_000
"""In a batch: seven bytes are enough for one, and much fewer once they are compressed."""
RECORD_ERRORS_MAX = 1000
"""Records of which a client is told why they were refused; of the others only how many there are."""

_new_tuple = tuple.__new__
"""A NamedTuple's own `__new__` is a Python function, which costs as much as the tuple."""


class ValidationBudget(NamedTuple):
    """What looking at a batch may take: bytes once it is decompressed, and records that are looked at one by one."""

    output_bytes_max: int
    stepped_max: int


LOOP_BUDGET = ValidationBudget(128 << 10, 1_000)
WORKER_BUDGET = ValidationBudget(4 << 20, 100_000)
"""Of several at a time."""
PROCESS_BUDGET = ValidationBudget(OUTPUT_MAX, RECORDS_MAX)


class BudgetExceeded(Exception):
    """Not an error of the client's: whoever looks should do it where more time and memory may be spent."""


class BatchRules(NamedTuple):
    """What a topic's configuration demands of a batch."""

    max_message_bytes: int = 1_048_588
    compacted: bool = False
    log_append_time: bool = False
    timestamp_before_max_ms: int = LONG_MAX
    timestamp_after_max_ms: int = 3_600_000
    target_codec: int | None = None
    """The codec in which the topic keeps its batches; None keeps each as it came."""
    target_level: int | None = None


class ValidatedBatch(NamedTuple):
    """A batch that may be appended."""

    size: int
    record_count: int
    max_timestamp: int
    attributes: int
    is_header_right: bool
    """Whether the highest timestamp and the kind of timestamp in the header are those of the records and of the topic."""
    producer_id: int
    producer_epoch: int
    base_sequence: int
    replacement: bytearray | None
    """The batch to write in its place, where the topic keeps another codec."""


def validate_batch(
    records: memoryview, rules: BatchRules, now_ms: int, effort: ValidationBudget = PROCESS_BUDGET
) -> ValidatedBatch:
    """Check what a client sent for one partition; BatchRejected says what is wrong with it; BudgetExceeded, that it takes more than it may.

    It is one long function as every produce passes through it: 2.6 µs for a batch of one record, of which a call more would be 0.1.
    """
    end = len(records)
    if end < RECORDS_AT:
        check_framing(records)
        _corrupt("a batch that is shorter than its header")
    (
        base_offset,
        length,
        _,
        magic,
        crc,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    ) = HEADER.unpack_from(records)
    size = length + LENGTH_OVERHEAD
    if size != end or magic != MAGIC:
        check_framing(records)
    if attributes & TRANSACTIONAL_BIT:
        raise BatchRejected(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            "a transactional batch without a transactional id",
            has_log_start=False,
        )
    if base_offset != 0:
        _invalid(f"the batch of a client starts at offset 0, not at {base_offset}")
    if size > rules.max_message_bytes:
        _too_large(size, rules)
    if size < RECORDS_AT or crc32c(records[ATTRIBUTES_AT:size]) != crc:
        _corrupt("the checksum of the batch is wrong")
    codec = attributes & CODEC_MASK
    if codec > CODEC_MAX:
        raise BatchRejected(ErrorCode.UNKNOWN_SERVER_ERROR, f"no codec has the number {codec}")
    if last_offset_delta + 1 != count or count <= 0:
        _invalid(f"{count} records do not go with a last offset delta of {last_offset_delta}")
    if attributes & CONTROL_BIT:
        _invalid("clients may not write control batches")
    if producer_id >= 0 and base_sequence < 0:
        _invalid(f"producer {producer_id} gave the batch the sequence {base_sequence}")
    target = codec if rules.target_codec is None else rules.target_codec
    data: bytes | memoryview = records[RECORDS_AT:size]
    if codec:
        data = _decompressed(codec, bytes(data), effort)
    elif count <= WALK_MAX:
        data = bytes(data)  # which Python reads faster than a view
    if count > RECORDS_MAX:
        _too_many(count, len(data))
    is_kept_compressed = codec != 0 and codec == target
    extent = collect_stats_fast(data, count, check_offsets=is_kept_compressed) if count <= WALK_MAX else None
    lowest, highest, has_null_key, offsets_rise = extent or _scan(
        data, count, codec, effort, is_kept_compressed=is_kept_compressed
    )
    is_append_time_said = attributes & LOG_APPEND_TIME_BIT
    if is_append_time_said:
        lowest = highest = max_timestamp
    else:
        lowest += base_timestamp
        highest += base_timestamp
    if (
        (has_null_key and rules.compacted)
        or is_append_time_said
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
        # Something may be wrong with single records, which is found out one by one.
        stepped = scan_records(data, count, check_lengths=False)
        if (
            lowest > now_ms + rules.timestamp_after_max_ms >= 0
            and highest <= LONG_MAX
            and not rules.compacted
            and not is_append_time_said
        ):
            # All of them are of the future: those that are told of are enough.
            _check_each(
                islice(stepped, RECORD_ERRORS_MAX),
                rules,
                now_ms,
                base_timestamp,
                None,
                more=max(count - RECORD_ERRORS_MAX, 0),
            )
        if count > effort.stepped_max:
            raise BudgetExceeded
        highest = _check_each(stepped, rules, now_ms, base_timestamp, max_timestamp if is_append_time_said else None)
    if highest < NO_TIMESTAMP:
        highest = NO_TIMESTAMP
    if codec != target:
        if count > effort.stepped_max:
            raise BudgetExceeded
        return _converted(records, bytes(data), rules, target, highest)
    if is_kept_compressed and not offsets_rise:
        raise BatchRejected(
            ErrorCode.UNKNOWN_SERVER_ERROR, "offset deltas in a compressed batch that do not go 0, 1, 2 ..."
        )
    return _new_tuple(
        ValidatedBatch,
        (
            size,
            count,
            highest,
            attributes,
            highest == max_timestamp and not is_append_time_said,
            producer_id,
            producer_epoch,
            base_sequence,
            None,
        ),
    )


def _scan(
    data: bytes | memoryview,
    count: int,
    codec: int,
    effort: ValidationBudget,
    *,
    is_kept_compressed: bool,
) -> RecordStats:
    """Many records, or some of an unusual form."""
    extent = None
    if count > WALK_MAX:
        extent = collect_stats_large(data, count, check_offsets=is_kept_compressed)
        if extent is None:
            if count > effort.stepped_max:
                raise BudgetExceeded
            data = bytes(data)
            extent = collect_stats_fast(data, count, check_offsets=is_kept_compressed)
    if extent is None:
        try:
            extent = collect_stats(data, count, check_lengths=not is_kept_compressed)
        except MalformedMessage as error:
            is_length_too_long = isinstance(error, RecordLengthTooLong) and codec == 0
            raise BatchRejected(
                ErrorCode.UNKNOWN_SERVER_ERROR if is_length_too_long else ErrorCode.INVALID_RECORD, str(error)
            ) from None
    return extent


def _decompressed(codec: int, payload: bytes, effort: ValidationBudget) -> bytes | memoryview:
    from ottla.wire.compression import CorruptPayload, DecompressionLimit, decompress_in_place

    try:
        return decompress_in_place(codec, payload, effort.output_bytes_max)
    except DecompressionLimit:
        if effort is not PROCESS_BUDGET:
            raise BudgetExceeded from None
        raise BatchRejected(
            ErrorCode.MESSAGE_TOO_LARGE, f"the records have more than {OUTPUT_MAX} bytes", has_log_start=False
        ) from None
    except CorruptPayload as error:
        raise BatchRejected(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from None


def _check_each(
    stepped: Iterable[ScannedRecord],
    rules: BatchRules,
    now_ms: int,
    base_timestamp: int,
    append_time_said: int | None,
    *,
    more: int = 0,
) -> int:
    """Keys and timestamps of all records; returns the highest timestamp. `more` are known to be refused, and not looked at."""
    errors: list[RecordError] = []
    has_bad_timestamp = False
    highest = LONG_MIN
    count = refused = 0
    for index, (timestamp_delta, _, _, key_size, _, _, _) in enumerate(stepped):
        count += 1
        timestamp = _wrapped(base_timestamp + timestamp_delta) if append_time_said is None else append_time_said
        highest = max(highest, timestamp)
        why = None
        if rules.compacted and key_size < 0:
            why = "a compacted topic takes no record without a key"
        elif rules.log_append_time or timestamp == NO_TIMESTAMP:
            if append_time_said is not None:
                has_bad_timestamp = True
                why = "a producer may not say that its timestamps are those of the log"
        elif _is_out_of_range(timestamp, rules, now_ms):
            has_bad_timestamp = True
            why = f"timestamp {timestamp} is further from the broker's time, {now_ms}, than the topic allows"
        if why is not None:
            refused += 1
            if refused <= RECORD_ERRORS_MAX:
                errors.append(RecordError(index, why))
    if errors:
        code = ErrorCode.INVALID_TIMESTAMP if has_bad_timestamp else ErrorCode.INVALID_RECORD
        message = f"{refused + more} of {count + more} records were refused; the first: {errors[0].message}"
        raise BatchRejected(code, message, message=message, record_errors=tuple(errors))
    return highest


def _is_out_of_range(timestamp: int, rules: BatchRules, now_ms: int) -> bool:
    """Sums in 64 bits, as Apache Kafka's are: a timestamp of the far past may come out as one of the future."""
    age = _wrapped(now_ms - timestamp)
    return age > rules.timestamp_before_max_ms or _wrapped(-age) > rules.timestamp_after_max_ms


def _wrapped(value: int) -> int:
    return (value - LONG_MIN & 0xFFFF_FFFF_FFFF_FFFF) + LONG_MIN


def _converted(records: memoryview, payload: bytes, rules: BatchRules, target: int, highest: int) -> ValidatedBatch:
    """The same records in the topic's codec. They are given their offsets anew."""
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


def _too_many(count: int, size: int) -> NoReturn:
    if count * RECORD_BYTES_MIN > size:
        _invalid(f"{count} records do not fit into {size} bytes")
    raise BatchRejected(
        ErrorCode.MESSAGE_TOO_LARGE, f"{count} records, where {RECORDS_MAX} are allowed", has_log_start=False
    )


def _corrupt(reason: str) -> NoReturn:
    raise BatchRejected(ErrorCode.CORRUPT_MESSAGE, reason, has_log_start=False)


def _too_large(size: int, rules: BatchRules) -> NoReturn:
    raise BatchRejected(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"the batch has {size} bytes, max.message.bytes is {rules.max_message_bytes}",
        has_log_start=False,
    )
