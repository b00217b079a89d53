"""Whether the files that a node left agree with each other: batches follow one another, and the indexes point where they should.

It reads the formats by itself, from their descriptions, and shares nothing with `log` that could be wrong in both.
"""

from collections.abc import Iterable
from struct import Struct

from ottla.wire.batches import BatchHeader, has_valid_checksum, iterate_batches

_offset_entry = Struct(">ii")
_time_entry = Struct(">qi")


def check_log_files(files: Iterable[tuple[str, bytes]]) -> list[str]:
    """All that is wrong with the segments among these files, which are paths and contents. Files of cleanly stopped nodes only."""
    found = dict(files)
    wrong = []
    ends: dict[str, int] = {}
    for path, data in sorted(found.items()):
        directory, _, name = path.rpartition("/")
        stem, _, kind = name.rpartition(".")
        if kind != "log" or not stem.isdigit() or "." in directory.rpartition("/")[2]:
            continue
        base_offset = int(stem)
        if base_offset != ends.get(directory, base_offset):
            wrong.append(f"{path} begins at {base_offset}, while the segment before it ends at {ends[directory]}")
        batches, problems = _batches(path, data, base_offset)
        wrong += problems
        ends[directory] = batches[-1][1].last_offset + 1 if batches else base_offset
        wrong += _check_offset_index(
            f"{directory}/{stem}.index", found.get(f"{directory}/{stem}.index"), base_offset, batches
        )
        wrong += _check_time_index(
            f"{directory}/{stem}.timeindex", found.get(f"{directory}/{stem}.timeindex"), base_offset, batches
        )
    return wrong


def _batches(path: str, data: bytes, base_offset: int) -> tuple[list[tuple[int, BatchHeader]], list[str]]:
    batches = list(iterate_batches(data))
    wrong = []
    end = next_offset = 0
    for position, header in batches:
        if not has_valid_checksum(memoryview(data)[position : position + header.size]):
            wrong.append(f"{path} has a wrong checksum at {position}")
        if header.base_offset < (next_offset or base_offset):
            wrong.append(
                f"{path} has offset {header.base_offset} at {position}, where {next_offset or base_offset} was due"
            )
        next_offset = header.last_offset + 1
        end = position + header.size
    if end != len(data):
        wrong.append(f"{path} has {len(data) - end} bytes after its last batch")
    return batches, wrong


def _check_offset_index(
    path: str, data: bytes | None, base_offset: int, batches: list[tuple[int, BatchHeader]]
) -> list[str]:
    """Entries rise, and each is the last offset of the batch at its position."""
    if data is None:
        return [f"{path} is missing"]
    expected = {position: header.last_offset for position, header in batches}
    wrong = []
    before = (-1, -1)
    for relative, position in _offset_entry.iter_unpack(data):
        if expected.get(position) != base_offset + relative:
            wrong.append(
                f"{path} has offset {base_offset + relative} at {position}, where the log has {expected.get(position)}"
            )
        if not (relative > before[0] and position > before[1]):
            wrong.append(f"{path} has {(relative, position)} after {before}")
        before = (relative, position)
    return wrong


def _check_time_index(
    path: str, data: bytes | None, base_offset: int, batches: list[tuple[int, BatchHeader]]
) -> list[str]:
    """Entries rise; each is the highest timestamp up to its offset; the last one is the highest of all."""
    if data is None:
        return [f"{path} is missing"]
    wrong = []
    highest: dict[int, int] = {}
    so_far = -1
    for _, header in batches:
        so_far = max(so_far, header.max_timestamp)
        highest[header.last_offset] = so_far
    before = (-1, -1)
    for timestamp, relative in _time_entry.iter_unpack(data):
        if highest.get(base_offset + relative) != timestamp:
            wrong.append(
                f"{path} has {timestamp} up to {base_offset + relative}, where it is {highest.get(base_offset + relative)}"
            )
        if not (timestamp > before[0] and relative > before[1]):
            wrong.append(f"{path} has {(timestamp, relative)} after {before}")
        before = (timestamp, relative)
    if before[0] != so_far:
        wrong.append(f"{path} ends with {before[0]}, while the highest timestamp is {so_far}")
    return wrong
