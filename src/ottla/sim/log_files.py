"""Consistency checks of log files: consecutive batches, and index entries that point at them.

Reads the file formats independently of `ottla.log`, so that an error there is not repeated here.
"""

from collections.abc import Iterable
from struct import Struct

from ottla.wire.batches import BatchHeader, has_valid_checksum, iterate_batches

_offset_entry = Struct(">ii")
_time_entry = Struct(">qi")


def check_log_files(files: Iterable[tuple[str, bytes]]) -> list[str]:
    """Return all problems of the segments among these files, given as paths and contents, of cleanly stopped nodes."""
    found = dict(files)
    problems = []
    ends: dict[str, int] = {}
    for path, data in sorted(found.items()):
        directory, _, name = path.rpartition("/")
        stem, _, extension = name.rpartition(".")
        if extension != "log" or not stem.isdigit() or "." in directory.rpartition("/")[2]:
            continue
        base_offset = int(stem)
        if base_offset != ends.get(directory, base_offset):
            problems.append(f"{path} begins at {base_offset}, while the segment before it ends at {ends[directory]}")
        batches, batch_problems = _batches(path, data, base_offset)
        problems += batch_problems
        ends[directory] = batches[-1][1].last_offset + 1 if batches else base_offset
        problems += _check_offset_index(
            f"{directory}/{stem}.index", found.get(f"{directory}/{stem}.index"), base_offset, batches
        )
        problems += _check_time_index(
            f"{directory}/{stem}.timeindex", found.get(f"{directory}/{stem}.timeindex"), base_offset, batches
        )
    return problems


def _batches(path: str, data: bytes, base_offset: int) -> tuple[list[tuple[int, BatchHeader]], list[str]]:
    batches = list(iterate_batches(data))
    problems = []
    end = next_offset = 0
    for position, header in batches:
        if not has_valid_checksum(memoryview(data)[position : position + header.size]):
            problems.append(f"{path} has a invalid checksum at {position}")
        if header.base_offset < (next_offset or base_offset):
            problems.append(
                f"{path} has offset {header.base_offset} at {position}, where {next_offset or base_offset} was expected"
            )
        next_offset = header.last_offset + 1
        end = position + header.size
    if end != len(data):
        problems.append(f"{path} has {len(data) - end} bytes after its last batch")
    return batches, problems


def _check_offset_index(
    path: str, data: bytes | None, base_offset: int, batches: list[tuple[int, BatchHeader]]
) -> list[str]:
    """Check that entries increase, and that each has the last offset of the batch at its position."""
    if data is None:
        return [f"{path} is missing"]
    expected = {position: header.last_offset for position, header in batches}
    problems = []
    before = (-1, -1)
    for relative, position in _offset_entry.iter_unpack(data):
        if expected.get(position) != base_offset + relative:
            problems.append(
                f"{path} has offset {base_offset + relative} at {position}, where the log has {expected.get(position)}"
            )
        if not (relative > before[0] and position > before[1]):
            problems.append(f"{path} has {(relative, position)} after {before}")
        before = (relative, position)
    return problems


def _check_time_index(
    path: str, data: bytes | None, base_offset: int, batches: list[tuple[int, BatchHeader]]
) -> list[str]:
    """Check that entries increase, and that each has the maximum timestamp up to its offset, the last one the log's."""
    if data is None:
        return [f"{path} is missing"]
    problems = []
    highest: dict[int, int] = {}
    maximum = -1
    for _, header in batches:
        maximum = max(maximum, header.max_timestamp)
        highest[header.last_offset] = maximum
    before = (-1, -1)
    for timestamp, relative in _time_entry.iter_unpack(data):
        expected = highest.get(base_offset + relative)
        if expected != timestamp:
            problems.append(f"{path} has {timestamp} up to {base_offset + relative}, where it is {expected}")
        if not (timestamp > before[0] and relative > before[1]):
            problems.append(f"{path} has {(timestamp, relative)} after {before}")
        before = (timestamp, relative)
    if before[0] != maximum:
        problems.append(f"{path} ends with {before[0]}, while the highest timestamp is {maximum}")
    return problems
