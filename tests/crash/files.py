"""Consistency check of a partition's files by their formats alone: batches without gaps, and matching indexes."""

import struct
from dataclasses import dataclass
from pathlib import Path

from ottla.wire.batches import BatchHeader, has_valid_checksum, iterate_batches

OFFSET_ENTRY = struct.Struct(">ii")
TIME_ENTRY = struct.Struct(">qi")


@dataclass(frozen=True, slots=True)
class Checked:
    """Counts of checked items, so that a test can assert that there were some."""

    segments: int
    batches: int
    offset_entries: int
    time_entries: int
    end_offset: int


def check_partition(directory: Path) -> Checked:
    """Raises AssertionError with the inconsistency."""
    logs = sorted(directory.glob("*.log"))
    assert logs, f"no segments in {directory}"
    expected = int(logs[0].stem)
    batches = offset_entries = time_entries = 0
    for log in logs:
        base = int(log.stem)
        assert base == expected, f"{log} should start at {expected}"
        found = _check_log(log, base)
        expected = found[-1][1].last_offset + 1 if found else base
        batches += len(found)
        if log != logs[-1] or log.with_suffix(".index").exists():  # the active segment's may be in memory only
            offset_entries += _check_offset_index(log.with_suffix(".index"), base, dict(found))
            time_entries += _check_time_index(log.with_suffix(".timeindex"), base, found)
    return Checked(len(logs), batches, offset_entries, time_entries, expected)


def _check_log(log: Path, base: int) -> list[tuple[int, BatchHeader]]:
    data = log.read_bytes()
    found = list(iterate_batches(data))
    end = found[-1][0] + found[-1][1].size if found else 0
    assert end == len(data), f"{log} has {len(data) - end} bytes after its last batch"
    offset = base
    for position, header in found:
        assert header.base_offset == offset, (
            f"{log} at {position}: base offset {header.base_offset} instead of {offset}"
        )
        assert has_valid_checksum(data[position : position + header.size]), f"{log} at {position}: wrong checksum"
        offset = header.last_offset + 1
    return found


def _check_offset_index(index: Path, base: int, batches: dict[int, BatchHeader]) -> int:
    """Check the entries: last offset and position of a batch. Zeros at the end are padding."""
    last_offset = -1
    count = 0
    for relative, position in OFFSET_ENTRY.iter_unpack(_read_entries(index, OFFSET_ENTRY.size)):
        if count and (relative, position) == (0, 0):
            break
        if (relative, position) == (0, 0) and position not in batches:
            break
        assert relative > last_offset, f"{index}: {relative} after {last_offset}"
        assert position in batches, f"{index}: no batch starts at {position}"
        assert batches[position].last_offset == base + relative, f"{index}: {base + relative} is not at {position}"
        last_offset = relative
        count += 1
    return count


def _check_time_index(index: Path, base: int, batches: list[tuple[int, BatchHeader]]) -> int:
    """Check the entries: highest timestamp so far and the last offset of its batch."""
    last_time, last_offset = -1, -1
    count = 0
    for timestamp, relative in TIME_ENTRY.iter_unpack(_read_entries(index, TIME_ENTRY.size)):
        if timestamp == 0:
            break
        assert timestamp > last_time, f"{index}: {timestamp} after {last_time}"
        assert relative >= last_offset, f"{index}: offset {relative} after {last_offset}"
        holder = [header for _, header in batches if header.base_offset <= base + relative <= header.last_offset]
        assert len(holder) == 1, f"{index}: offset {base + relative} is in {len(holder)} batches"
        assert holder[0].max_timestamp == timestamp, (
            f"{index}: {timestamp} is not the highest in the batch of {base + relative}"
        )
        before = max(
            (header.max_timestamp for _, header in batches if header.last_offset <= base + relative), default=timestamp
        )
        assert before <= timestamp, f"{index}: timestamp {before} is before offset {base + relative} with {timestamp}"
        last_time, last_offset = timestamp, relative
        count += 1
    return count


def _read_entries(index: Path, size: int) -> bytes:
    data = index.read_bytes()
    assert len(data) % size == 0, f"{index} has {len(data)} bytes, not a multiple of {size}"
    return data
