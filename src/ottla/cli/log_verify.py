"""`ottla log verify`: check that files are complete and consistent. Files are never written.

Reads each partition once, segment by segment, and compares its indexes, leader epochs and producer snapshots with what
it read, then the checkpoints of its data directory.
"""

import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ottla.cli.log_dump import dump, index_entries
from ottla.cli.log_files import FileType, LogFile, batches, file_type_of, read_bytes

if TYPE_CHECKING:
    from ottla.log.leader_epoch_cache import LeaderEpochCache
    from ottla.log.offset_checkpoint_file import Offsets
    from ottla.log.producer_state import ProducerStateManager
    from ottla.wire.batches import BatchHeader

READ_BEFORE = (FileType.SEGMENT, FileType.SNAPSHOT, FileType.OFFSET_INDEX, FileType.TIME_INDEX, FileType.OFFSETS)
"""File types checked with the log, or on their own."""


class Problem(NamedTuple):
    """A problem and its position in a file; -1 for the file as a whole."""

    path: str
    position: int
    text: str


class VerifyResult(NamedTuple):
    files: int
    batches: int
    records: int
    problems: list[Problem]


class LogEnd(NamedTuple):
    """End offset of a log when it was read, and the base offset of its last segment."""

    offset: int
    last_base_offset: int


class Checkpoints:
    """Offset checkpoints: no log may be flushed, committed, deleted or compacted beyond its end.

    They must be read before the logs, which may grow meanwhile.
    """

    def __init__(self) -> None:
        self._offsets: dict[str, Offsets] = {}

    def read(self, file: LogFile) -> None:
        """Read a checkpoint file. Raises `ValueError` if it is corrupt."""
        from ottla.log import offset_checkpoint_file

        data = read_bytes(file.path)
        self._offsets[file.path] = offset_checkpoint_file.decode(data) if data else {}  # Kafka creates an empty file

    def find_beyond_log_end(self, ends: dict[str, LogEnd]) -> Iterator[tuple[str, str]]:
        """Yield file and problem for each offset after the end of its log. `ends` holds the logs read, by directory."""
        for path, offsets in self._offsets.items():
            for (topic, index), offset in sorted(offsets.items()):
                directory = os.path.join(os.path.dirname(path), f"{topic}-{index}")
                end = ends.get(directory)
                if end is not None and offset > end.offset and not _has_grown(directory, end):
                    yield (
                        path,
                        f"offset {offset} of {topic}-{index} is after the log end offset {end.offset}",
                    )


def _has_grown(directory: str, end: LogEnd) -> bool:
    """Return whether a running node has added a segment since the files were listed, or deleted the log."""
    if not os.path.isdir(directory):
        return True
    bases = [
        LogFile(name, FileType.SEGMENT).base_offset
        for name in os.listdir(directory)
        if file_type_of(name) is FileType.SEGMENT
    ]
    return max(bases, default=0) > end.last_base_offset


class Verifier:
    """Verifies files and collects problems."""

    def __init__(self, *, on_bytes: Callable[[int], None] = lambda size: None) -> None:
        self.problems: list[Problem] = []
        self.batch_count = 0
        self.record_count = 0
        self._ends: dict[str, LogEnd] = {}
        self._on_bytes = on_bytes

    def verify(self, files: Iterable[LogFile]) -> VerifyResult:
        by_directory: dict[str, list[LogFile]] = {}
        checkpoints = Checkpoints()
        count = 0
        for file in files:
            by_directory.setdefault(os.path.dirname(file.path), []).append(file)
            count += 1
            if file.file_type is FileType.OFFSETS:
                self.try_read(file, partial(checkpoints.read, file))
        for together in by_directory.values():
            self._verify_directory(together)
        for path, text in checkpoints.find_beyond_log_end(self._ends):
            self.report(path, -1, text)
        return VerifyResult(count, self.batch_count, self.record_count, self.problems)

    def _verify_directory(self, files: list[LogFile]) -> None:
        by_type = {file_type: [file for file in files if file.file_type is file_type] for file_type in FileType}
        if by_type[FileType.SEGMENT]:
            self._ends[os.path.dirname(files[0].path)] = _Partition(self, by_type).verify()
        for file in by_type[FileType.SNAPSHOT]:
            self.batch_count += len(list(self.check_segment(file, next_offset=0, is_last=False)))
        for file in files:
            if file.file_type not in READ_BEFORE and not (
                by_type[FileType.SEGMENT] and file.file_type in (FileType.EPOCHS, FileType.PRODUCERS)
            ):
                self.try_read(file, partial(_read_through, file))
        if not by_type[FileType.SEGMENT]:
            for file in by_type[FileType.OFFSET_INDEX] + by_type[FileType.TIME_INDEX]:
                self.check_index_entries(file)

    def try_read(self, file: LogFile, work: Callable[[], object]) -> None:
        """Report a file that cannot be read, unless a running node has deleted it."""
        try:
            work()
        except FileNotFoundError:
            return
        except (ValueError, KeyError, TypeError) as error:
            self.report(file.path, -1, str(error))
        except OSError as error:
            self.report(file.path, -1, f"cannot read: {error.strerror or error}")

    def report(self, path: str, position: int, text: str) -> None:
        self.problems.append(Problem(path, position, text))

    def check_index_entries(self, file: LogFile) -> list[tuple[int, int]]:
        """Return the entries of an index, which must be complete and increase in both fields."""
        found: list[tuple[int, int]] = []

        def read() -> None:
            entry_bytes = 8 if file.file_type is FileType.OFFSET_INDEX else 12
            if file.size % entry_bytes:
                self.report(file.path, file.size - file.size % entry_bytes, "incomplete entry at the end")
            for number, entry in enumerate(index_entries(file)):
                first, second = entry.values()
                if found and (first <= found[-1][0] or second < found[-1][1]):
                    self.report(
                        file.path,
                        number * entry_bytes,
                        f"entry {first, second} after {found[-1]}: entries must increase",
                    )
                    return
                found.append((first, second))

        self.try_read(file, read)
        return found

    def check_segment(
        self, file: LogFile, *, next_offset: int, is_last: bool
    ) -> "Iterator[tuple[int, BatchHeader, memoryview]]":
        """Yield complete batches. An incomplete one is reported and ends the file."""
        from ottla.wire.batches import has_valid_checksum

        end = 0
        try:
            size = file.size
            for position, header, batch in batches(file.path):
                end = position + header.size
                self._on_bytes(header.size)
                if not has_valid_checksum(batch):
                    self.report(
                        file.path,
                        position,
                        f"invalid checksum of the batch at offset {header.base_offset}",
                    )
                    continue
                if header.base_offset < next_offset:
                    self.report(
                        file.path,
                        position,
                        f"batch starts at offset {header.base_offset}, expected at least {next_offset}",
                    )
                next_offset = max(next_offset, header.last_offset + 1)
                self._check_records(file, position, header, batch)
                yield position, header, batch
            if end < size and not (is_last and file.size > size):
                self.report(file.path, end, f"{size - end} bytes of an incomplete batch")
        except FileNotFoundError:
            return

    def _check_records(self, file: LogFile, position: int, header: "BatchHeader", batch: memoryview) -> None:
        from ottla.wire.batches import decode_records
        from ottla.wire.errors import MalformedMessage

        try:
            records = decode_records(batch)
        except (MalformedMessage, ValueError) as error:
            self.report(
                file.path,
                position,
                f"cannot read the records of the batch at offset {header.base_offset}: {error}",
            )
            return
        self.record_count += len(records)
        if len(records) != header.record_count:
            self.report(
                file.path, position, f"batch has {len(records)} records, but its header says {header.record_count}"
            )
        offset = header.base_offset - 1
        for record in records:
            if not offset < record.offset <= header.last_offset:
                self.report(
                    file.path,
                    position,
                    f"record at offset {record.offset} after {offset}, in a batch that ends at {header.last_offset}",
                )
                return
            offset = record.offset


class _Partition:
    """Verifies the files of one partition, reading the log once."""

    def __init__(self, verifier: Verifier, by_type: dict[FileType, list[LogFile]]) -> None:
        from ottla.log.producer_state import ProducerStateManager

        self._verifier = verifier
        self._segments = sorted(by_type[FileType.SEGMENT], key=lambda file: file.base_offset)
        self._indexes = {
            (file.file_type, file.base_offset): file
            for file_type in (FileType.OFFSET_INDEX, FileType.TIME_INDEX, FileType.TRANSACTION_INDEX)
            for file in by_type[file_type]
        }
        self._snapshots = sorted(by_type[FileType.PRODUCERS], key=lambda file: file.base_offset)
        self._producers = ProducerStateManager()
        self._first_offset = self._segments[0].base_offset
        self._epochs = self._read_epochs(by_type[FileType.EPOCHS])
        self._latest_epoch = -1

    def verify(self) -> LogEnd:
        next_offset = self._first_offset
        for at, file in enumerate(self._segments):
            next_offset = max(next_offset, file.base_offset)
            next_offset = self._verify_segment(file, next_offset, is_last=at == len(self._segments) - 1)
            following = self._segments[at + 1].base_offset if at + 1 < len(self._segments) else None
            if following is not None and next_offset > following:
                self._verifier.report(
                    file.path,
                    -1,
                    f"segment ends at offset {next_offset - 1}, but the next one starts at {following}",
                )
        self._compare_snapshots(next_offset)
        for snapshot in self._snapshots:
            self._verifier.report(
                snapshot.path, -1, f"snapshot is at offset {snapshot.base_offset}, but the log ends at {next_offset}"
            )
        return LogEnd(next_offset, self._segments[-1].base_offset)

    def _verify_segment(self, file: LogFile, next_offset: int, *, is_last: bool) -> int:
        from ottla.log.transaction_index import AbortedTransaction

        verifier = self._verifier
        positions: list[int] = []
        bounds: list[tuple[int, int, int]] = []
        aborted: list[AbortedTransaction] = []
        for position, header, batch in verifier.check_segment(file, next_offset=next_offset, is_last=is_last):
            self._compare_snapshots(header.base_offset)
            verifier.batch_count += 1
            next_offset = header.last_offset + 1
            positions.append(position)
            bounds.append((header.base_offset, header.last_offset, header.max_timestamp))
            self._check_epoch(file, position, header)
            ended = self._producers.on_batch(header, batch)
            if ended is not None:
                aborted.append(ended)
        self._check_offsets(file, positions, bounds)
        self._check_times(file, bounds)
        self._check_transactions(file, aborted, is_last=is_last)
        return next_offset

    def _check_epoch(self, file: LogFile, position: int, header: "BatchHeader") -> None:
        if header.leader_epoch < self._latest_epoch:
            self._verifier.report(file.path, position, f"leader epoch {header.leader_epoch} after {self._latest_epoch}")
        self._latest_epoch = max(self._latest_epoch, header.leader_epoch)
        # The file may not have the latest epoch yet: it is written periodically.
        known = -1 if self._epochs is None else self._epochs.epoch_for(header.base_offset)
        if (
            self._epochs is not None
            and 0 <= header.leader_epoch <= self._epochs.latest
            and known not in (-1, header.leader_epoch)
        ):
            self._verifier.report(
                file.path,
                position,
                f"batch at offset {header.base_offset} has leader epoch {header.leader_epoch}, "
                f"but leader-epoch-checkpoint says {known}",
            )
            self._epochs = None

    def _check_offsets(self, file: LogFile, positions: list[int], bounds: list[tuple[int, int, int]]) -> None:
        index = self._indexes.get((FileType.OFFSET_INDEX, file.base_offset))
        if index is None:
            return
        for number, (offset, position) in enumerate(self._verifier.check_index_entries(index)):
            at = bisect_left(positions, position)
            if at == len(positions) or positions[at] != position:
                self._verifier.report(
                    index.path,
                    number * 8,
                    f"no batch starts at position {position}, where the index has offset {offset}",
                )
                return
            if offset < bounds[at][0]:
                self._verifier.report(
                    index.path,
                    number * 8,
                    f"batch at position {position} starts at offset {bounds[at][0]}, after the index entry's {offset}",
                )
                return

    def _check_times(self, file: LogFile, bounds: list[tuple[int, int, int]]) -> None:
        index = self._indexes.get((FileType.TIME_INDEX, file.base_offset))
        if index is None:
            return
        latest, at = -1, 0
        for number, (timestamp, offset) in enumerate(self._verifier.check_index_entries(index)):
            while at < len(bounds) and bounds[at][1] <= offset:
                latest = max(latest, bounds[at][2])
                at += 1
            if latest > timestamp:
                self._verifier.report(
                    index.path,
                    number * 12,
                    f"a record up to offset {offset} has timestamp {latest}, later than the index entry's {timestamp}",
                )
                return
            if bounds and offset > bounds[-1][1]:
                self._verifier.report(
                    index.path, number * 12, f"offset {offset} is after the end of the segment, {bounds[-1][1]}"
                )
                return

    def _check_transactions(self, file: LogFile, aborted: "Iterable[NamedTuple]", *, is_last: bool) -> None:
        from ottla.log import transaction_index

        index = self._indexes.get((FileType.TRANSACTION_INDEX, file.base_offset))
        if index is None or is_last:
            return  # the active segment's index is written on close; verify() only checks that it can be read

        def compare() -> None:
            for entry in transaction_index.decode(read_bytes(index.path), index.path):
                if (
                    entry.last_offset >= self._first_offset
                    and entry not in found
                    and entry.first_offset >= self._first_offset
                ):
                    self._verifier.report(index.path, -1, f"{entry} does not match the markers in the log")

        found = list(aborted)
        self._verifier.try_read(index, compare)

    def _compare_snapshots(self, next_offset: int) -> None:
        """Compare producer snapshots up to `next_offset` with the batches read so far."""
        from ottla.log.producer_state import ProducerStateManager

        while self._snapshots and self._snapshots[0].base_offset <= next_offset:
            snapshot = self._snapshots.pop(0)
            table = ProducerStateManager()
            problems = len(self._verifier.problems)
            self._verifier.try_read(snapshot, partial(_restore, table, snapshot))
            if len(self._verifier.problems) == problems:
                self._compare(snapshot, table)

    def _compare(self, snapshot: LogFile, table: "ProducerStateManager") -> None:
        for producer_id, producer in table.items():
            if not producer.batches or producer.batches[-1][3] < self._first_offset:
                continue  # its batches have been deleted since
            found = self._producers.get(producer_id)
            expected = producer.epoch, producer.batches[-1][1], producer.batches[-1][3]
            actual = (
                (found.epoch, found.batches[-1][1], found.batches[-1][3])
                if found is not None and found.batches
                else None
            )
            if actual != expected:
                self._verifier.report(
                    snapshot.path,
                    -1,
                    f"producer {producer_id} has epoch, sequence and offset {expected}, but {actual} in the log",
                )

    def _read_epochs(self, files: list[LogFile]) -> "LeaderEpochCache | None":
        found: list[LeaderEpochCache] = []
        for file in files:
            self._verifier.try_read(file, partial(_decode_epochs, file, found))
        return found[0] if found else None


def _read_through(file: LogFile) -> None:
    for _ in dump(file, with_records=False):
        continue


def _restore(table: "ProducerStateManager", snapshot: LogFile) -> None:
    table.restore(read_bytes(snapshot.path))


def _decode_epochs(file: LogFile, found: "list[LeaderEpochCache]") -> None:
    from ottla.log import leader_epoch_cache

    found.append(leader_epoch_cache.decode(read_bytes(file.path), file.path))
