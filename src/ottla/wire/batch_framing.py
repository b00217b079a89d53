"""Whether the bytes that a client sent for a partition are exactly one batch; the last few may be junk."""

from struct import Struct

from ottla.base.errors import ErrorCode
from ottla.wire.batches import LENGTH_AT, LENGTH_OVERHEAD, MAGIC, MAGIC_AT, PRODUCER_EPOCH_AT
from ottla.wire.rejection import BatchRejected

LENGTH_MIN = 14
"""No batch of any format is shorter."""
LENGTH_MAX = (1 << 31) - 1 - LENGTH_OVERHEAD
"""With a longer one Apache Kafka's own sums overflow."""

_i32 = Struct(">i").unpack_from


def check_framing(records: memoryview) -> None:
    """BatchRejected unless there is one whole batch of format 2, followed by no other and by nothing that looks like a damaged one."""
    size = _next_batch(records, 0)
    if size is None:
        raise BatchRejected(ErrorCode.INVALID_RECORD, "no whole batch", has_log_start=False)
    if records[MAGIC_AT] != MAGIC:
        raise BatchRejected(ErrorCode.INVALID_RECORD, f"a batch of format {records[MAGIC_AT]}", has_log_start=False)
    if _next_batch(records, size) is not None:
        raise BatchRejected(ErrorCode.INVALID_RECORD, "more than one batch", has_log_start=False)
    if size < PRODUCER_EPOCH_AT:
        raise BatchRejected(ErrorCode.UNKNOWN_SERVER_ERROR, f"a batch of {size} bytes", has_log_start=False)


def _next_batch(records: memoryview, position: int) -> int | None:
    """The size of the batch at a position; None where the end comes before it does."""
    left = len(records) - position
    if left < LENGTH_OVERHEAD:
        return None
    length: int = _i32(records, position + LENGTH_AT)[0]
    if length < LENGTH_MIN:
        _refuse(f"a batch cannot have a length of {length} bytes", position)
    if left <= MAGIC_AT:
        return None
    magic = records[position + MAGIC_AT]
    if magic > MAGIC:
        _refuse(f"no batch has the format {magic}", position)
    if length > LENGTH_MAX:
        raise BatchRejected(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"a batch cannot have a length of {length} bytes", has_log_start=False
        )
    return length + LENGTH_OVERHEAD if left >= length + LENGTH_OVERHEAD else None


def _refuse(reason: str, position: int) -> None:
    raise BatchRejected(
        ErrorCode.CORRUPT_MESSAGE, reason, message=reason if position == 0 else None, has_log_start=False
    )
