"""Fetch (key 1), versions 4–18: read batches, waiting for them where there are not enough yet.

Whole batches leave as they are stored. Full fetches are served at every version; topic ids from 13 on (KIP-516).
Skipped: incremental fetch sessions (KIP-227) are not granted, as a broker without room for them does.
"""

from typing import NamedTuple

from ottla.base.errors import ErrorCode
from ottla.base.ports import Buffer
from ottla.runtime.broker import Broker
from ottla.runtime.partition import LogSlice, Partition
from ottla.runtime.waiting import ParkedFetch
from ottla.server.connection import FilePart, ServerConnection
from ottla.wire.fetch_fast import TOPIC_IDS_FROM, FetchWish, PartitionAnswer, PartitionWish, pack_fetched, read_fetch

SEND_FILE_BYTES_MIN = 256 << 10
"""From here on `sendfile` is cheaper than reading and writing."""
READ_COMMITTED = 1
NO_ERROR = 0


class Reading(NamedTuple):
    """What a fetch found."""

    topics: list[tuple[bytes, list[PartitionAnswer]]]
    slices: list[LogSlice]
    size: int
    is_final: bool
    """An error is told at once, however little else there is."""


def handle_raw(connection: ServerConnection, buffer: bytearray, view: memoryview, position: int, end: int, version: int,
               correlation_id: int) -> bool:
    wish = read_fetch(buffer, view, position, end, version)
    broker = connection.broker
    if wish.session_id or wish.session_epoch > 0:
        error = ErrorCode.FETCH_SESSION_ID_NOT_FOUND if wish.session_id else ErrorCode.INVALID_FETCH_SESSION_EPOCH
        return connection.answer(pack_fetched(version, correlation_id, error, 0, []))
    reading = _read(broker, wish, version)
    if reading.size >= wish.min_bytes or reading.is_final or wish.max_wait_ms <= 0:
        return connection.answer(_parts(version, correlation_id, reading))

    def on_ready() -> None:
        connection.answer_later(_parts(version, correlation_id, _read(broker, wish, version)))

    parked = ParkedFetch(broker.loop, _partitions(broker, wish, version), missing_bytes=wish.min_bytes - reading.size,
                         wait_ms=wish.max_wait_ms, on_ready=on_ready)
    connection.on_lost = parked.cancel
    return connection.wait()


def _read(broker: Broker, wish: FetchWish, version: int) -> Reading:
    """Look up every partition that is asked for, in order, while there is room in the answer."""
    partitions_of = broker.partitions_by_id if version >= TOPIC_IDS_FROM else broker.partitions_by_name
    room = min(wish.max_bytes, broker.settings.fetch_bytes_max)
    topics: list[tuple[bytes, list[PartitionAnswer]]] = []
    slices: list[LogSlice] = []
    size, is_final = 0, not wish.topics
    for topic, wanted in wish.topics:
        partitions = partitions_of.get(topic)
        answers: list[PartitionAnswer] = []
        for want in wanted:
            index = want[0]
            partition = partitions[index] if partitions is not None and 0 <= index < len(partitions) else None
            if partition is None:
                unknown = version >= TOPIC_IDS_FROM and partitions is None
                answers.append(_failed(index, ErrorCode.UNKNOWN_TOPIC_ID if unknown else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
                is_final = True
                continue
            answer, found = _read_partition(partition, want, room - size, size == 0, wish.isolation_level)
            answers.append(answer)
            if found is not None:
                assert found.size > 0, found
                slices.append(found)
                size += found.size
            is_final = is_final or answer.error != NO_ERROR
        topics.append((topic, answers))
    return Reading(topics, slices, size, is_final)


def _read_partition(partition: Partition, want: PartitionWish, room: int, is_first: bool,
                    isolation_level: int) -> tuple[PartitionAnswer, LogSlice | None]:
    index, leader_epoch, offset, _, most = want
    log = partition.log
    high_watermark = partition.high_watermark
    if leader_epoch >= 0 and leader_epoch != partition.leader_epoch:
        stale = leader_epoch < partition.leader_epoch
        return _failed(index, ErrorCode.FENCED_LEADER_EPOCH if stale else ErrorCode.UNKNOWN_LEADER_EPOCH), None
    if not log.log_start_offset <= offset <= log.log_end_offset:
        return PartitionAnswer(index, ErrorCode.OFFSET_OUT_OF_RANGE, -1, -1, -1, None, 0), None
    found = None
    if offset < high_watermark and (room > 0 or is_first):
        found = log.read(offset, max(min(most, room), 0), limit_offset=high_watermark, at_least_one=is_first)
    aborted = () if isolation_level == READ_COMMITTED else None
    return PartitionAnswer(index, NO_ERROR, high_watermark, high_watermark, log.log_start_offset, aborted,
                           0 if found is None else found.size), found


def _failed(index: int, error: ErrorCode) -> PartitionAnswer:
    return PartitionAnswer(index, error, -1, -1, -1, (), 0)


def _partitions(broker: Broker, wish: FetchWish, version: int) -> list[Partition]:
    partitions_of = broker.partitions_by_id if version >= TOPIC_IDS_FROM else broker.partitions_by_name
    return [partition for topic, wanted in wish.topics for index, *_ in wanted
            if (partition := partitions_of[topic][index]) is not None]


def _parts(version: int, correlation_id: int, reading: Reading) -> list[Buffer | FilePart]:
    """The frame's own pieces with the records between them."""
    pieces = pack_fetched(version, correlation_id, NO_ERROR, 0, reading.topics)
    parts: list[Buffer | FilePart] = [pieces[0]]
    for found, piece in zip(reading.slices, pieces[1:], strict=True):
        if found.size >= SEND_FILE_BYTES_MIN:
            parts.append(FilePart(found.file, found.position, found.size))
        else:
            parts.append(found.file.read_at(found.position, found.size))
        parts.append(piece)
    return parts
