"""`ottla log verify`: whether what is stored is whole, and whether the files agree with each other. Nothing is changed.

A partition is read through once, check_segment by segment; what its indexes, epochs and producer snapshots say is held against that, and so are
the checkpoints of its data directory.
"""

import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ottla.cli.log_dump import dump, index_entries
from ottla.cli.log_files import FileType, LogFile, batches, kind_of, read_bytes

if TYPE_CHECKING:
    from ottla.log.leader_epoch_cache import LeaderEpochCache
    from ottla.log.offset_checkpoint_file import Offsets
    from ottla.log.producer_state import ProducerStateManager
    from ottla.wire.batches import BatchHeader

READ_BEFORE = (FileType.SEGMENT, FileType.SNAPSHOT, FileType.OFFSET_INDEX, FileType.TIME_INDEX, FileType.OFFSETS)
"""Kinds that are looked at with the log, or for themselves."""


class Problem(NamedTuple):
    """What is wrong, and where: a position in a file, or -1 for the file as a whole."""

    path: str
    position: int
    text: str


class VerifyResult(NamedTuple):
    files: int
    batches: int
    records: int
    problems: list[Problem]


class LogEnd(NamedTuple):
    """Where a log ended when it was read, and the name of its last segment then."""

    offset: int
    last_base_offset: int


class Checkpoints:
    """Read before the logs are, which may grow meanwhile: they reach at least as far as was written down."""

    def __init__(self) -> None:
        self._offsets: dict[str, Offsets] = {}

    def read(self, stored: LogFile) -> None:
        """ValueError where the file is not whole."""
        from ottla.log import offset_checkpoint_file

        data = read_bytes(stored.path)
        self._offsets[stored.path] = (
            offset_checkpoint_file.decode(data) if data else {}
        )  # Kafka begins with an empty file

    def find_beyond_log_end(self, ends: dict[str, LogEnd]) -> Iterator[tuple[str, str]]:
        """The file and what is wrong in it, for each offset behind the end of its log. `ends`: of the logs that were read, by directory."""
        for path, offsets in self._offsets.items():
            for (topic, index), offset in sorted(offsets.items()):
                directory = os.path.join(os.path.dirname(path), f"{topic}-{index}")
                end = ends.get(directory)
                if end is not None and offset > end.offset and not _has_grown(directory, end):
                    yield (
                        path,
                        f"{topic}-{index} is said to have come to offset {offset}, and its log ends at {end.offset}",
                    )


def _has_grown(directory: str, end: LogEnd) -> bool:
    """Whether a node that runs has added a segment since the files were listed, in which the offset may be; or has removed the log."""
    if not os.path.isdir(directory):
        return True
    bases = [
        LogFile(name, FileType.SEGMENT).base_offset
        for name in os.listdir(directory)
        if kind_of(name) is FileType.SEGMENT
    ]
    return max(bases, default=0) > end.last_base_offset


class Verifier:
    """Files are handed over by partition; what was found is in `problems`."""

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
        for stored in files:
            by_directory.setdefault(os.path.dirname(stored.path), []).append(stored)
            count += 1
            if stored.file_type is FileType.OFFSETS:
                self.try_read(stored, partial(checkpoints.read, stored))
        for together in by_directory.values():
            self._verify_directory(together)
        for path, text in checkpoints.find_beyond_log_end(self._ends):
            self.report(path, -1, text)
        return VerifyResult(count, self.batch_count, self.record_count, self.problems)

    def _verify_directory(self, files: list[LogFile]) -> None:
        of_kind = {kind: [stored for stored in files if stored.file_type is kind] for kind in FileType}
        if of_kind[FileType.SEGMENT]:
            self._ends[os.path.dirname(files[0].path)] = _Partition(self, of_kind).verify()
        for stored in of_kind[FileType.SNAPSHOT]:
            self.batch_count += len(list(self.check_segment(stored, next_offset=0, is_last=False)))
        for stored in files:
            if stored.file_type not in READ_BEFORE and not (
                of_kind[FileType.SEGMENT] and stored.file_type in (FileType.EPOCHS, FileType.PRODUCERS)
            ):
                self.try_read(stored, partial(_read_through, stored))
        if not of_kind[FileType.SEGMENT]:
            for stored in of_kind[FileType.OFFSET_INDEX] + of_kind[FileType.TIME_INDEX]:
                self.check_index_entries(stored)

    def try_read(self, stored: LogFile, work: Callable[[], object]) -> None:
        """What cannot be read is a problem; what is gone meanwhile was removed by a node that runs, and is none."""
        try:
            work()
        except FileNotFoundError:
            return
        except (ValueError, KeyError, TypeError) as error:
            self.report(stored.path, -1, str(error))
        except OSError as error:
            self.report(stored.path, -1, f"cannot be read: {error.strerror or error}")

    def report(self, path: str, position: int, text: str) -> None:
        self.problems.append(Problem(path, position, text))

    def check_index_entries(self, stored: LogFile) -> list[tuple[int, int]]:
        """The entries of an index, which must be whole and rise in both fields."""
        found: list[tuple[int, int]] = []

        def read() -> None:
            entry_bytes = 8 if stored.file_type is FileType.OFFSET_INDEX else 12
            if stored.size % entry_bytes:
                self.report(stored.path, stored.size - stored.size % entry_bytes, "half an entry at the end")
            for number, entry in enumerate(index_entries(stored)):
                first, second = entry.values()
                if found and (first <= found[-1][0] or second < found[-1][1]):
                    self.report(
                        stored.path, number * entry_bytes, f"{first, second} after {found[-1]}: entries must rise"
                    )
                    return
                found.append((first, second))

        self.try_read(stored, read)
        return found

    def check_segment(
        self, stored: LogFile, *, next_offset: int, is_last: bool
    ) -> "Iterator[tuple[int, BatchHeader, memoryview]]":
        """The batches that are whole; those that are not are said, and are the last that can be read of a file."""
        from ottla.wire.batches import has_valid_checksum

        end = 0
        try:
            size = stored.size
            for position, header, batch in batches(stored.path):
                end = position + header.size
                self._on_bytes(header.size)
                if not has_valid_checksum(batch):
                    self.report(
                        stored.path,
                        position,
                        f"the checksum of the batch at offset {header.base_offset} is not that of its bytes",
                    )
                    continue
                if header.base_offset < next_offset:
                    self.report(
                        stored.path,
                        position,
                        f"the batch begins at offset {header.base_offset}, and {next_offset} was to come",
                    )
                next_offset = max(next_offset, header.last_offset + 1)
                self._check_records(stored, position, header, batch)
                yield position, header, batch
            if end < size and not (is_last and stored.size > size):
                self.report(stored.path, end, f"{size - end} bytes that are no whole batch")
        except FileNotFoundError:
            return

    def _check_records(self, stored: LogFile, position: int, header: "BatchHeader", batch: memoryview) -> None:
        from ottla.wire.batches import decode_records
        from ottla.wire.errors import MalformedMessage

        try:
            records = decode_records(batch)
        except (MalformedMessage, ValueError) as error:
            self.report(
                stored.path,
                position,
                f"the records of the batch at offset {header.base_offset} cannot be read: {error}",
            )
            return
        self.record_count += len(records)
        if len(records) != header.record_count:
            self.report(stored.path, position, f"the batch says {header.record_count} records and has {len(records)}")
        offset = header.base_offset - 1
        for record in records:
            if not offset < record.offset <= header.last_offset:
                self.report(
                    stored.path,
                    position,
                    f"a record at offset {record.offset} after {offset}, in a batch that ends at {header.last_offset}",
                )
                return
            offset = record.offset


class _Partition:
    """The files of one log, read through once."""

    def __init__(self, verifying: Verifier, of_kind: dict[FileType, list[LogFile]]) -> None:
        from ottla.log.producer_state import ProducerStateManager

        self._verifier = verifying
        self._segments = sorted(of_kind[FileType.SEGMENT], key=lambda stored: stored.base_offset)
        self._indexes = {
            (stored.file_type, stored.base_offset): stored
            for kind in (FileType.OFFSET_INDEX, FileType.TIME_INDEX, FileType.TRANSACTION_INDEX)
            for stored in of_kind[kind]
        }
        self._snapshots = sorted(of_kind[FileType.PRODUCERS], key=lambda stored: stored.base_offset)
        self._producers = ProducerStateManager()
        self._first_offset = self._segments[0].base_offset
        self._epochs = self._read_epochs(of_kind[FileType.EPOCHS])
        self._latest_epoch = -1

    def verify(self) -> LogEnd:
        next_offset = self._first_offset
        for at, stored in enumerate(self._segments):
            next_offset = max(next_offset, stored.base_offset)
            next_offset = self._verify_segment(stored, next_offset, is_last=at == len(self._segments) - 1)
            following = self._segments[at + 1].base_offset if at + 1 < len(self._segments) else None
            if following is not None and next_offset > following:
                self._verifier.report(
                    stored.path,
                    -1,
                    f"it ends at offset {next_offset - 1}, and the next check_segment begins at {following}",
                )
        self._compare_snapshots(next_offset)
        for snapshot in self._snapshots:
            self._verifier.report(
                snapshot.path, -1, f"it is of offset {snapshot.base_offset}, and the log ends at {next_offset}"
            )
        return LogEnd(next_offset, self._segments[-1].base_offset)

    def _verify_segment(self, stored: LogFile, next_offset: int, *, is_last: bool) -> int:
        from ottla.log.transaction_index import AbortedTransaction

        verifying = self._verifier
        positions: list[int] = []
        bounds: list[tuple[int, int, int]] = []
        aborted: list[AbortedTransaction] = []
        for position, header, batch in verifying.check_segment(stored, next_offset=next_offset, is_last=is_last):
            self._compare_snapshots(header.base_offset)
            verifying.batch_count += 1
            next_offset = header.last_offset + 1
            positions.append(position)
            bounds.append((header.base_offset, header.last_offset, header.max_timestamp))
            self._check_epoch(stored, position, header)
            ended = self._producers.on_batch(header, batch)
            if ended is not None:
                aborted.append(ended)
        self._check_offsets(stored, positions, bounds)
        self._check_times(stored, bounds)
        self._check_transactions(stored, aborted, is_last=is_last)
        return next_offset

    def _check_epoch(self, stored: LogFile, position: int, header: "BatchHeader") -> None:
        if header.leader_epoch < self._latest_epoch:
            self._verifier.report(
                stored.path, position, f"leader epoch {header.leader_epoch} after {self._latest_epoch}"
            )
        self._latest_epoch = max(self._latest_epoch, header.leader_epoch)
        # An epoch that has just begun may not be in the file yet, which is written from time to time.
        known = -1 if self._epochs is None else self._epochs.epoch_for(header.base_offset)
        if (
            self._epochs is not None
            and 0 <= header.leader_epoch <= self._epochs.latest
            and known not in (-1, header.leader_epoch)
        ):
            self._verifier.report(
                stored.path,
                position,
                f"the batch at offset {header.base_offset} is of leader epoch "
                f"{header.leader_epoch}, and of {known} in leader-epoch-checkpoint",
            )
            self._epochs = None

    def _check_offsets(self, stored: LogFile, positions: list[int], bounds: list[tuple[int, int, int]]) -> None:
        index = self._indexes.get((FileType.OFFSET_INDEX, stored.base_offset))
        if index is None:
            return
        for number, (offset, position) in enumerate(self._verifier.check_index_entries(index)):
            at = bisect_left(positions, position)
            if at == len(positions) or positions[at] != position:
                self._verifier.report(
                    index.path, number * 8, f"no batch begins at position {position}, where offset {offset} should be"
                )
                return
            if offset < bounds[at][0]:
                self._verifier.report(
                    index.path,
                    number * 8,
                    f"the batch at position {position} begins at offset {bounds[at][0]}, after {offset}",
                )
                return

    def _check_times(self, stored: LogFile, bounds: list[tuple[int, int, int]]) -> None:
        index = self._indexes.get((FileType.TIME_INDEX, stored.base_offset))
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
                    f"a record up to offset {offset} has timestamp {latest}, later than {timestamp}",
                )
                return
            if bounds and offset > bounds[-1][1]:
                self._verifier.report(
                    index.path, number * 12, f"offset {offset} lies behind the check_segment's end, {bounds[-1][1]}"
                )
                return

    def _check_transactions(self, stored: LogFile, aborted: "Iterable[NamedTuple]", *, is_last: bool) -> None:
        from ottla.log import transaction_index

        index = self._indexes.get((FileType.TRANSACTION_INDEX, stored.base_offset))
        if index is None or is_last:
            return  # that of the active check_segment is written when it is closed, and checked by itself

        def compare() -> None:
            for entry in transaction_index.decode(read_bytes(index.path), index.path):
                if (
                    entry.last_offset >= self._first_offset
                    and entry not in found
                    and entry.first_offset >= self._first_offset
                ):
                    self._verifier.report(index.path, -1, f"{entry} is not what the markers in the log report")

        found = list(aborted)
        self._verifier.try_read(index, compare)

    def _compare_snapshots(self, next_offset: int) -> None:
        """Those of an offset that the log has just come to: what is remembered of a producer must be what its batches report."""
        from ottla.log.producer_state import ProducerStateManager

        while self._snapshots and self._snapshots[0].base_offset <= next_offset:
            snapshot = self._snapshots.pop(0)
            kept = ProducerStateManager()
            problems = len(self._verifier.problems)
            self._verifier.try_read(snapshot, partial(_restore, kept, snapshot))
            if len(self._verifier.problems) == problems:
                self._compare(snapshot, kept)

    def _compare(self, snapshot: LogFile, kept: "ProducerStateManager") -> None:
        for producer_id, producer in kept.items():
            if not producer.batches or producer.batches[-1][3] < self._first_offset:
                continue  # its batches have been deleted since
            found = self._producers.get(producer_id)
            told = producer.epoch, producer.batches[-1][1], producer.batches[-1][3]
            read = (
                (found.epoch, found.batches[-1][1], found.batches[-1][3])
                if found is not None and found.batches
                else None
            )
            if read != told:
                self._verifier.report(
                    snapshot.path,
                    -1,
                    f"producer {producer_id} has epoch, sequence and offset {told}, and {read} in the log",
                )

    def _read_epochs(self, files: list[LogFile]) -> "LeaderEpochCache | None":
        found: list[LeaderEpochCache] = []
        for stored in files:
            self._verifier.try_read(stored, partial(_decode_epochs, stored, found))
        return found[0] if found else None


def _read_through(stored: LogFile) -> None:
    for _ in dump(stored, with_records=False):
        continue


def _restore(table: "ProducerStateManager", snapshot: LogFile) -> None:
    table.restore(read_bytes(snapshot.path))


def _decode_epochs(stored: LogFile, found: "list[LeaderEpochCache]") -> None:
    from ottla.log import leader_epoch_cache

    found.append(leader_epoch_cache.decode(read_bytes(stored.path), stored.path))
