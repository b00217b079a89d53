"""Filtering of batches: all of a batch is retained, some of its records, an empty batch with its offsets and sequence,
or nothing.

A batch that loses records keeps its first and last offset. Records are copied byte by byte. They are re-encoded only if
their batch gets a delete horizon (the time from which its tombstones or its marker may be removed): it replaces the
base timestamp of their deltas.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ottla.base.ports import Buffer
from ottla.log.compaction_records import Payloads, Rows, Window, are_tombstones, locate_keys, read_payloads, read_rows
from ottla.log.compaction_segments import CleanedSegmentWriter
from ottla.log.compaction_transactions import TransactionFilter
from ottla.log.offset_map import Column, Octets, OffsetMap
from ottla.log.transaction_index import AbortedTransaction
from ottla.wire.batches import (
    CODEC_MASK,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    NO_TIMESTAMP,
    RECORDS_AT,
    TRANSACTIONAL_BIT,
    BatchHeader,
    write_checksum,
)
from ottla.wire.column_fields import gather
from ottla.wire.compression import compress
from ottla.wire.varint import varint, varlong

SPAN_MAX = 1 << 28
"""Dirty parts of up to so many offsets use a byte per offset to mark retained ones; larger ones, a binary search."""


class ProducerEnd(NamedTuple):
    """An active producer's last batch, which is retained, at least as an empty one, for its epoch and sequence."""

    last_offset: int
    """-1 if only a marker of it is known."""
    epoch: int


class RetainedOffsets:
    """Finds the latest record of each key. The map has all keys from offset `first_dirty` to `last`."""

    def __init__(self, offset_map: OffsetMap, first_dirty: int, last: int) -> None:
        self._offset_map = offset_map
        self._first_dirty = first_dirty
        self.last = last
        latest = offset_map.latest_offsets()
        latest = latest[(latest >= first_dirty) & (latest <= last)]
        span = last + 1 - first_dirty
        self._is_latest: NDArray[np.bool_] | None = None
        if span <= SPAN_MAX:
            self._is_latest = np.zeros(max(span, 0), np.bool_)
            self._is_latest[latest - first_dirty] = True
        else:
            self._latest = np.sort(latest)

    def mask(self, octets: Octets, rows: Rows) -> NDArray[np.bool_]:
        """Return which rows are retained, judging by their keys. All rows after `last` are."""
        offsets = rows.offsets
        if len(offsets) and int(offsets[0]) >= self._first_dirty:
            is_retained = self._mask_by_offset(offsets)
        else:
            is_retained = self._mask_by_key(octets, rows)
        return is_retained | (offsets > self.last)

    def _mask_by_offset(self, offsets: Column) -> NDArray[np.bool_]:
        if self._is_latest is not None:
            return self._is_latest.take(offsets - self._first_dirty, mode="clip")
        indexes = np.searchsorted(self._latest, offsets)
        found: NDArray[np.bool_] = self._latest.take(indexes, mode="clip") == offsets
        return found

    def _mask_by_key(self, octets: Octets, rows: Rows) -> NDArray[np.bool_]:
        sizes, starts, _ = locate_keys(octets, rows.after_offset, rows.ends)
        has_key = sizes >= 0
        keys = self._offset_map.read_keys(octets, np.where(has_key, starts, 0), np.maximum(sizes, 0))
        is_retained: NDArray[np.bool_] = has_key & (rows.offsets >= self._offset_map.latest(keys))
        return is_retained


class BatchFilter:
    """Filter of one cleaner run. Gets all batches of the log in order."""

    def __init__(
        self,
        retained: RetainedOffsets,
        transactions: TransactionFilter,
        producers: Mapping[int, ProducerEnd],
        *,
        now_ms: int,
        delete_retention_ms: int,
        end_offset: int,
    ) -> None:
        self._retained = retained
        self._transactions = transactions
        self._producers = producers
        self._now_ms = now_ms
        self._horizon_ms = now_ms + delete_retention_ms
        self._end_offsets = {end_offset: None}
        """End offsets of the cleanable part and of each group. The batch before one is retained, at least as an empty
        batch: it marks the end of the log and which segments a new one replaces, and avoids a gap that looks like a
        missing segment."""

    def begin_group(self, end_offset: int) -> None:
        """Start a group: the following batches, up to this offset, become one segment."""
        self._end_offsets[end_offset] = None

    def clean(self, window: Window, output: CleanedSegmentWriter) -> None:
        """Write what is retained of a window."""
        outcomes, chosen = self._classify(window)
        records = None
        if chosen:
            headers = [window.batches[index][1] for index in chosen]
            records = _RetainedRecords(read_payloads(window, chosen), self._retained, headers, now_ms=self._now_ms)
        row_batch = 0
        for (at, header), outcome in zip(window.batches, outcomes, strict=True):
            batch: Buffer | None
            if outcome is _EMPTY:
                batch = self._empty(header)
            elif outcome is _FILTER:
                assert records is not None
                batch = self._filtered(window.data[at : at + header.size], header, records, row_batch)
                row_batch += 1
            elif outcome is _ADD_HORIZON:
                batch = _with_horizon(
                    header, [_split_only_record(window.data[at : at + header.size], header)], self._horizon_ms
                )
            elif outcome is _KEEP:
                batch = window.data[at : at + header.size]
            else:
                batch = None
            if batch is not None:
                output.append(batch, header.last_offset, HEADER.unpack_from(batch)[8])
        output.write()

    def drain_aborted(self) -> list[AbortedTransaction]:
        """Return the aborted transactions with retained batches whose markers were read since the last call."""
        return self._transactions.drain_retained_aborted()

    def _classify(self, window: Window) -> tuple[list[str], list[int]]:
        """Return the outcome for each batch, and the indexes of those whose records must be read."""
        outcomes, chosen = [], []
        for index, (at, header) in enumerate(window.batches):
            has_horizon = header.attributes & DELETE_HORIZON_BIT != 0
            outcome = _KEEP
            if header.is_control:
                if self._transactions.is_marker_discardable(header, window.data[at : at + header.size]):
                    outcome = _ADD_HORIZON
                    if has_horizon:
                        outcome = _EMPTY if header.base_timestamp <= self._now_ms else _KEEP
            elif self._transactions.is_discardable(header):
                outcome = _EMPTY
            else:
                outcome = _FILTER
            if header.record_count <= 0:
                outcome = _EMPTY
            if outcome is _EMPTY and not self._is_needed(header):
                outcome = _DISCARD
            if outcome is _FILTER:
                chosen.append(index)
            outcomes.append(outcome)
        return outcomes, chosen

    def _is_needed(self, header: BatchHeader) -> bool:
        """Whether a batch must stay even without records."""
        if header.last_offset + 1 in self._end_offsets:
            return True
        end = self._producers.get(header.producer_id) if header.producer_id >= 0 else None
        if end is None:
            return False
        if end.last_offset >= 0:
            return header.last_offset == end.last_offset
        return header.is_control and header.producer_epoch == end.epoch

    def _empty(self, header: BatchHeader) -> bytearray:
        batch = bytearray(RECORDS_AT)
        attributes = header.attributes & (LOG_APPEND_TIME_BIT | TRANSACTIONAL_BIT | CONTROL_BIT)
        HEADER.pack_into(
            batch,
            0,
            header.base_offset,
            RECORDS_AT - LENGTH_OVERHEAD,
            header.leader_epoch,
            MAGIC,
            0,
            attributes,
            header.last_offset_delta,
            NO_TIMESTAMP,
            header.max_timestamp,
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            0,
        )
        write_checksum(batch)
        return batch

    def _filtered(
        self, original: memoryview, header: BatchHeader, records: "_RetainedRecords", index: int
    ) -> Buffer | None:
        first, end = records.bounds[index], records.bounds[index + 1]
        if first == end:
            return self._empty(header) if self._is_needed(header) else None
        needs_horizon = records.has_tombstone[index] and not header.attributes & DELETE_HORIZON_BIT
        if needs_horizon:
            return _with_horizon(header, records.split(header, first, end), self._horizon_ms)
        if end - first == header.record_count:
            return original
        start, stop = records.positions[first], records.positions[end]
        payload: Buffer = memoryview(records.data[start:stop])  # type: ignore[arg-type]
        max_timestamp = (
            header.max_timestamp if header.has_log_append_time else header.base_timestamp + records.highest[index]
        )
        return _build(header, payload, end - first, header.base_timestamp, max_timestamp, header.attributes)


_DISCARD, _EMPTY, _FILTER, _ADD_HORIZON, _KEEP = "discard", "empty", "filter", "add horizon", "keep"
"""Outcome for a batch: remove it, empty it, filter its records, give a marker a delete horizon, or keep it."""


class _RetainedRecords:
    """The retained records of a window, in columns."""

    def __init__(self, found: Payloads, retained: RetainedOffsets, headers: list[BatchHeader], *, now_ms: int) -> None:
        octets = found.octets
        rows = read_rows(found)
        selected = np.flatnonzero(retained.mask(octets, rows))
        batch_of_row = np.repeat(np.arange(len(headers)), found.counts)[selected]
        _, _, after_key = locate_keys(octets, rows.after_offset[selected], rows.ends[selected])
        tombstones = are_tombstones(octets, after_key)
        if tombstones.any():
            # Remove expired tombstones, except those after the last offset in the map. Superseded ones are not selected
            # anyway.
            is_expired = np.array(
                [header.attributes & DELETE_HORIZON_BIT != 0 and header.base_timestamp <= now_ms for header in headers]
            )
            keeps = ~(tombstones & is_expired[batch_of_row] & (rows.offsets[selected] <= retained.last))
            selected, batch_of_row, tombstones = selected[keeps], batch_of_row[keeps], tombstones[keeps]
        self._octets = octets
        self._starts, self._ends = rows.starts[selected], rows.ends[selected]
        self._attributes_at = rows.attributes_at[selected]
        self._after_time, self._time_deltas = rows.after_time[selected], rows.time_deltas[selected]
        bounds = np.searchsorted(batch_of_row, np.arange(len(headers) + 1))
        self.bounds: list[int] = bounds.tolist()
        """Index of the first row of each batch, and after the last row."""
        self.has_tombstone: list[bool] = (np.bincount(batch_of_row[tombstones], minlength=len(headers)) > 0).tolist()
        self.highest = _highest(self._time_deltas, bounds)
        self.positions, self.data = self._gather(bounds, found.counts)

    def _gather(self, bounds: Column, counts: Column) -> tuple[list[int], Octets]:
        """Return the bytes of rows in batches that lose others, and their positions."""
        is_partial = np.diff(bounds) != counts
        sizes = np.where(np.repeat(is_partial, np.diff(bounds)), self._ends - self._starts, 0)
        positions, data = gather(self._octets, self._starts, sizes)
        return positions.tolist(), data

    def split(self, header: BatchHeader, first: int, end: int) -> list[tuple[int, int, bytes]]:
        """Return attributes, timestamp and the remaining bytes of each record."""
        data = self._octets
        records = []
        for attributes_at, after_time, record_end, delta in zip(
            self._attributes_at[first:end].tolist(),
            self._after_time[first:end].tolist(),
            self._ends[first:end].tolist(),
            self._time_deltas[first:end].tolist(),
            strict=True,
        ):
            timestamp = header.max_timestamp if header.has_log_append_time else header.base_timestamp + delta
            records.append((int(data[attributes_at]), timestamp, data[after_time:record_end].tobytes()))
        return records


def _highest(deltas: Column, bounds: Column) -> list[int]:
    """Return the highest timestamp delta of each batch's rows (an arbitrary number for a batch without rows)."""
    if not len(deltas):
        return [0] * (len(bounds) - 1)
    highest: list[int] = np.maximum.reduceat(deltas, np.minimum(bounds[:-1], len(deltas) - 1)).tolist()
    return highest


def _split_only_record(batch: memoryview, header: BatchHeader) -> tuple[int, int, bytes]:
    """Like `split`, for a marker."""
    octets = np.frombuffer(bytes(batch) + bytes(8), np.uint8)
    rows = read_rows(
        Payloads(octets, *(np.array([value], np.int64) for value in (RECORDS_AT, header.size, 1, header.base_offset)))
    )
    after_time, end = int(rows.after_time[0]), int(rows.ends[0])
    timestamp = header.max_timestamp if header.has_log_append_time else header.base_timestamp + int(rows.time_deltas[0])
    return 0, timestamp, octets[after_time:end].tobytes()


def _with_horizon(header: BatchHeader, records: list[tuple[int, int, bytes]], horizon_ms: int) -> bytearray:
    """Return the batch with the delete horizon as base timestamp."""
    payload = bytearray()
    for attributes, timestamp, rest in records:
        delta = varlong(timestamp - horizon_ms)
        payload += varint(1 + len(delta) + len(rest))
        payload.append(attributes)
        payload += delta
        payload += rest
    highest = header.max_timestamp if header.has_log_append_time else max(timestamp for _, timestamp, _ in records)
    return _build(header, payload, len(records), horizon_ms, highest, header.attributes | DELETE_HORIZON_BIT)


def _build(
    header: BatchHeader, payload: Buffer, count: int, base_timestamp: int, max_timestamp: int, attributes: int
) -> bytearray:
    codec = header.attributes & CODEC_MASK
    if codec:
        payload = compress(codec, bytes(payload))
    batch = bytearray(RECORDS_AT + len(payload))
    HEADER.pack_into(
        batch,
        0,
        header.base_offset,
        len(payload) + RECORDS_AT - LENGTH_OVERHEAD,
        header.leader_epoch,
        MAGIC,
        0,
        attributes,
        header.last_offset_delta,
        base_timestamp,
        max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        count,
    )
    batch[RECORDS_AT:] = payload
    write_checksum(batch)
    return batch
