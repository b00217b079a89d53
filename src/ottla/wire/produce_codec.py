"""Hand-written codec of Produce: requests are parsed in the receive buffer, responses are packed with one call.

A property test checks that it agrees with the compiled codec (`messages/produce.py`). Unusual messages, such as a
response with an error, are left to the compiled codec.
"""

from struct import Struct

from ottla.wire.errors import MalformedMessage
from ottla.wire.headers import read_uvarint, skip_tags
from ottla.wire.varint import unsigned_varint

FLEXIBLE_FROM = 9
TOPIC_IDS_MIN_VERSION = 13

_acks_timeout = Struct(">hi").unpack_from
_i16 = Struct(">h").unpack_from
_i32 = Struct(">i").unpack_from
_i32_i32 = Struct(">ii").unpack_from
_single = Struct(">BhiB16sBi")
_read_single = _single.unpack_from
_single_size = _single.size

BATCH_BYTES_MIN = 61
EMPTY_PARTS_MAX = 1_000
"""Partitions without a batch that a request may name. Each takes eight bytes, and many times as much to process."""

PartitionPart = tuple[int, int, int]
"""Partition index, and start and end position of its records; (-1, -1) for null."""
TopicPart = tuple[bytes, list[PartitionPart]]
"""Topic id (version 13 and later) or name, and its partitions."""
ProduceParts = tuple[bytes | None, int, int, list[TopicPart]]
"""Transactional id, acks, timeout in ms, topics."""


def read_produce(buffer: bytearray, view: memoryview, position: int, end: int, version: int) -> ProduceParts:
    """Parse a Produce request of version 3 to 13; records are returned as positions in the receive buffer."""
    if version < FLEXIBLE_FROM:
        return _read_plain(buffer, view, position, end)
    size, position = read_uvarint(buffer, position, end)
    transactional_id = None
    if size:
        transactional_id = _cut(view, position, position + size - 1, end)
        position += size - 1
    if position + 7 > end:
        raise MalformedMessage("the Produce request ends before its topics")
    acks, timeout_ms = _acks_timeout(buffer, position)
    topic_count, position = read_uvarint(buffer, position + 6, end)
    spare = EMPTY_PARTS_MAX + (end - position) // BATCH_BYTES_MIN - topic_count
    topics: list[TopicPart] = []
    for _ in range(topic_count - 1):
        if version >= TOPIC_IDS_MIN_VERSION:
            topic = _cut(view, position, position + 16, end)
            position += 16
        else:
            size, position = read_uvarint(buffer, position, end)
            topic = _cut(view, position, position + size - 1, end)
            position += size - 1
        partition_count, position = read_uvarint(buffer, position, end)
        spare -= partition_count if partition_count > 0 else 1
        if spare < 0:
            raise _too_many()
        partitions: list[PartitionPart] = []
        for _ in range(partition_count - 1):
            if position + 5 > end:
                raise MalformedMessage("the Produce request ends inside a partition")
            index = _i32(buffer, position)[0]
            size, position = read_uvarint(buffer, position + 4, end)
            if size:
                partitions.append((index, position, position + size - 1))
                position += size - 1
                if position >= end:
                    raise MalformedMessage("records extend past the end of the Produce request")
            else:
                partitions.append((index, -1, -1))
            position = skip_tags(buffer, position, end)
        topics.append((topic, partitions))
        position = skip_tags(buffer, position, end)
    skip_tags(buffer, position, end)
    return transactional_id, acks, timeout_ms, topics


SinglePart = tuple[int, bytes, PartitionPart]
"""Acks, topic id, and the only partition."""


def read_single_partition(buffer: bytearray, position: int, end: int) -> SinglePart | None:
    """Parse a request of version 13 with no transactional id, one topic, one partition and no tags, as nearly all are.

    Returns None for any other request, valid or not: `read_produce` decides. Three tag sections of one byte each follow
    the records.
    """
    start = position + _single_size
    if start + 3 > end:
        return None
    transactional_id, acks, _, topics, topic, partitions, index = _read_single(buffer, position)
    size = buffer[start]
    start += 1
    if size > 127:
        more = buffer[start]
        start += 1
        size = size & 127 | (more & 127) << 7
        if more > 127:
            more = buffer[start]
            start += 1
            size |= more << 14
            if more > 127:
                return None
    stop = start + size - 1
    if stop + 3 != end or size == 0 or transactional_id or topics != 2 or partitions != 2:
        return None
    if buffer[stop] or buffer[stop + 1] or buffer[stop + 2]:
        return None
    return acks, topic, (index, start, stop)


def _read_plain(buffer: bytearray, view: memoryview, position: int, end: int) -> ProduceParts:
    """Parse versions 3 to 8, whose lengths have a fixed width."""
    transactional_id, position = _plain_string(buffer, view, position, end)
    if position + 10 > end:
        raise MalformedMessage("the Produce request ends before its topics")
    acks, timeout_ms = _acks_timeout(buffer, position)
    topic_count = _i32(buffer, position + 6)[0]
    position += 10
    spare = EMPTY_PARTS_MAX + (end - position) // BATCH_BYTES_MIN - topic_count
    topics: list[TopicPart] = []
    for _ in range(topic_count):
        topic, position = _plain_string(buffer, view, position, end)
        if topic is None or position + 4 > end:
            raise MalformedMessage("topic without a name or without partitions")
        partition_count = _i32(buffer, position)[0]
        position += 4
        spare -= partition_count if partition_count > 0 else 1
        if spare < 0:
            raise _too_many()
        partitions: list[PartitionPart] = []
        for _ in range(partition_count):
            if position + 8 > end:
                raise MalformedMessage("the Produce request ends inside a partition")
            index, size = _i32_i32(buffer, position)
            position += 8
            if size < 0:
                partitions.append((index, -1, -1))
                continue
            if position + size > end:
                raise MalformedMessage("records extend past the end of the Produce request")
            partitions.append((index, position, position + size))
            position += size
        topics.append((topic, partitions))
    return transactional_id, acks, timeout_ms, topics


def _too_many() -> MalformedMessage:
    return MalformedMessage(
        f"the Produce request names more than {EMPTY_PARTS_MAX} topics and partitions without batches"
    )


def _plain_string(buffer: bytearray, view: memoryview, position: int, end: int) -> tuple[bytes | None, int]:
    if position + 2 > end:
        raise MalformedMessage("the message ends before a string")
    size = _i16(buffer, position)[0]
    position += 2
    if size < 0:
        return None, position
    return _cut(view, position, position + size, end), position + size


def _cut(view: memoryview, start: int, stop: int, end: int) -> bytes:
    if stop > end or stop < start:
        raise MalformedMessage("string extends past the end of the message")
    return bytes(view[start:stop])


Appended = tuple[int, int, int, int]
"""Partition index, base offset, log append time (-1 for create time), log start offset."""

# Nearly every response has one topic with one partition: pack it with one call. The frame size does not count itself.
_one_with_id = Struct(">iiBB16sBihqqqBBBBiB")
_pack_one_with_id = _one_with_id.pack
_ONE_WITH_ID_SIZE = _one_with_id.size - 4
_frame_start = Struct(">ii").pack
_flexible_partition = Struct(">ihqqqBBB").pack
_plain_partitions = {3: Struct(">ihqq").pack, 5: Struct(">ihqqq").pack, 8: Struct(">ihqqqih").pack}
_i32_pack = Struct(">i").pack
_i16_pack = Struct(">h").pack


def pack_single_produce_response(correlation_id: int, topic: bytes, appended: Appended) -> bytes:
    """Pack the frame of a successful response of version 13 with one partition."""
    index, base_offset, append_time_ms, log_start_offset = appended
    return _pack_one_with_id(
        _ONE_WITH_ID_SIZE,
        correlation_id,
        0,
        2,
        topic,
        2,
        index,
        0,
        base_offset,
        append_time_ms,
        log_start_offset,
        1,
        0,
        0,
        0,
        0,
        0,
    )


def pack_produce_response(version: int, correlation_id: int, topics: list[tuple[bytes, list[Appended]]]) -> bytes:
    """Pack the frame of a response without errors."""
    if version >= TOPIC_IDS_MIN_VERSION and len(topics) == 1 and len(topics[0][1]) == 1:
        topic, (appended,) = topics[0]
        return pack_single_produce_response(correlation_id, topic, appended)
    body = _pack_flexible(version, topics) if version >= FLEXIBLE_FROM else _pack_plain(version, topics)
    return _frame_start(len(body) + 4, correlation_id) + body


def _pack_flexible(version: int, topics: list[tuple[bytes, list[Appended]]]) -> bytes:
    parts = [b"\0", unsigned_varint(len(topics) + 1)]
    for topic, partitions in topics:
        if version < TOPIC_IDS_MIN_VERSION:
            parts.append(unsigned_varint(len(topic) + 1))
        parts.append(topic)
        parts.append(unsigned_varint(len(partitions) + 1))
        parts += [
            _flexible_partition(index, 0, base_offset, append_time_ms, log_start_offset, 1, 0, 0)
            for index, base_offset, append_time_ms, log_start_offset in partitions
        ]
        parts.append(b"\0")
    parts.append(b"\0\0\0\0\0")
    return b"".join(parts)


def _pack_plain(version: int, topics: list[tuple[bytes, list[Appended]]]) -> bytes:
    parts = [_i32_pack(len(topics))]
    for topic, partitions in topics:
        parts += [_i16_pack(len(topic)), topic, _i32_pack(len(partitions))]
        for index, base_offset, append_time_ms, log_start_offset in partitions:
            if version >= 8:
                parts.append(_plain_partitions[8](index, 0, base_offset, append_time_ms, log_start_offset, 0, -1))
            elif version >= 5:
                parts.append(_plain_partitions[5](index, 0, base_offset, append_time_ms, log_start_offset))
            else:
                parts.append(_plain_partitions[3](index, 0, base_offset, append_time_ms))
    parts.append(b"\0\0\0\0")
    return b"".join(parts)
