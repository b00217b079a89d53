"""Hand-written codec of Fetch: requests are parsed in the receive buffer, responses are packed around their records.

Records are never copied. A property test checks that this codec and the compiled one (`messages/fetch.py`) agree.
"""

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from ottla.wire.errors import MalformedMessage
from ottla.wire.headers import read_uvarint, skip_tags
from ottla.wire.schema import SlicedWork, run_to_end
from ottla.wire.varint import unsigned_varint

FLEXIBLE_FROM = 12
TOPIC_IDS_MIN_VERSION = 13
REPLICA_STATE_MIN_VERSION = 15
SESSIONS_MIN_VERSION = 7
RACK_MIN_VERSION = 11
REPLICA_STATE_TAG = 1
PARTITIONS_MAX = 50_000
"""Upper limit of the partitions of one request. Kafka has none; a broker leads some thousands."""
PARTITIONS_PER_PIECE = 200
"""Partitions packed per time slice."""

_i16 = Struct(">h").unpack_from
_i32 = Struct(">i").unpack_from
_limits = Struct(">iiibii").unpack_from
_limits_with_replica = Struct(">iiiibii").unpack_from
_limits_without_session = Struct(">iiiib").unpack_from
_partition_12 = Struct(">iiqiqi").unpack_from
_PARTITION_12_BYTES = 33
_partitions_12 = Struct(">iiqiqix").iter_unpack
_partitions_9 = Struct(">iiqqi")
_partitions_5 = Struct(">iqqi")
_partitions_4 = Struct(">iqi")

_single_with_id = Struct(">B16sBiiqiqi5s").unpack_from
ONE_WITH_ID_BYTES = 1 + 16 + 1 + 32 + 5
_NOTHING_ELSE = b"\0\0\1\1\0"
"""No tags of the partition and the topic, no forgotten topics, no rack, no tags."""

_new_tuple = tuple.__new__
"""Skips `NamedTuple.__new__`, a Python function that takes as long as creating the tuple."""

PartitionFetch = tuple[int, int, int, int, int]
"""Partition index, the client's leader epoch, fetch offset, last fetched epoch, maximum bytes."""
TopicFetch = tuple[bytes, list[PartitionFetch]]
"""Topic id (version 13 and later) or name, and its partitions."""


class ParsedFetch(NamedTuple):
    """The fields of a Fetch request."""

    replica_id: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topics: list[TopicFetch]
    forgotten: list[tuple[bytes, list[int]]]


def read_fetch(buffer: bytearray, view: memoryview, position: int, end: int, version: int) -> ParsedFetch:
    """Parse a Fetch request of version 4 to 18. The rack and a follower's epoch are skipped."""
    if position + 21 > end:
        raise MalformedMessage("the Fetch request ends before its topics")
    replica_id, session_id, session_epoch = -1, 0, -1
    if version >= REPLICA_STATE_MIN_VERSION:
        max_wait_ms, min_bytes, max_bytes, isolation, session_id, session_epoch = _limits(buffer, position)
        position += 21
    elif version >= SESSIONS_MIN_VERSION:
        if position + 25 > end:
            raise MalformedMessage("the Fetch request ends before its topics")
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation, session_id, session_epoch = _limits_with_replica(
            buffer, position
        )
        position += 25
    else:
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation = _limits_without_session(buffer, position)
        position += 17
    if version >= TOPIC_IDS_MIN_VERSION and end - position == ONE_WITH_ID_BYTES:
        # One topic with one partition and nothing else: one unpack instead of a dozen steps saves 2.5 µs.
        topic_count, topic, partition_count, index, leader_epoch, offset, last_epoch, _, most, rest = _single_with_id(
            buffer, position
        )
        if topic_count == 2 and partition_count == 2 and rest == _NOTHING_ELSE:
            return _new_tuple(
                ParsedFetch,
                (
                    replica_id,
                    max_wait_ms,
                    min_bytes,
                    max_bytes,
                    isolation,
                    session_id,
                    session_epoch,
                    [(topic, [(index, leader_epoch, offset, last_epoch, most)])],
                    [],
                ),
            )
    if version >= FLEXIBLE_FROM:
        topics, forgotten, position = _read_flexible(buffer, view, position, end, version)
        if position >= end or buffer[position]:
            skip_tags(buffer, position, end)
            if version >= REPLICA_STATE_MIN_VERSION:
                replica_id = _replica_in_tags(buffer, position, end)
    else:
        topics, forgotten = _read_plain(buffer, view, position, end, version)
    return ParsedFetch(
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation, session_id, session_epoch, topics, forgotten
    )


def _replica_in_tags(buffer: bytearray, position: int, end: int) -> int:
    """Return the id of a follower, which version 15 and later send in a tagged field; -1 for consumers."""
    count, position = read_uvarint(buffer, position, end)
    for _ in range(count):
        tag, position = read_uvarint(buffer, position, end)
        size, position = read_uvarint(buffer, position, end)
        if tag == REPLICA_STATE_TAG and size >= 4:
            return int(_i32(buffer, position)[0])
        position += size
    return -1


def _read_flexible(
    buffer: bytearray, view: memoryview, position: int, end: int, version: int
) -> tuple[list[TopicFetch], list[tuple[bytes, list[int]]], int]:
    """Parse topics and forgotten topics; also return where the tags of the request begin."""
    topic_count, position = read_uvarint(buffer, position, end)
    topics: list[TopicFetch] = []
    total = 0
    for _ in range(topic_count - 1):
        topic, position = _topic(buffer, view, position, end, version)
        partition_count, position = read_uvarint(buffer, position, end)
        total += partition_count + 1
        if total > PARTITIONS_MAX:
            raise MalformedMessage(f"the Fetch request names more than {PARTITIONS_MAX} partitions")
        partitions, position = _flexible_partitions(buffer, view, position, end, partition_count - 1)
        topics.append((topic, partitions))
        position = skip_tags(buffer, position, end)
    forgotten_count, position = read_uvarint(buffer, position, end)
    forgotten: list[tuple[bytes, list[int]]] = []
    for _ in range(forgotten_count - 1):
        topic, position = _topic(buffer, view, position, end, version)
        count, position = read_uvarint(buffer, position, end)
        total += count + 1
        if total > PARTITIONS_MAX:
            raise MalformedMessage(f"the Fetch request names more than {PARTITIONS_MAX} partitions")
        indexes, position = _indexes(buffer, position, end, count - 1)
        forgotten.append((topic, indexes))
        position = skip_tags(buffer, position, end)
    size, position = read_uvarint(buffer, position, end)
    return topics, forgotten, position + max(size - 1, 0)


def _flexible_partitions(
    buffer: bytearray, view: memoryview, position: int, end: int, count: int
) -> tuple[list[PartitionFetch], int]:
    """Parse the partitions of one topic. Without tags one call unpacks them all, in a fifth of the time."""
    stop = position + _PARTITION_12_BYTES * count
    if count > 0 and stop <= end and not any(view[position + _PARTITION_12_BYTES - 1 : stop : _PARTITION_12_BYTES]):
        return [
            (index, leader_epoch, offset, last_epoch, most)
            for index, leader_epoch, offset, last_epoch, _, most in _partitions_12(view[position:stop])
        ], stop
    partitions: list[PartitionFetch] = []
    for _ in range(count):
        if position + _PARTITION_12_BYTES > end:
            raise MalformedMessage("the Fetch request ends inside a partition")
        index, leader_epoch, offset, last_epoch, _, most = _partition_12(buffer, position)
        partitions.append((index, leader_epoch, offset, last_epoch, most))
        position = skip_tags(buffer, position + _PARTITION_12_BYTES - 1, end)
    return partitions, position


def _topic(buffer: bytearray, view: memoryview, position: int, end: int, version: int) -> tuple[bytes, int]:
    size = 17
    if version < TOPIC_IDS_MIN_VERSION:
        size, position = read_uvarint(buffer, position, end)
    stop = position + size - 1
    if stop > end or stop < position:
        raise MalformedMessage("topic extends past the end of the Fetch request")
    return bytes(view[position:stop]), stop


def _indexes(buffer: bytearray, position: int, end: int, count: int) -> tuple[list[int], int]:
    if count < 0 or position + 4 * count > end:
        raise MalformedMessage("list extends past the end of the Fetch request")
    return [_i32(buffer, position + 4 * i)[0] for i in range(count)], position + 4 * count


def _read_plain(
    buffer: bytearray, view: memoryview, position: int, end: int, version: int
) -> tuple[list[TopicFetch], list[tuple[bytes, list[int]]]]:
    """Parse versions 4 to 11, whose lengths have a fixed width."""
    count, position = _plain_count(buffer, position, end)
    topics: list[TopicFetch] = []
    total = 0
    layout = _partitions_9 if version >= 9 else _partitions_5 if version >= 5 else _partitions_4
    for _ in range(count):
        topic, position = _plain_topic(buffer, view, position, end)
        partition_count, position = _plain_count(buffer, position, end)
        total += partition_count + 1
        if total > PARTITIONS_MAX:
            raise MalformedMessage(f"the Fetch request names more than {PARTITIONS_MAX} partitions")
        stop = position + layout.size * partition_count
        if stop > end:
            raise MalformedMessage("the Fetch request ends inside a partition")
        rows = layout.iter_unpack(view[position:stop])
        if version >= 9:
            partitions = [(index, leader_epoch, offset, -1, most) for index, leader_epoch, offset, _, most in rows]
        else:
            partitions = [(index, -1, offset, -1, rest[-1]) for index, offset, *rest in rows]
        topics.append((topic, partitions))
        position = stop
    forgotten: list[tuple[bytes, list[int]]] = []
    if version >= SESSIONS_MIN_VERSION:
        count, position = _plain_count(buffer, position, end)
        for _ in range(count):
            topic, position = _plain_topic(buffer, view, position, end)
            count_of_topic, position = _plain_count(buffer, position, end)
            total += count_of_topic + 1
            if total > PARTITIONS_MAX:
                raise MalformedMessage(f"the Fetch request names more than {PARTITIONS_MAX} partitions")
            indexes, position = _indexes(buffer, position, end, count_of_topic)
            forgotten.append((topic, indexes))
    if version >= RACK_MIN_VERSION:
        _plain_topic(buffer, view, position, end)
    return topics, forgotten


def _plain_count(buffer: bytearray, position: int, end: int) -> tuple[int, int]:
    if position + 4 > end:
        raise MalformedMessage("the message ends before a list")
    count = _i32(buffer, position)[0]
    if count < 0 or count > end - position:
        raise MalformedMessage("list extends past the end of the message")
    return count, position + 4


def _plain_topic(buffer: bytearray, view: memoryview, position: int, end: int) -> tuple[bytes, int]:
    if position + 2 > end:
        raise MalformedMessage("the message ends before a string")
    stop = position + 2 + _i16(buffer, position)[0]
    if stop > end or stop < position + 2:
        raise MalformedMessage("string extends past the end of the message")
    return bytes(view[position + 2 : stop]), stop


class PartitionFetchResult(NamedTuple):
    """The result for one partition. It is followed by `record_bytes` of records, or by null if that is -1."""

    partition: int
    error: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: tuple[tuple[int, int], ...] | None
    """Producer id and first offset of aborted transactions; None unless the client reads committed records only."""
    record_bytes: int
    tags: bytes = b"\0"
    """The tagged fields of version 12 and later: see `diverging_epoch` and `current_leader`."""


def diverging_epoch(epoch: int, end_offset: int) -> bytes:
    """Return the tagged field with the epoch and offset where the client's log diverges from this one."""
    return b"\1\0\x0d" + _epoch_end(epoch, end_offset, 0)


def current_leader(leader_id: int, leader_epoch: int) -> bytes:
    """Return the tagged field with the partition's leader."""
    return b"\1\1\x09" + _leader(leader_id, leader_epoch, 0)


_frame_start = Struct(">ii").pack
_flexible_start = Struct(">BihiB").pack
_plain_start_7 = Struct(">ihii").pack
_plain_start_4 = Struct(">ii").pack
_result = Struct(">ihqqq").pack
_result_4 = Struct(">ihqq").pack
_without_records = Struct(">ihqqqBiB").pack
_i32_pack = Struct(">i").pack
_i16_pack = Struct(">h").pack
_pair = Struct(">qq").pack
_epoch_end = Struct(">iqb").pack
_leader = Struct(">iib").pack
_one_with_id = Struct(">iiBihiB16sBihqqqBi").pack
_ONE_BYTES = 70
"""Size of such a response without its frame size, the records and their length, and the partition's tags."""
_NULL_ARRAY = b"\xff\xff\xff\xff"


def pack_fetch_response(
    version: int,
    correlation_id: int,
    error: int,
    session_id: int,
    topics: list[tuple[bytes, list[PartitionFetchResult]]],
) -> list[bytes]:
    """Pack the frame in pieces: one before the records of each partition, and one after the last records.

    The records of the i-th partition that has any (`record_bytes` > 0) belong between the pieces i and i + 1.
    """
    if (
        version >= TOPIC_IDS_MIN_VERSION
        and len(topics) == 1
        and len(topics[0][1]) == 1
        and topics[0][1][0].aborted is None
    ):
        head, tail = _pack_one(correlation_id, error, session_id, topics[0][0], topics[0][1][0])
        return [head, tail] if topics[0][1][0].record_bytes > 0 else [head + tail]
    return run_to_end(pack_fetch_response_in_slices(version, correlation_id, error, session_id, topics))


def pack_single_fetch_response(
    version: int,
    correlation_id: int,
    topic: bytes,
    partition: int,
    high_watermark: int,
    log_start_offset: int,
    aborted: tuple[tuple[int, int], ...] | None,
    record_bytes: int,
) -> Sequence[bytes]:
    """Pack the pieces before and after the records of a single partition, for a request without a session."""
    result = _new_tuple(
        PartitionFetchResult,
        (partition, 0, high_watermark, high_watermark, log_start_offset, aborted, record_bytes, b"\0"),
    )
    if version >= TOPIC_IDS_MIN_VERSION and aborted is None:
        return _pack_one(correlation_id, 0, 0, topic, result)
    return pack_fetch_response(version, correlation_id, 0, 0, [(topic, [result])])


def pack_fetch_response_in_slices(
    version: int,
    correlation_id: int,
    error: int,
    session_id: int,
    topics: list[tuple[bytes, list[PartitionFetchResult]]],
) -> SlicedWork[list[bytes]]:
    """Like `pack_fetch_response`, in time slices, for many partitions."""
    pack = _pack_flexible if version >= FLEXIBLE_FROM else _pack_plain
    pieces, record_bytes = yield from pack(version, error, session_id, topics)
    pieces[0] = _frame_start(4 + sum(map(len, pieces)) + record_bytes, correlation_id) + pieces[0]
    return pieces


def _pack_one(
    correlation_id: int, error: int, session_id: int, topic: bytes, result: PartitionFetchResult
) -> tuple[bytes, bytes]:
    """Pack one topic id with one partition and no aborted transactions, as in most responses, with one call."""
    partition, own_error, high_watermark, last_stable_offset, log_start_offset, _, record_bytes, tags = result
    size = unsigned_varint(record_bytes + 1)
    frame_bytes = _ONE_BYTES + len(size) + max(record_bytes, 0) + len(tags)
    head = _one_with_id(
        frame_bytes,
        correlation_id,
        0,
        0,
        error,
        session_id,
        2,
        topic,
        2,
        partition,
        own_error,
        high_watermark,
        last_stable_offset,
        log_start_offset,
        0,
        -1,
    )
    return head + size, tags + b"\0\0"


def _pack_flexible(
    version: int, error: int, session_id: int, topics: list[tuple[bytes, list[PartitionFetchResult]]]
) -> SlicedWork[tuple[list[bytes], int]]:
    """Return the pieces, and the total size of the records between them."""
    pieces: list[bytes] = []
    packed = record_bytes = 0
    now = bytearray(_flexible_start(0, 0, error, session_id, 0)[:-1])
    now += unsigned_varint(len(topics) + 1)
    for topic, results in topics:
        if version < TOPIC_IDS_MIN_VERSION:
            now += unsigned_varint(len(topic) + 1)
        now += topic
        now += unsigned_varint(len(results) + 1)
        for result in results:
            partition, own_error, high_watermark, last_stable_offset, log_start_offset, aborted, size, tags = result
            if size <= 0 and not aborted:  # as most partitions of a large response
                now += _without_records(
                    partition,
                    own_error,
                    high_watermark,
                    last_stable_offset,
                    log_start_offset,
                    0 if aborted is None else 1,
                    -1,
                    size + 1,
                )
            else:
                now += _result(partition, own_error, high_watermark, last_stable_offset, log_start_offset)
                if aborted is None:
                    now += b"\0"
                else:
                    now += unsigned_varint(len(aborted) + 1)
                    for pair in aborted:
                        now += _pair(*pair) + b"\0"
                now += _NULL_ARRAY  # no preferred read replica: -1
                now += unsigned_varint(size + 1)
                if size > 0:
                    record_bytes += size
                    pieces.append(bytes(now))
                    now = bytearray()
            now += tags
            packed += 1
            if packed % PARTITIONS_PER_PIECE == 0:
                yield
        now += b"\0"
    now += b"\0"
    pieces.append(bytes(now))
    return pieces, record_bytes


def _pack_plain(
    version: int, error: int, session_id: int, topics: list[tuple[bytes, list[PartitionFetchResult]]]
) -> SlicedWork[tuple[list[bytes], int]]:
    """Like `_pack_flexible`, for versions up to 11."""
    pieces: list[bytes] = []
    packed = record_bytes = 0
    if version >= SESSIONS_MIN_VERSION:
        now = bytearray(_plain_start_7(0, error, session_id, len(topics)))
    else:
        now = bytearray(_plain_start_4(0, len(topics)))
    for topic, results in topics:
        now += _i16_pack(len(topic)) + topic + _i32_pack(len(results))
        for result in results:
            now += _result(*result[:5]) if version >= 5 else _result_4(*result[:4])
            if result.aborted is None:
                now += _NULL_ARRAY
            else:
                now += _i32_pack(len(result.aborted))
                for aborted in result.aborted:
                    now += _pair(*aborted)
            if version >= RACK_MIN_VERSION:
                now += _NULL_ARRAY  # no preferred read replica: -1
            now += _i32_pack(result.record_bytes)
            if result.record_bytes > 0:
                record_bytes += result.record_bytes
                pieces.append(bytes(now))
                now = bytearray()
            packed += 1
            if packed % PARTITIONS_PER_PIECE == 0:
                yield
    pieces.append(bytes(now))
    return pieces, record_bytes
