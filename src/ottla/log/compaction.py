"""Compaction of one log: of each key the latest record stays. It is done by a process of its own, which is given a request and reports.

Keys and their latest offsets are taken from the part of the log that was not cleaned yet, as many as memory allows. Then all segments up to
there are written anew, one group after another, each group as one segment beside the old ones. Whoever asked swaps them.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ottla.base.ports import Disk, File
from ottla.log.segment import LOG_SUFFIX


class CompactionRequest(NamedTuple):
    """What is to be cleaned, as the log was when this was asked."""

    directory: str
    bases: tuple[int, ...]
    """Of the segments before `end_offset`, in order."""
    sizes: tuple[int, ...]
    index_sizes: tuple[int, ...]
    """Of the larger index of each segment, in bytes."""
    first_dirty_offset: int
    end_offset: int
    """Where the first segment starts that may not be cleaned."""
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    key_memory_bytes: int
    """When the keys take so much, no more are added in this round."""
    bytes_per_second: float
    producers: tuple[tuple[int, int, int], ...] = ()
    """Id of each that is still known, the last offset of its records or -1, its epoch."""
    seed: int = 0

    def encode(self) -> bytes:
        import json  # here and below: a node that never compacts need not load it

        return json.dumps(self._asdict()).encode()

    @classmethod
    def decode(cls, data: bytes) -> "CompactionRequest":
        import json

        fields = json.loads(data)
        lists = {name: tuple(fields[name]) for name in ("bases", "sizes", "index_sizes")}
        return cls(**{**fields, **lists, "producers": tuple(tuple(producer) for producer in fields["producers"])})


class SegmentGroupCleaned(NamedTuple):
    """The files of one group are complete: segments with these bases become one, which starts where the first of them does."""

    bases: tuple[int, ...]
    size: int


class Cleaned(NamedTuple):
    """The end of a round."""

    end_offset: int
    """What lies before is clean."""
    keys: int
    read_bytes: int
    written_bytes: int


class CleaningFailed(NamedTuple):
    """The log holds something that cannot be cleaned, which another try would not change."""

    reason: str


class SegmentsMissing(NamedTuple):
    """A segment is not there any more: the log has changed, and may be asked for again."""

    reason: str


Report = SegmentGroupCleaned | Cleaned | CleaningFailed | SegmentsMissing
_REPORTS: dict[str, Any] = {
    kind.__name__: kind for kind in (SegmentGroupCleaned, Cleaned, CleaningFailed, SegmentsMissing)
}


def encode_report(report: Report) -> bytes:
    import json

    return json.dumps([type(report).__name__, report._asdict()]).encode()


def decode_report(data: bytes) -> Report:
    import json

    name, fields = json.loads(data)
    if "bases" in fields:
        fields["bases"] = tuple(fields["bases"])
    report: Report = _REPORTS[name](**fields)
    return report


def serve(disk: Disk, request: bytes) -> Iterator[bytes | float]:
    """Do what a request asks for. Reports are bytes; a number is a time in seconds that the work so far should have taken at least."""
    from ottla.log.compaction_output import SegmentTooLarge
    from ottla.log.compaction_records import CorruptSegment

    asked = CompactionRequest.decode(request)
    try:
        for step in Cleaner(disk, asked).run():
            yield step if isinstance(step, float) else encode_report(step)
    except (CorruptSegment, SegmentTooLarge) as error:
        yield encode_report(CleaningFailed(str(error)))
    except FileNotFoundError as error:
        yield encode_report(SegmentsMissing(str(error)))


class Cleaner:
    """One round over one log."""

    def __init__(self, disk: Disk, asked: CompactionRequest) -> None:
        self._disk = disk
        self._asked = asked
        self._read_bytes = self._written_bytes = 0

    def run(self) -> Iterator[Report | float]:
        from ottla.log.compaction_filter import BatchFilter, ProducerEnd, RetainedOffsets
        from ottla.log.compaction_transactions import TransactionFilter, find_transactions
        from ottla.log.offset_map import OffsetMap

        asked = self._asked
        transactions = find_transactions(self._files())
        end_offset = asked.end_offset
        if transactions.first_open_offset is not None:
            # What an open transaction has written may yet be aborted: nothing from its segment on is cleaned.
            end_offset = max((base for base in asked.bases if base <= transactions.first_open_offset), default=0)
        table = OffsetMap(asked.seed)
        last = asked.first_dirty_offset - 1
        for step in self._read_keys(table, TransactionFilter(transactions), end_offset):
            if isinstance(step, float):
                yield step
            else:
                last = step
        if last < asked.first_dirty_offset:
            yield Cleaned(asked.first_dirty_offset, 0, self._read_bytes, 0)
            return
        survivors = RetainedOffsets(table, asked.first_dirty_offset, last)
        producers = {producer_id: ProducerEnd(offset, epoch) for producer_id, offset, epoch in asked.producers}
        batches = BatchFilter(
            survivors,
            TransactionFilter(transactions),
            producers,
            now_ms=asked.now_ms,
            delete_retention_ms=asked.delete_retention_ms,
            end_offset=end_offset,
        )
        for group in group_segments(asked, end_offset=end_offset, clean_to=last + 1):
            yield from self._clean_group(group, batches)
        yield Cleaned(last + 1, len(table), self._read_bytes, self._written_bytes)

    def _read_keys(self, table: Any, transactions: Any, end_offset: int) -> Iterator[int | float]:
        """Fill the table from the dirty part; yields the last offset that was looked at, again and again."""
        from ottla.log.compaction_records import payloads, read_key_places, read_rows, windows

        asked = self._asked
        for index, (file, size) in enumerate(self._files()):
            base = asked.bases[index]
            next_base = self._end_of(index)
            if base >= end_offset:
                return
            if next_base <= asked.first_dirty_offset:
                self._skip(transactions, file, size)
                continue
            for window in windows(file, size):
                chosen = []
                for number, (at, header) in enumerate(window.batches):
                    if header.is_control:
                        transactions.is_marker_discardable(header, window.data[at : at + header.size])
                    elif (
                        not transactions.is_discardable(header)
                        and header.record_count > 0
                        and header.last_offset >= asked.first_dirty_offset
                    ):
                        chosen.append(number)
                if chosen:
                    found = payloads(window, chosen)
                    rows = read_rows(found)
                    sizes, starts, _ = read_key_places(found.octets, rows.after_offset, rows.ends)
                    wanted = (sizes >= 0) & (rows.offsets >= asked.first_dirty_offset)
                    offsets = rows.offsets
                    if not wanted.all():
                        sizes, starts, offsets = sizes[wanted], starts[wanted], offsets[wanted]
                    table.put(table.read_keys(found.octets, starts, sizes), offsets)
                yield max(window.batches[-1][1].last_offset, asked.first_dirty_offset - 1)
                yield self._moved(len(window.data))
                if table.memory_bytes >= asked.key_memory_bytes:
                    return
            yield next_base - 1  # whatever offsets are missing at the end of a segment

    def _files(self, indexes: Sequence[int] | None = None) -> Iterator[tuple[File, int]]:
        """The segments, or some of them, each with its size; one is open at a time."""
        for index in range(len(self._asked.bases)) if indexes is None else indexes:
            file = self._disk.open_read_only(f"{self._asked.directory}/{self._asked.bases[index]:020d}{LOG_SUFFIX}")
            try:
                yield file, self._asked.sizes[index]
            finally:
                file.close()

    def _skip(self, transactions: Any, file: File, size: int) -> None:
        """Transactions that began in the clean part may end in the dirty one."""
        from ottla.log.compaction_transactions import headers

        for at, header in headers(file, size):
            if header.is_control:
                transactions.is_marker_discardable(header, file.read_at(at, header.size))
            else:
                transactions.is_discardable(header)

    def _clean_group(self, group: Sequence[int], batches: Any) -> Iterator[Report | float]:
        from ottla.log.compaction_output import CleanedSegment
        from ottla.log.compaction_records import windows

        asked = self._asked
        output = CleanedSegment(
            self._disk, asked.directory, asked.bases[group[0]], index_interval_bytes=asked.index_interval_bytes
        )
        batches.begin_group(self._end_of(group[-1]))
        for file, size in self._files(group):
            for window in windows(file, size):
                before = output.size
                batches.clean(window, output)
                self._written_bytes += output.size - before
                yield self._moved(len(window.data) + output.size - before)
        output.finish(batches.take_aborted())
        yield SegmentGroupCleaned(tuple(asked.bases[index] for index in group), output.size)

    def _end_of(self, index: int) -> int:
        """Where the next segment starts."""
        bases = self._asked.bases
        return bases[index + 1] if index + 1 < len(bases) else self._asked.end_offset

    def _moved(self, count: int) -> float:
        self._read_bytes += count
        return count / self._asked.bytes_per_second


def group_segments(asked: CompactionRequest, *, end_offset: int, clean_to: int) -> list[list[int]]:
    """Segments that become one: together they are no larger than one may be, nor are their indexes, nor is the range of their offsets."""
    groups: list[list[int]] = []
    size = index_size = 0
    for index, base in enumerate(asked.bases):
        if base >= min(clean_to, end_offset):
            break
        next_base = asked.bases[index + 1] if index + 1 < len(asked.bases) else asked.end_offset
        size += asked.sizes[index]
        index_size += asked.index_sizes[index]
        fits = (
            bool(groups)
            and size <= asked.segment_bytes
            and index_size <= asked.segment_index_bytes
            and (asked.sizes[index] == 0 or next_base - 1 - asked.bases[groups[-1][0]] <= 0x7FFF_FFFF)
        )
        if fits:
            groups[-1].append(index)
        else:
            groups.append([index])
            size, index_size = asked.sizes[index], asked.index_sizes[index]
    return groups
