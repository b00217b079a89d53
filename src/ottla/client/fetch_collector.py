"""Returns fetched records: complete responses as columns, or records in portions. Moves positions accordingly."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.client.column_batch import ColumnBatch
from ottla.client.errors import broker_error
from ottla.client.fetcher import CompletedFetch, Fetcher
from ottla.client.positions import Positions
from ottla.client.records import ConsumerRecord, TopicPartition
from ottla.wire.column_decoding import FetchedPartition, decode_fetched
from ottla.wire.errors import MalformedMessage


class _PartitionRows:
    """Rows of one partition that are not returned yet."""

    __slots__ = ("end", "epoch", "next_offset", "partition", "row", "seek_id")

    def __init__(
        self, partition: TopicPartition, seek_id: int, row: int, end: int, next_offset: int, epoch: int
    ) -> None:
        self.partition = partition
        self.seek_id = seek_id
        self.row = row
        self.end = end
        self.next_offset = next_offset
        self.epoch = epoch


class Chunk:
    """Records to iterate over. The list iterator itself tracks the progress, so that iterating costs nothing extra."""

    __slots__ = ("_iterator", "_size", "after", "partition", "records")

    def __init__(self, partition: TopicPartition, records: list[ConsumerRecord], after: tuple[int, int]) -> None:
        self.partition = partition
        self.records = records
        self.after = after
        """Offset and epoch of the position after the last record."""
        self._size = len(records)
        self._iterator = iter(records)

    def __iter__(self) -> Iterator[ConsumerRecord]:
        return self._iterator

    @property
    def reached(self) -> tuple[int, int] | None:
        """Offset and epoch after the last record that was taken, or None if none was."""
        left: int = self._iterator.__length_hint__()  # type: ignore[attr-defined]
        if left == 0:
            return self.after
        if left == self._size:
            return None
        last = self.records[self._size - left - 1]
        return last.offset + 1, last.leader_epoch

    @property
    def is_exhausted(self) -> bool:
        return self._iterator.__length_hint__() == 0  # type: ignore[attr-defined,no-any-return]

    def drop(self) -> None:
        """End the iteration at its next step."""
        self.records.clear()
        self._size = 0


class FetchCollector:
    """Takes results from the fetcher and decodes them, one at a time."""

    def __init__(
        self,
        fetcher: Fetcher,
        positions: Positions,
        *,
        read_committed: bool,
        check_crcs: bool,
        key: Callable[[bytes], Any] | None,
        value: Callable[[bytes], Any] | None,
        intercept: Callable[[list[ConsumerRecord]], list[ConsumerRecord]] | None = None,
    ) -> None:
        self._intercept = intercept
        self._fetcher = fetcher
        self._positions = positions
        self._read_committed = read_committed
        self._check_crcs = check_crcs
        self._key, self._value = key, value
        self._batch: ColumnBatch | None = None
        self._remaining: list[_PartitionRows] = []
        self._paused: dict[TopicPartition, list[CompletedFetch]] = {}
        self._chunk: Chunk | None = None
        self.records_returned = 0

    # Reading

    def next_batch(self) -> ColumnBatch | None:
        """Return the next response with records, as columns."""
        self._rewind_partial()
        batch = self._decode_next()
        if batch is None:
            return None
        for rows in self._remaining:
            self._positions.advance(rows.partition, rows.next_offset, rows.epoch)
        self._remaining = []
        self._batch = None
        self.records_returned += len(batch)
        return batch

    def next_records(self, records_max: int) -> list[ConsumerRecord]:
        """Return up to `records_max` buffered records, partition by partition."""
        self.sync_position()
        if self._chunk is not None:
            taken = list(islice(self._chunk, records_max))
            self.sync_position()
            return taken
        taken = []
        while len(taken) < records_max:
            found = self._next_rows(records_max - len(taken))
            if found is None:
                break
            rows, records, after = found
            self._positions.advance(rows.partition, *after)
            taken += records
            if not self._remaining and not self._fetcher.results:
                break
        self.records_returned += len(taken)
        return self._intercept(taken) if self._intercept is not None and taken else taken

    def next_chunk(self, records_max: int) -> Chunk | None:
        """Return records of one partition to iterate over; the position follows. Returns an unfinished chunk again."""
        self.sync_position()
        if self._chunk is not None:
            return self._chunk
        found = self._next_rows(records_max)
        if found is None:
            return None
        rows, records, after = found
        self.records_returned += len(records)
        self._chunk = Chunk(rows.partition, records if self._intercept is None else self._intercept(records), after)
        return self._chunk

    def sync_position(self) -> None:
        """Move the position to where the current iteration is."""
        chunk = self._chunk
        if chunk is None:
            return
        reached = chunk.reached
        if reached is not None:
            self._positions.advance(chunk.partition, *reached)
        if chunk.is_exhausted:
            self._chunk = None

    def discard(self, partition: TopicPartition) -> None:
        """Drop the rest of a partition's records, after a seek, pause or removal. Ends an iteration over them."""
        chunk = self._chunk
        if chunk is not None and chunk.partition == partition:
            self.sync_position()
            chunk.drop()
            self._chunk = None
        self._paused.pop(partition, None)

    def pause(self, partition: TopicPartition) -> None:
        """Hold back a partition's buffered results. Records of a partly read result are fetched again later."""
        held_back = self._paused.get(partition)
        started = (self._chunk is not None and self._chunk.partition == partition) or any(
            s.partition == partition for s in self._remaining
        )
        self.discard(partition)
        if started:
            self._positions.states[partition].rewind()
        elif held_back:
            self._paused[partition] = held_back

    def resume(self, partition: TopicPartition) -> None:
        parts = self._paused.pop(partition, None)
        if parts:
            for part in reversed(parts):
                self._fetcher.requeue([part])

    # Decoding

    def _next_rows(self, rows_max: int) -> tuple[_PartitionRows, list[ConsumerRecord], tuple[int, int]] | None:
        """Return records of the next valid rows, and the offset and epoch of the position after them."""
        while True:
            while self._remaining and self._batch is not None:
                rows = self._remaining[0]
                state = self._positions.states.get(rows.partition)
                if state is None or state.seek_id != rows.seek_id:
                    self._remaining.pop(0)
                    continue
                first = rows.row
                rows.row = min(first + rows_max, rows.end)
                after = (rows.next_offset, rows.epoch)
                if rows.row == rows.end:
                    self._remaining.pop(0)
                records = self._batch.records(first, rows.row, key=self._key, value=self._value)
                if records:
                    last = records[-1]
                    return (
                        rows,
                        records,
                        after if rows.row == rows.end else (last.offset + 1, last.leader_epoch),
                    )
                self._positions.advance(rows.partition, *after)
            if self._decode_next() is None:
                return None

    def _rewind_partial(self) -> None:
        """Refetch the rest of results that were partly read as records: it cannot be returned as columns."""
        chunk = self._chunk
        begun = [rows.partition for rows in self._remaining]
        if chunk is not None:
            self.discard(chunk.partition)
            begun.append(chunk.partition)
        for rows in self._remaining:
            state = self._positions.states.get(rows.partition)
            if state is None or state.seek_id != rows.seek_id:
                begun.remove(rows.partition)
        for partition in dict.fromkeys(begun):
            state = self._positions.states.get(partition)
            if state is not None:
                state.rewind()
        self._remaining = []

    def _decode_next(self) -> ColumnBatch | None:
        """Decode the next result with rows into `_batch` and `_remaining`."""
        while True:
            result = self._fetcher.take()
            if result is None:
                return None
            parts = self._current_parts(result.parts)
            if not parts:
                continue
            try:
                columns = decode_fetched(
                    [FetchedPartition(part.records, part.fetch_offset, part.aborted) for part in parts],
                    read_committed=self._read_committed,
                    check_crcs=self._check_crcs,
                )
            except MalformedMessage as error:
                self._on_corrupt_data(parts, error)
                continue
            batch = ColumnBatch([part.partition for part in parts], columns)
            self._batch = batch
            self._remaining = [
                _PartitionRows(
                    part.partition,
                    part.seek_id,
                    batch.bounds[index],
                    batch.bounds[index + 1],
                    columns.next_offsets[index],
                    columns.last_epochs[index],
                )
                for index, part in enumerate(parts)
            ]
            if len(batch):
                return batch
            for rows in self._remaining:
                self._positions.advance(rows.partition, rows.next_offset, rows.epoch)
            self._remaining = []

    def _current_parts(self, parts: list[CompletedFetch]) -> list[CompletedFetch]:
        """Return the parts whose position is still current; hold back those of paused partitions."""
        current = []
        for part in parts:
            state = self._positions.states.get(part.partition)
            if state is None or state.seek_id != part.seek_id:
                continue
            if state.is_paused:
                self._paused.setdefault(part.partition, []).append(part)
                continue
            current.append(part)
        return current

    def _on_corrupt_data(self, parts: list[CompletedFetch], error: MalformedMessage) -> None:
        """Raise for a corrupt partition. With several partitions, first requeue each on its own to find it."""
        if len(parts) > 1:
            for part in reversed(parts):
                self._fetcher.requeue([part])
            return
        part = parts[0]
        self._positions.states[part.partition].rewind()
        about = f"{part.partition} from offset {part.fetch_offset}"
        raise broker_error(ErrorCode.CORRUPT_MESSAGE, f"{error}; seek past it to continue", about=about)
