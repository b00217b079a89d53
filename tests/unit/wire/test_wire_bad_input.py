"""Malformed messages: MalformedMessage, or as lenient as Kafka; never another error, and never much memory."""

import tracemalloc
from random import Random
from typing import Any

import pytest

from ottla.wire.errors import MalformedMessage
from ottla.wire.messages.create_topics import CreateTopicsRequest
from ottla.wire.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest
from ottla.wire.messages.fetch import FetchRequest, ReplicaState
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.schema import NEVER, Message, array, decode, encode, i32

ZEROS = "00" * 16
FETCH_15 = "00000001 00000001 00000001 00 00000000 ffffffff 01 01 01"


def read_all(cls: type[Message], version: int, text: str) -> Message:
    """Decode a complete buffer, given in hexadecimal."""
    data = bytes.fromhex(text)
    decoded, end = decode(cls, version, data)
    assert end == len(data)
    return decoded


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a count of 2**31 - 1", "80 80 80 80 08 01 00 00"),
        ("a count above what remains", "05 01 00 00"),
        ("a varint of six bytes", "81 80 80 80 80 00 01 00 00"),
        ("a varint without an end", "ff ff ff ff ff ff ff ff"),
        ("a truncated varint", "ff"),
        ("nothing", ""),
        ("truncated after a field", "00 01"),
        ("a tagged field of negative size", "00 01 00 01 05 ff ff ff ff 0f"),
        ("a tagged field above what remains", "00 01 00 01 05 03 aa bb"),
        ("2**31 - 1 tagged fields", "00 01 00 ff ff ff ff 07"),
        ("a truncated tag", "00 01 00 01 ff"),
        ("a name above what remains", f"02 {ZEROS} 40 61"),
        ("a name of more than 32767 bytes", f"02 {ZEROS} 81 80 02 {'61' * 32768} 00 01 00 00"),
        ("a name of 2**31 - 1 bytes", f"02 {ZEROS} 80 80 80 80 08 61 00 01 00 00"),
        ("a truncated id", "02 0000"),
    ],
)
def test_metadata_requests_that_kafka_rejects_are_malformed(name: str, text: str) -> None:
    with pytest.raises(MalformedMessage):
        decode(MetadataRequest, 12, bytes.fromhex(text))


@pytest.mark.parametrize(
    ("text", "topics"),
    [
        ("00 01 00 00", None),
        ("ff ff ff ff 0f 01 00 00", None),  # in Kafka 2**32 - 1 is negative, and so null
        ("81 80 80 80 70 01 00 00", []),  # bits beyond the 32nd are dropped
        ("81 80 00 01 00 00", []),  # a varint longer than needed
        ("00 05 00 00", None),  # any byte but 0 is true
        ("00 01 00 01 05 02 aa bb", None),  # an unknown tag
        ("00 01 00 03 05 01 aa 03 01 bb 05 00", None),  # unknown tags out of order, one of them twice
        ("00 01 00 ff ff ff ff 0f", None),  # a negative number of tags
        (f"02 {ZEROS} 04 c3 28 ff 00 01 00 00", ["\ufffd(\ufffd"]),
        (f"02 {ZEROS} 04 ed a0 80 00 01 00 00", ["\ufffd"]),  # an encoded surrogate is one invalid character
        (f"02 {ZEROS} 04 ed a0 41 00 01 00 00", ["\ufffdA"]),
        (f"02 {ZEROS} 03 c0 80 00 01 00 00", ["\ufffd\ufffd"]),
        (f"02 {ZEROS} 05 f5 80 80 80 00 01 00 00", ["\ufffd" * 4]),
        (f"02 {ZEROS} 00 00 01 00 00", [None]),
    ],
)
def test_metadata_requests_that_kafka_accepts_are_decoded(text: str, topics: list[str | None] | None) -> None:
    """The expected values come from Kafka 4.3's own decoder."""
    expected = MetadataRequest(topics=None if topics is None else [MetadataRequestTopic(name=name) for name in topics])
    assert read_all(MetadataRequest, 12, text) == expected


def test_lengths_of_fixed_width() -> None:
    assert read_all(MetadataRequest, 1, "fffffffe") == MetadataRequest(topics=None)
    assert read_all(MetadataRequest, 1, "00000001 0001 61") == MetadataRequest(topics=[MetadataRequestTopic(name="a")])
    for version, text in (
        (1, "00000001 ffff"),
        (0, "ffffffff"),
        (1, "7fffffff 0001 61"),
        (1, "00000001 7fff 61"),
        (1, "000000"),
    ):
        with pytest.raises(MalformedMessage):
            decode(MetadataRequest, version, bytes.fromhex(text))


def test_known_tags_are_decoded_whatever_their_size() -> None:
    """Kafka ignores the size of a known tagged field, and the last of two wins."""
    plain = read_all(FetchRequest, 15, f"{FETCH_15} 00")
    assert isinstance(plain, FetchRequest)
    plain.replica_state = ReplicaState(7, 9)
    assert read_all(FetchRequest, 15, f"{FETCH_15} 01 01 05 00000007 0000000000000009 00") == plain
    plain.replica_state, plain.cluster_id = ReplicaState(), "b"
    assert read_all(FetchRequest, 15, f"{FETCH_15} 02 00 02 02 61 00 02 02 62") == plain
    plain.cluster_id = None
    assert read_all(FetchRequest, 15, f"{FETCH_15} 01 00 01 00") == plain
    assert read_all(FetchRequest, 15, f"{FETCH_15} 01 85 00 02 aa bb") == plain


def test_byte_before_a_nullable_struct() -> None:
    """A negative byte is null; after any other the struct follows."""
    for lead in ("00", "01", "07"):
        decoded = read_all(DescribeTopicPartitionsRequest, 0, f"01 00000001 {lead} 0261 00000003 00 00")
        assert decoded == DescribeTopicPartitionsRequest([], 1, Cursor("a", 3))
    assert read_all(DescribeTopicPartitionsRequest, 0, "01 00000001 fd 00") == DescribeTopicPartitionsRequest(
        [], 1, None
    )


def test_truncated_message_is_malformed(any_message: type[Message], sampler: Any) -> None:
    """At any position: a part of a message is never decoded as a complete one."""
    for version in range(any_message.MIN_VERSION, any_message.MAX_VERSION + 1):
        encoded = encode(sampler(any_message, version, Random(version)), version)
        for end in sorted({*range(min(40, len(encoded))), *range(0, len(encoded), 1 + len(encoded) // 40)}):
            with pytest.raises(MalformedMessage):
                decode(any_message, version, memoryview(encoded)[:end])


def test_mutated_message_is_decoded_or_malformed(any_message: type[Message], sampler: Any) -> None:
    """Bytes changed, inserted, removed and set to critical lengths: no error but MalformedMessage."""
    random = Random(any_message.__name__)
    critical = [b"", b"\xff", b"\x80\x80\x80\x80\x08", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff"]
    for version in range(any_message.MIN_VERSION, any_message.MAX_VERSION + 1):
        encoded = encode(sampler(any_message, version, random), version)
        for _ in range(60):
            data = bytearray(encoded)
            for _ in range(random.randint(1, 4)):
                position = random.randrange(len(data) + 1)
                data[position : position + random.randint(0, 4)] = random.choice([*critical, random.randbytes(2)])
            try:
                decoded, end = decode(any_message, version, bytes(data))
            except MalformedMessage:
                continue
            assert end <= len(data)
            encode(decoded, version)


@pytest.mark.parametrize(
    ("cls", "version", "text"),
    [
        (MetadataRequest, 0, "7fffffff"),
        (MetadataRequest, 12, "ff ff ff ff 07"),
        (CreateTopicsRequest, 2, "7fffffff 0001 61"),
        (CreateTopicsRequest, 7, "ff ff ff ff 07 02 61"),
        (ProduceRequest, 3, "ffff 0001 00000001 00000001 0001 61 00000001 00000000 7fffffff"),
    ],
)
def test_huge_count_allocates_nothing(cls: type[Message], version: int, text: str) -> None:
    """Counts are compared with the remaining bytes before anything is allocated."""
    data = bytes.fromhex(text) + bytes(200)
    with pytest.raises(MalformedMessage):
        decode(cls, version, data)  # compiles the codec, which takes memory too
    tracemalloc.start()
    try:
        with pytest.raises(MalformedMessage):
            decode(cls, version, data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000


class EmptyItem(Message):
    later: int = i32("1+", default=0)


class EmptyItems(Message):
    """A message with an array whose items take no bytes in version 0."""

    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = NEVER

    items: list[EmptyItem] = array(EmptyItem, "0+", default=())


def test_items_without_bytes_are_limited() -> None:
    """As in Kafka there may be as many items as bytes remain."""
    assert decode(EmptyItems, 0, bytes.fromhex("00000002 0000")) == (EmptyItems([EmptyItem(), EmptyItem()]), 4)
    for text in ("7fffffff 0000", "00000003 0000"):
        with pytest.raises(MalformedMessage, match="items"):
            decode(EmptyItems, 0, bytes.fromhex(text))


def test_memory_is_proportional_to_the_frame() -> None:
    """The densest message has a struct for every five bytes."""
    request = ProduceRequest(
        topic_data=[TopicProduceData("t", partition_data=[PartitionProduceData(0, None)] * 20_000)]
    )
    data = encode(request, 9)
    tracemalloc.start()
    try:
        decode(ProduceRequest, 9, data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40 * len(data)
