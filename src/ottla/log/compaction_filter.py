"""What stays of a batch: all of it, some of its records, an empty batch that keeps its offsets and sequence, or nothing.

A batch keeps its first and last offset whatever it loses. Records are copied as the bytes that they are; only where a batch gets its delete
horizon (the time from which its tombstones, or its marker, may go) are their timestamps written anew, since the horizon stands where the
timestamp was that they count from.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ottla.base.ports import Buffer
from ottla.log.compaction_output import CleanedSegment
from ottla.log.compaction_records import Payloads, Rows, Window, are_tombstones, payloads, read_key_places, read_rows
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
"""So many offsets are told from one another by a byte each; of more, those that stay are searched for."""


class ProducerEnd(NamedTuple):
    """The last thing that a producer which is still known wrote: its batch stays, since its epoch and sequence are in it."""

    last_offset: int
    """-1 where only a marker is known of it."""
    epoch: int


class RetainedOffsets:
    """Which records are the latest of their keys. Those from `first_dirty` to `last` were all put into the table."""

    def __init__(self, table: OffsetMap, first_dirty: int, last: int) -> None:
        self._table = table
        self._first_dirty = first_dirty
        self.last = last
        latest = table.all_latest()
        latest = latest[(latest >= first_dirty) & (latest <= last)]
        span = last + 1 - first_dirty
        self._is_latest: NDArray[np.bool_] | None = None
        if span <= SPAN_MAX:
            self._is_latest = np.zeros(max(span, 0), np.bool_)
            self._is_latest[latest - first_dirty] = True
        else:
            self._latest = np.sort(latest)

    def among(self, octets: Octets, rows: Rows) -> NDArray[np.bool_]:
        """Which rows stay, as far as their keys say. Those behind the last offset that was looked at all stay."""
        offsets = rows.offsets
        if len(offsets) and int(offsets[0]) >= self._first_dirty:
            stays = self._among_dirty(offsets)
        else:
            stays = self._by_keys(octets, rows)
        return stays | (offsets > self.last)

    def _among_dirty(self, offsets: Column) -> NDArray[np.bool_]:
        if self._is_latest is not None:
            return self._is_latest.take(offsets - self._first_dirty, mode="clip")
        places = np.searchsorted(self._latest, offsets)
        found: NDArray[np.bool_] = self._latest.take(places, mode="clip") == offsets
        return found

    def _by_keys(self, octets: Octets, rows: Rows) -> NDArray[np.bool_]:
        sizes, starts, _ = read_key_places(octets, rows.after_offset, rows.ends)
        has_key = sizes >= 0
        latest = self._table.latest(self._table.read_keys(octets, np.where(has_key, starts, 0), np.maximum(sizes, 0)))
        stays: NDArray[np.bool_] = has_key & (rows.offsets >= latest)
        return stays


class BatchFilter:
    """One round of cleaning: it is given all batches in their order."""

    def __init__(
        self,
        survivors: RetainedOffsets,
        transactions: TransactionFilter,
        producers: Mapping[int, ProducerEnd],
        *,
        now_ms: int,
        delete_retention_ms: int,
        end_offset: int,
    ) -> None:
        self._survivors = survivors
        self._transactions = transactions
        self._producers = producers
        self._now_ms = now_ms
        self._horizon_ms = now_ms + delete_retention_ms
        self._end_offsets = {end_offset: None}
        """Of all that may be cleaned, and of the group. The batch before it is never lost: where the log ends must not be forgotten, nor
        which segments were replaced, nor may it look as if a segment were missing."""

    def begin_group(self, end_offset: int) -> None:
        """What follows becomes one segment, up to this offset."""
        self._end_offsets[end_offset] = None

    def clean(self, window: Window, output: CleanedSegment) -> None:
        """Write what stays of a window."""
        fates, chosen = self._judge(window)
        found = kept = None
        if chosen:
            found = payloads(window, chosen)
            kept = _Kept(found, self._survivors, [window.batches[index][1] for index in chosen], now_ms=self._now_ms)
        row_batch = 0
        for (at, header), fate in zip(window.batches, fates, strict=True):
            batch: Buffer | None
            if fate is _EMPTY:
                batch = self._empty(header)
            elif fate is _RECORDS:
                assert kept is not None
                batch = self._records_of(window.data[at : at + header.size], header, kept, row_batch)
                row_batch += 1
            elif fate is _MARK:
                batch = _with_horizon(
                    header, [_split_only_record(window.data[at : at + header.size], header)], self._horizon_ms
                )
            elif fate is _WHOLE:
                batch = window.data[at : at + header.size]
            else:
                batch = None
            if batch is not None:
                output.append(batch, header.last_offset, HEADER.unpack_from(batch)[8])
        output.write()

    def take_aborted(self) -> list[AbortedTransaction]:
        """The aborted transactions whose markers were met since this was last asked, and of which something is left."""
        return self._transactions.take_retained_aborted()

    def _judge(self, window: Window) -> tuple[list[str], list[int]]:
        """What becomes of each batch, and which of them must be looked into."""
        fates, chosen = [], []
        for index, (at, header) in enumerate(window.batches):
            has_horizon = header.attributes & DELETE_HORIZON_BIT != 0
            fate = _WHOLE
            if header.is_control:
                if self._transactions.is_marker_discardable(header, window.data[at : at + header.size]):
                    fate = _MARK
                    if has_horizon:
                        fate = _EMPTY if header.base_timestamp <= self._now_ms else _WHOLE
            elif self._transactions.is_discardable(header):
                fate = _EMPTY
            else:
                fate = _RECORDS
            if header.record_count <= 0:
                fate = _EMPTY
            if fate is _EMPTY and not self._is_needed(header):
                fate = _NOTHING
            if fate is _RECORDS:
                chosen.append(index)
            fates.append(fate)
        return fates, chosen

    def _is_needed(self, header: BatchHeader) -> bool:
        """Whether a batch stays even without its records."""
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

    def _records_of(self, original: memoryview, header: BatchHeader, kept: "_Kept", index: int) -> Buffer | None:
        first, behind = kept.bounds[index], kept.bounds[index + 1]
        if first == behind:
            return self._empty(header) if self._is_needed(header) else None
        needs_horizon = kept.has_tombstone[index] and not header.attributes & DELETE_HORIZON_BIT
        if needs_horizon:
            return _with_horizon(header, kept.split(header, first, behind), self._horizon_ms)
        if behind - first == header.record_count:
            return original
        payload: Buffer = memoryview(kept.data[kept.places[first] : kept.places[behind]])  # type: ignore[arg-type]
        max_timestamp = (
            header.max_timestamp if header.has_log_append_time else header.base_timestamp + kept.highest[index]
        )
        return _build(header, payload, behind - first, header.base_timestamp, max_timestamp, header.attributes)


_NOTHING, _EMPTY, _RECORDS, _MARK, _WHOLE = "nothing", "empty", "records", "mark", "whole"
"""What becomes of a batch: it goes; it stays without records; its records are looked at; a marker gets its delete horizon; all stays."""


class _Kept:
    """The records of a window that stay, side by side."""

    def __init__(self, found: Payloads, survivors: RetainedOffsets, headers: list[BatchHeader], *, now_ms: int) -> None:
        octets = found.octets
        rows = read_rows(found)
        stays = np.flatnonzero(survivors.among(octets, rows))
        batch_of_row = np.repeat(np.arange(len(headers)), found.counts)[stays]
        _, _, after_key = read_key_places(octets, rows.after_offset[stays], rows.ends[stays])
        tombstones = are_tombstones(octets, after_key)
        if tombstones.any():
            # Those whose time has come go. One that is not latest is already gone, and those behind the last offset stay.
            expired = np.array(
                [header.attributes & DELETE_HORIZON_BIT != 0 and header.base_timestamp <= now_ms for header in headers]
            )
            goes = tombstones & expired[batch_of_row] & (rows.offsets[stays] <= survivors.last)
            stays, batch_of_row, tombstones = stays[~goes], batch_of_row[~goes], tombstones[~goes]
        self._octets = octets
        self._starts, self._ends, self._attributes_at = rows.starts[stays], rows.ends[stays], rows.attributes_at[stays]
        self._after_time, self._time_deltas = rows.after_time[stays], rows.time_deltas[stays]
        bounds = np.searchsorted(batch_of_row, np.arange(len(headers) + 1))
        self.bounds: list[int] = bounds.tolist()
        """Where the rows of each batch begin, and where the last ones end."""
        self.has_tombstone: list[bool] = (np.bincount(batch_of_row[tombstones], minlength=len(headers)) > 0).tolist()
        self.highest = _highest(self._time_deltas, bounds)
        self.places, self.data = self._gather(bounds, found.counts)

    def _gather(self, bounds: Column, counts: Column) -> tuple[list[int], Octets]:
        """The bytes of those rows whose batch is written anew; a batch that keeps all its records is copied as it is."""
        is_partial = np.diff(bounds) != counts
        sizes = np.where(np.repeat(is_partial, np.diff(bounds)), self._ends - self._starts, 0)
        places, data = gather(self._octets, self._starts, sizes)
        return places.tolist(), data

    def split(self, header: BatchHeader, first: int, behind: int) -> list[tuple[int, int, bytes]]:
        """The attributes of each record, its timestamp, and its bytes behind that."""
        data = self._octets
        records = []
        for attributes_at, after_time, end, delta in zip(
            self._attributes_at[first:behind].tolist(),
            self._after_time[first:behind].tolist(),
            self._ends[first:behind].tolist(),
            self._time_deltas[first:behind].tolist(),
            strict=True,
        ):
            timestamp = header.max_timestamp if header.has_log_append_time else header.base_timestamp + delta
            records.append((int(data[attributes_at]), timestamp, data[after_time:end].tobytes()))
        return records


def _highest(deltas: Column, bounds: Column) -> list[int]:
    """The highest timestamp delta of each batch's rows; anything where there are none."""
    if not len(deltas):
        return [0] * (len(bounds) - 1)
    highest: list[int] = np.maximum.reduceat(deltas, np.minimum(bounds[:-1], len(deltas) - 1)).tolist()
    return highest


def _split_only_record(batch: memoryview, header: BatchHeader) -> tuple[int, int, bytes]:
    """Of a marker, as `split` has it."""
    octets = np.frombuffer(bytes(batch) + bytes(8), np.uint8)
    rows = read_rows(
        Payloads(octets, *(np.array([value], np.int64) for value in (RECORDS_AT, header.size, 1, header.base_offset)))
    )
    after_time, end = int(rows.after_time[0]), int(rows.ends[0])
    timestamp = header.max_timestamp if header.has_log_append_time else header.base_timestamp + int(rows.time_deltas[0])
    return 0, timestamp, octets[after_time:end].tobytes()


def _with_horizon(header: BatchHeader, records: list[tuple[int, int, bytes]], horizon_ms: int) -> bytearray:
    """The records with timestamps that count from the delete horizon."""
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
