"""The records of `__consumer_offsets`: committed offsets and the state of classic groups.

A key begins with the type of its record, a value with its version, in two bytes each. The codec of offset records is
hand-written, since every commit writes some and a loading coordinator reads millions: key and value take 0.9 µs to
write and 1.3 µs to read, with the compiled codecs 2.0 and 1.8 µs.
"""

from struct import Struct, error
from typing import NamedTuple

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.base.ports import Buffer
from ottla.wire.errors import MalformedMessage
from ottla.wire.schema import NEVER, Message, array, binary, decode, encode, i32, i64, string, uuid
from ottla.wire.varint import unsigned_varint

OFFSET_TYPE = 1
OLD_OFFSET_TYPE = 0
"""Type before Kafka 0.9, with the same content."""

GROUP_TYPE = 2
GROUP_VALUE_VERSION = 3
"""Kafka 4.3 writes version 3, although version 4 exists."""

NO_EXPIRY = -1

_u16 = Struct(">H").pack
_i16_at = Struct(">h").unpack_from
_i32_at = Struct(">i").unpack_from
_i32 = Struct(">i").pack
_head_4 = Struct(">hqi")
_head_3 = Struct(">hqih")
_i64 = Struct(">q").pack
_i64_at = Struct(">q").unpack_from
_head_1 = Struct(">hqh")
_two_i64 = Struct(">qq").pack


class OffsetCommitKey(Message):
    API_KEY = 1
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = NEVER

    group: str = string("0", default="")
    topic: str = string("0", default="")
    partition: int = i32("0", default=0)


class OffsetCommitValue(Message):
    API_KEY = 1
    MIN_VERSION = 0
    MAX_VERSION = 4
    FLEXIBLE_FROM = 4

    offset: int = i64("0+", default=0)
    leader_epoch: int = i32("3+", default=-1, ignorable=True)
    metadata: str = string("0+", default="")
    commit_timestamp: int = i64("0+", default=0)
    expire_timestamp: int = i64("1", default=-1, ignorable=True)
    topic_id: Uuid = uuid("4+", default=ZERO_UUID, tag=0, ignorable=True)


class GroupMetadataKey(Message):
    API_KEY = 2
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = NEVER

    group: str = string("0", default="")


class MemberMetadata(Message):
    member_id: str = string("0+", default="")
    group_instance_id: str | None = string("3+", nullable="3+", default=None, ignorable=True)
    client_id: str = string("0+", default="")
    client_host: str = string("0+", default="")
    rebalance_timeout: int = i32("1+", default=-1, ignorable=True)
    session_timeout: int = i32("0+", default=0)
    subscription: bytes = binary("0+", default=b"")
    assignment: bytes = binary("0+", default=b"")


class GroupMetadataValue(Message):
    API_KEY = 2
    MIN_VERSION = 0
    MAX_VERSION = 4
    FLEXIBLE_FROM = 4

    protocol_type: str = string("0+", default="")
    generation: int = i32("0+", default=0)
    protocol: str | None = string("0+", nullable="0+", default="")
    leader: str | None = string("0+", nullable="0+", default="")
    current_state_timestamp: int = i64("2+", default=-1, ignorable=True)
    members: list[MemberMetadata] = array(MemberMetadata, "0+", default=())


class CommittedOffset(NamedTuple):
    """The value of an offset record of any version. `expire_timestamp` is -1 unless an old client requested a
    retention."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int = NO_EXPIRY
    topic_id: Uuid = ZERO_UUID


def offset_key(group: str, topic: str, partition: int) -> bytes:
    name, topic_name = group.encode(), topic.encode()
    return b"\x00\x01%b%b%b%b%b" % (_u16(len(name)), name, _u16(len(topic_name)), topic_name, _i32(partition))


def read_offset_key(key: bytes) -> tuple[str, str, int]:
    """Return group, topic and partition of the key of an offset record."""
    try:
        end = 4 + _i16_at(key, 2)[0]
        topic_end = end + 2 + _i16_at(key, end)[0]
        return key[4:end].decode(), key[end + 2 : topic_end].decode(), _i32_at(key, topic_end)[0]
    except (error, UnicodeDecodeError) as problem:
        raise MalformedMessage(f"invalid key of an offset record: {problem}") from problem


def offset_value(committed: CommittedOffset) -> bytes:
    """Encode version 4, or version 1 if the offset has an expiry timestamp."""
    offset, leader_epoch, metadata, commit_timestamp, expire_timestamp, topic_id = committed
    text = metadata.encode()
    if expire_timestamp != NO_EXPIRY:
        return b"%b%b%b" % (_head_1.pack(1, offset, len(text)), text, _two_i64(commit_timestamp, expire_timestamp))
    size = len(text) + 1
    head = _head_4.pack(4, offset, leader_epoch)
    length = size.to_bytes(1, "big") if size < 128 else unsigned_varint(size)
    if topic_id == ZERO_UUID:
        return b"%b%b%b%b\x00" % (head, length, text, _i64(commit_timestamp))
    return b"%b%b%b%b\x01\x00\x10%b" % (head, length, text, _i64(commit_timestamp), topic_id)


def read_offset_value(value: bytes) -> CommittedOffset:
    """Decode version 3, and version 4 as `offset_value` writes it; the compiled codec decodes any other."""
    try:
        version = _i16_at(value)[0]
        if version == 4 and value[14] < 128:
            _, offset, leader_epoch = _head_4.unpack_from(value)
            at = 14 + value[14]
            tail = value[at + 8 :]
            if tail[:3] == b"\x01\x00\x10" and len(tail) == 19:
                return CommittedOffset(
                    offset, leader_epoch, value[15:at].decode(), _i64_at(value, at)[0], NO_EXPIRY, Uuid(tail[3:])
                )
        elif version == 3:
            _, offset, leader_epoch, size = _head_3.unpack_from(value)
            return CommittedOffset(offset, leader_epoch, value[16 : 16 + size].decode(), _i64_at(value, 16 + size)[0])
    except (error, IndexError, UnicodeDecodeError) as problem:
        raise MalformedMessage(f"invalid value of an offset record: {problem}") from problem
    message, _ = decode(OffsetCommitValue, _known_version(OffsetCommitValue, version), value, 2)
    return CommittedOffset(
        message.offset,
        message.leader_epoch,
        message.metadata,
        message.commit_timestamp,
        message.expire_timestamp,
        message.topic_id,
    )


def group_key(group: str) -> bytes:
    name = group.encode()
    return b"\x00\x02%b%b" % (_u16(len(name)), name)


def read_group_key(key: bytes) -> str:
    """Return the group of the key of a classic group's record."""
    return decode(GroupMetadataKey, 0, key, 2)[0].group


def group_value(value: GroupMetadataValue) -> bytes:
    return b"%b%b" % (_u16(GROUP_VALUE_VERSION), encode(value, GROUP_VALUE_VERSION))


def read_group_value(value: Buffer) -> GroupMetadataValue:
    return decode(GroupMetadataValue, _known_version(GroupMetadataValue, _i16_at(value)[0]), value, 2)[0]


def record_type(key: bytes) -> int:
    """Return the type of a record, given its key. Types not named here belong to newer group protocols."""
    if len(key) < 2:
        raise MalformedMessage("the key of a record is shorter than its type")
    return key[0] << 8 | key[1]


def _known_version(cls: type[Message], version: int) -> int:
    """Return the version to decode with. Later versions only add tagged fields, which are skipped."""
    if version < cls.MIN_VERSION:
        raise MalformedMessage(f"{cls.__name__}: invalid version {version}")
    return min(version, cls.MAX_VERSION)
