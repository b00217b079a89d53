"""Records of `__consumer_offsets`: Kafka's bytes, all versions, and unknown or malformed records."""

import pytest

from ottla.groups.timers import TimerKey, Timers
from ottla.wire.errors import MalformedMessage
from ottla.wire.records.group import (
    CommittedOffset,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    group_key,
    group_value,
    offset_key,
    offset_value,
    read_group_key,
    read_group_value,
    read_offset_key,
    read_offset_value,
    record_type,
)
from ottla.wire.schema import encode
from tests.unit.groups.scenario_runner import ShardBackend

TOPIC_ID = bytes.fromhex("93e7c4a7a23b48729faf98f46d92e142")
WRITTEN_BY_KAFKA = {
    "00010000000000000007000568656c6c6f000001a1df31afb4000001a1df333654": CommittedOffset(
        7, -1, "hello", 1794745937844, 1794746037844
    ),
    "00040000000000000007ffffffff0668656c6c6f000001a1df31afe401001093e7c4a7a23b48729faf98f46d92e142": CommittedOffset(
        7, -1, "hello", 1794745937892, -1, TOPIC_ID
    ),
}  # fmt: skip


@pytest.mark.parametrize(("encoded", "committed"), WRITTEN_BY_KAFKA.items())
def test_offset_values_match_kafka(encoded: str, committed: CommittedOffset) -> None:
    assert read_offset_value(bytes.fromhex(encoded)) == committed
    assert offset_value(committed).hex() == encoded


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("metadata", ["", "m", "é" * 63, "x" * 126, "x" * 127, "x" * 4096])
def test_offset_values_of_all_versions_are_read(version: int, metadata: str) -> None:
    """The hand-written reader agrees with the compiled codec."""
    message = OffsetCommitValue(offset=2**40, metadata=metadata, commit_timestamp=5)
    if version >= 3:
        message.leader_epoch = 9
    if version == 1:
        message.expire_timestamp = 77
    read = read_offset_value(version.to_bytes(2, "big") + encode(message, version))
    assert read == CommittedOffset(2**40, 9 if version >= 3 else -1, metadata, 5, 77 if version == 1 else -1)


@pytest.mark.parametrize("metadata", ["", "m", "é" * 63, "x" * 126, "x" * 127, "x" * 4096])
@pytest.mark.parametrize("topic_id", [bytes(16), TOPIC_ID])
def test_offset_values_match_compiled_codec(metadata: str, topic_id: bytes) -> None:
    committed = CommittedOffset(3, 4, metadata, 5, -1, topic_id)
    message = OffsetCommitValue(offset=3, leader_epoch=4, metadata=metadata, commit_timestamp=5, topic_id=topic_id)
    assert offset_value(committed) == b"\x00\x04" + encode(message, 4)
    assert read_offset_value(offset_value(committed)) == committed


def test_keys_match_compiled_codec() -> None:
    key = offset_key("größe", "t", 2**31 - 1)
    assert key == b"\x00\x01" + encode(OffsetCommitKey(group="größe", topic="t", partition=2**31 - 1), 0)
    assert read_offset_key(key) == ("größe", "t", 2**31 - 1)
    assert (record_type(key), record_type(group_key("g")), read_group_key(group_key("größe"))) == (1, 2, "größe")


def test_newer_value_versions_are_read() -> None:
    """Versions after 4 add only tagged fields."""
    newer = b"\x00\x09" + encode(OffsetCommitValue(offset=3, metadata="m"), 4)[:-1] + b"\x01\x63\x02ab"
    assert read_offset_value(newer).offset == 3
    group = GroupMetadataValue(protocol_type="consumer", generation=4, protocol=None, leader=None)
    assert read_group_value(b"\x00\x07" + encode(group, 4)) == group
    assert group_value(group)[:2] == b"\x00\x03"


@pytest.mark.parametrize(
    "value",
    [b"", b"\x00", b"\x00\x04", b"\xff\xff" + bytes(40), b"\x00\x03" + bytes(12), b"\x00\x04" + bytes(12) + b"\x05a"],
)
def test_malformed_value_is_rejected(value: bytes) -> None:
    with pytest.raises(MalformedMessage):
        read_offset_value(value)


@pytest.mark.parametrize("key", [b"\x00\x01", b"\x00\x01\x00\x09a", b"\x00\x01\x00\x01a\x00\x01b"])
def test_malformed_key_is_rejected(key: bytes) -> None:
    with pytest.raises(MalformedMessage):
        read_offset_key(key)


def test_records_of_newer_group_types_are_skipped() -> None:
    """Record types from 3 on belong to newer group protocols."""
    backend = ShardBackend()
    for kind in range(3, 30):
        backend.shard.replay(kind, kind.to_bytes(2, "big") + b"\x00\x01g", b"\x00\x00anything")
        backend.shard.replay(kind, kind.to_bytes(2, "big") + b"\x00\x01g", None)
    assert backend.shard._groups == {}


def test_moved_timer_expires_once_at_its_last_deadline() -> None:
    timers = Timers()
    first, second = TimerKey("g", "session", "a"), TimerKey("g", "session", "b")
    timers.set(first, 100)
    timers.set(second, 50)
    timers.set(first, 200)
    timers.set(second, 20)
    assert timers.next_deadline_ms() == 20
    assert [timers.pop_due(60), timers.pop_due(60)] == [second, None]
    assert timers.next_deadline_ms() == 200
    timers.cancel(first)
    assert (timers.next_deadline_ms(), timers.pop_due(1_000)) == (None, None)
    timers.set(first, 300)
    assert timers.pop_due(300) == first
