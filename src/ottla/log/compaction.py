"""Compaction of one log: for each key, only the latest record is retained. Runs in a child process.

First the keys of the dirty part and their latest offsets are read into memory, as many as fit. Then all segments up to
there are rewritten, in groups: each group becomes one segment in new files, which the broker swaps in.
"""

from collections.abc import Iterator, Sequence

from ottla.base.ports import Disk, File
from ottla.log.compaction_filter import BatchFilter, ProducerEnd, RetainedOffsets
from ottla.log.compaction_plan import (
    Cleaned,
    CleaningFailed,
    CompactionRequest,
    Report,
    SegmentGroupCleaned,
    SegmentsMissing,
    encode_report,
)
from ottla.log.compaction_records import CorruptSegment, locate_keys, read_payloads, read_rows, read_windows
from ottla.log.compaction_segments import CleanedSegmentWriter, SegmentTooLarge
from ottla.log.compaction_transactions import TransactionFilter, find_transactions, headers
from ottla.log.offset_map import OffsetMap
from ottla.log.segment import LOG_SUFFIX


def serve(disk: Disk, request: bytes) -> Iterator[bytes | float]:
    """Run a request. Yields reports as bytes; a number is the minimum time in seconds since the previous number."""
    try:
        for step in Cleaner(disk, CompactionRequest.decode(request)).run():
            yield step if isinstance(step, float) else encode_report(step)
    except (CorruptSegment, SegmentTooLarge) as error:
        yield encode_report(CleaningFailed(str(error)))
    except FileNotFoundError as error:
        yield encode_report(SegmentsMissing(str(error)))


class Cleaner:
    """One cleaner run over one log."""

    def __init__(self, disk: Disk, request: CompactionRequest) -> None:
        self._disk = disk
        self._request = request
        self._read_bytes = self._written_bytes = 0

    def run(self) -> Iterator[Report | float]:
        request = self._request
        transactions = find_transactions(self._files())
        end_offset = request.end_offset
        if transactions.first_open_offset is not None:
            # Records of open transactions may yet be aborted: do not clean the first such segment or later ones.
            end_offset = max((base for base in request.bases if base <= transactions.first_open_offset), default=0)
        offset_map = OffsetMap(request.seed)
        last = request.first_dirty_offset - 1
        for step in self._read_keys(offset_map, TransactionFilter(transactions), end_offset):
            if isinstance(step, float):
                yield step
            else:
                last = step
        if last < request.first_dirty_offset:
            yield Cleaned(request.first_dirty_offset, 0, self._read_bytes, 0)
            return
        retained = RetainedOffsets(offset_map, request.first_dirty_offset, last)
        producers = {producer_id: ProducerEnd(offset, epoch) for producer_id, offset, epoch in request.producers}
        batches = BatchFilter(
            retained,
            TransactionFilter(transactions),
            producers,
            now_ms=request.now_ms,
            delete_retention_ms=request.delete_retention_ms,
            end_offset=end_offset,
        )
        for group in group_segments(request, end_offset=end_offset, clean_to=last + 1):
            yield from self._clean_group(group, batches)
        yield Cleaned(last + 1, len(offset_map), self._read_bytes, self._written_bytes)

    def _read_keys(
        self, offset_map: OffsetMap, transactions: TransactionFilter, end_offset: int
    ) -> Iterator[int | float]:
        """Add the keys of the dirty part to the map. Yields the last offset read, and as floats the times to spend."""
        request = self._request
        for index, (file, size) in enumerate(self._files()):
            base = request.bases[index]
            next_base = self._end_of(index)
            if base >= end_offset:
                return
            if next_base <= request.first_dirty_offset:
                self._track_transactions(transactions, file, size)
                continue
            for window in read_windows(file, size):
                chosen = []
                for number, (at, header) in enumerate(window.batches):
                    if header.is_control:
                        transactions.is_marker_discardable(header, window.data[at : at + header.size])
                    elif (
                        not transactions.is_discardable(header)
                        and header.record_count > 0
                        and header.last_offset >= request.first_dirty_offset
                    ):
                        chosen.append(number)
                if chosen:
                    found = read_payloads(window, chosen)
                    rows = read_rows(found)
                    sizes, starts, _ = locate_keys(found.octets, rows.after_offset, rows.ends)
                    is_included = (sizes >= 0) & (rows.offsets >= request.first_dirty_offset)
                    offsets = rows.offsets
                    if not is_included.all():
                        sizes, starts, offsets = sizes[is_included], starts[is_included], offsets[is_included]
                    offset_map.put(offset_map.read_keys(found.octets, starts, sizes), offsets)
                yield max(window.batches[-1][1].last_offset, request.first_dirty_offset - 1)
                yield self._throttle(len(window.data))
                if offset_map.memory_bytes >= request.key_memory_bytes:
                    return
            yield next_base - 1  # even if offsets are missing at the end of the segment

    def _files(self, indexes: Sequence[int] | None = None) -> Iterator[tuple[File, int]]:
        """Yield file and size of all segments, or of some. Only one file is open at a time."""
        for index in range(len(self._request.bases)) if indexes is None else indexes:
            file = self._disk.open_read_only(f"{self._request.directory}/{self._request.bases[index]:020d}{LOG_SUFFIX}")
            try:
                yield file, self._request.sizes[index]
            finally:
                file.close()

    def _track_transactions(self, transactions: TransactionFilter, file: File, size: int) -> None:
        """Read the headers of a clean segment: its transactions may end in the dirty part."""
        for at, header in headers(file, size):
            if header.is_control:
                transactions.is_marker_discardable(header, file.read_at(at, header.size))
            else:
                transactions.is_discardable(header)

    def _clean_group(self, group: Sequence[int], batches: BatchFilter) -> Iterator[Report | float]:
        request = self._request
        output = CleanedSegmentWriter(
            self._disk, request.directory, request.bases[group[0]], index_interval_bytes=request.index_interval_bytes
        )
        batches.begin_group(self._end_of(group[-1]))
        for file, size in self._files(group):
            for window in read_windows(file, size):
                before = output.size
                batches.clean(window, output)
                self._written_bytes += output.size - before
                yield self._throttle(len(window.data) + output.size - before)
        output.finish(batches.drain_aborted())
        yield SegmentGroupCleaned(tuple(request.bases[index] for index in group), output.size)

    def _end_of(self, index: int) -> int:
        """Return where the next segment starts."""
        bases = self._request.bases
        return bases[index + 1] if index + 1 < len(bases) else self._request.end_offset

    def _throttle(self, count: int) -> float:
        """Count bytes read or written, and return the seconds that they must take at least."""
        self._read_bytes += count
        return count / self._request.bytes_per_second


def group_segments(request: CompactionRequest, *, end_offset: int, clean_to: int) -> list[list[int]]:
    """Group segments that become one, within the limits on size, index size and offset range of a segment."""
    groups: list[list[int]] = []
    size = index_size = 0
    for index, base in enumerate(request.bases):
        if base >= min(clean_to, end_offset):
            break
        next_base = request.bases[index + 1] if index + 1 < len(request.bases) else request.end_offset
        size += request.sizes[index]
        index_size += request.index_sizes[index]
        fits = (
            bool(groups)
            and size <= request.segment_bytes
            and index_size <= request.segment_index_bytes
            and (request.sizes[index] == 0 or next_base - 1 - request.bases[groups[-1][0]] <= 0x7FFF_FFFF)
        )
        if fits:
            groups[-1].append(index)
        else:
            groups.append([index])
            size, index_size = request.sizes[index], request.index_sizes[index]
    return groups
