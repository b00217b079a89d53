"""Round trips of every version of every message, and values that a version cannot express."""

from random import Random
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.wire.errors import MalformedMessage
from ottla.wire.fields import Field
from ottla.wire.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.wire.messages.fetch import FetchRequest, FetchResponse, LeaderIdAndEpoch, PartitionData, ReplicaState
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records.metadata import PartitionChangeRecord, TopicRecord
from ottla.wire.schema import (
    Message,
    SlicedWork,
    array,
    binary,
    decode,
    decode_in_slices,
    decoder,
    encode,
    encode_in_slices,
    encoder,
    f64,
    i32,
    part_encoder,
    string,
    struct,
    u32,
)

T = TypeVar("T")

NUMBERS = {
    "i8": st.integers(-0x80, 0x7F),
    "i16": st.integers(-0x8000, 0x7FFF),
    "u16": st.integers(0, 0xFFFF),
    "i32": st.integers(-0x8000_0000, 0x7FFF_FFFF),
    "u32": st.integers(0, 0xFFFF_FFFF),
    "i64": st.integers(-0x8000_0000_0000_0000, 0x7FFF_FFFF_FFFF_FFFF),
    "f64": st.floats(allow_nan=False),
    "boolean": st.booleans(),
    "uuid": st.binary(min_size=16, max_size=16),
    "string": st.text(st.characters(codec="utf-8"), max_size=200),
    "binary": st.binary(max_size=200),
    "batches": st.binary(max_size=200),
}


def values(field: Field, version: int) -> st.SearchStrategy[Any]:
    made: st.SearchStrategy[Any]
    if field.type == "array":
        item = NUMBERS[field.item] if isinstance(field.item, str) else instances(field.item, version)
        made = st.lists(item, max_size=12 if isinstance(field.item, str) else 2)
    else:
        made = instances(field.item, version) if field.type == "struct" else NUMBERS[field.type]
    return made | st.none() if field.nullable_in(version) else made


def instances(cls: type[Message], version: int) -> st.SearchStrategy[Message]:
    return st.builds(cls, **{field.name: values(field, version) for field in cls.FIELDS if field.in_version(version)})


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_message_survives_a_round_trip(any_message: type[Message], data: st.DataObject) -> None:
    """From any type of buffer, at any position, with other bytes after it."""
    version = data.draw(st.integers(any_message.MIN_VERSION, any_message.MAX_VERSION))
    original = data.draw(instances(any_message, version))
    encoded = encode(original, version)
    assert decode(any_message, version, encoded) == (original, len(encoded))
    assert decode(any_message, version, bytearray(b"abc" + encoded + b"rest"), 3) == (original, len(encoded) + 3)
    decoded, end = decode(any_message, version, memoryview(b"abc" + encoded + b"rest"), 3)
    assert (decoded, end) == (original, len(encoded) + 3)
    assert encode(decoded, version) == encoded
    assert in_slices(encode_in_slices(original, version))[1] == encoded
    assert in_slices(decode_in_slices(any_message, version, b"abc" + encoded + b"rest", 3))[1] == (
        original,
        len(encoded) + 3,
    )


def in_slices(work: SlicedWork[T]) -> tuple[int, T]:
    """Return how often the work yielded, and its result."""
    for yields in range(10_000):
        try:
            next(work)
        except StopIteration as end:
            return yields, end.value
    raise AssertionError("it does not end")


def test_sliced_codecs_yield_for_large_messages() -> None:
    topics = [MetadataRequestTopic(name=f"topic-{number}") for number in range(4000)]
    yields, encoded = in_slices(encode_in_slices(MetadataRequest(topics=topics), 12))
    assert (yields, encoded) == (10, encode(MetadataRequest(topics=topics), 12))
    assert in_slices(decode_in_slices(MetadataRequest, 12, encoded)) == (10, decode(MetadataRequest, 12, encoded))


@pytest.mark.parametrize("shape", [(50_001, 0), (25_000, 1), (10, 5_000)])
def test_sliced_decoder_limits_the_items_of_all_arrays(shape: tuple[int, int]) -> None:
    topics, partitions = shape
    request = ElectLeadersRequest(
        topic_partitions=[TopicPartitions(partitions=[0] * partitions) for _ in range(topics)], timeout_ms=1
    )
    encoded = encode(request, 2)
    if topics + topics * partitions > 50_000:
        with pytest.raises(MalformedMessage, match="too many items"):
            in_slices(decode_in_slices(ElectLeadersRequest, 2, encoded))
    else:
        assert in_slices(decode_in_slices(ElectLeadersRequest, 2, encoded))[1] == (request, len(encoded))


def test_too_many_tagged_fields_are_malformed() -> None:
    """An empty field takes two bytes, so a megabyte of them would be expensive to skip."""
    encoded = encode(MetadataRequest(topics=[]), 12)
    assert encoded[-1] == 0
    few, many = (
        encoded[:-1] + bytes([count]) + b"".join(bytes([tag, 0]) for tag in range(count)) for count in (100, 101)
    )
    assert decode(MetadataRequest, 12, few) == (MetadataRequest(topics=[]), len(few))
    with pytest.raises(MalformedMessage, match="101 tagged fields"):
        decode(MetadataRequest, 12, many)


def test_samples_of_every_version_survive_a_round_trip(any_message: type[Message], sampler: Any) -> None:
    """Long strings and arrays, extreme numbers and nulls, in every version."""
    for version in range(any_message.MIN_VERSION, any_message.MAX_VERSION + 1):
        for seed in range(5):
            original = sampler(any_message, version, Random(seed))
            encoded = encode(original, version)
            assert decode(any_message, version, encoded) == (original, len(encoded)), (version, seed)


def test_default_message_is_encoded_in_every_version(any_message: type[Message]) -> None:
    """Unset fields are never rejected."""
    for version in range(any_message.MIN_VERSION, any_message.MAX_VERSION + 1):
        encoded = encode(any_message(), version)
        assert decode(any_message, version, encoded) == (any_message(), len(encoded))


def test_unsupported_version_is_rejected() -> None:
    for version in (-1, 14):
        with pytest.raises(ValueError, match="versions are 0-13"):
            encoder(MetadataResponse, version)
        with pytest.raises(ValueError, match="versions are 0-13"):
            decode(MetadataResponse, version, b"")
    with pytest.raises(ValueError, match="versions are 0-5"):
        encode(InitProducerIdRequest(), 6)


def test_compiled_functions_are_cached() -> None:
    assert encoder(MetadataRequest, 9) is encoder(MetadataRequest, 9)
    assert decoder(MetadataRequest, 9) is decoder(MetadataRequest, 9)
    assert encoder(MetadataRequest, 9) is not encoder(MetadataRequest, 10)


def test_field_that_a_version_lacks_is_rejected_unless_ignorable() -> None:
    """Without it the message would mean something else; Kafka rejects the same fields."""
    with pytest.raises(ValueError, match="allow_auto_topic_creation"):
        encode(MetadataRequest(allow_auto_topic_creation=False), 3)
    with pytest.raises(ValueError, match="replica_id"):
        encode(FetchRequest(replica_id=4), 15)
    with pytest.raises(ValueError, match="replica_state"):
        encode(FetchRequest(replica_state=ReplicaState(replica_id=4)), 14)
    with pytest.raises(ValueError, match="session_id"):
        encode(FetchResponse(session_id=3), 6)
    assert encode(MetadataResponse(throttle_time_ms=3), 2) == encode(MetadataResponse(), 2)
    assert encode(FetchRequest(cluster_id="x"), 11) == encode(FetchRequest(), 11)
    assert encode(FetchRequest(replica_state=ReplicaState()), 14) == encode(FetchRequest(), 14)


def test_decoding_a_version_without_a_field_sets_its_default() -> None:
    decoded, _ = decode(MetadataRequest, 0, encode(MetadataRequest(), 0))
    assert decoded == MetadataRequest(topics=[], allow_auto_topic_creation=True)
    assert decode(MetadataResponse, 0, encode(MetadataResponse(), 0))[0].controller_id == -1


def test_null_is_rejected_in_versions_where_a_field_is_not_nullable() -> None:
    for message, version in (
        (MetadataRequest(topics=None), 0),
        (MetadataRequest(topics=[MetadataRequestTopic(name=None)]), 9),
        (MetadataResponse(topics=[MetadataResponseTopic(name=None)]), 11),
        (TopicRecord(name=None), 0),
    ):
        with pytest.raises(ValueError):
            encode(message, version)


@pytest.mark.parametrize(
    "message",
    [
        MetadataResponse(controller_id=2**31),
        MetadataResponse(controller_id="1"),
        MetadataResponse(cluster_id="x" * 32768),
        MetadataResponse(cluster_id="\ud800"),
        MetadataResponse(topics=[MetadataResponseTopic(topic_id=Uuid(b"short"))]),
        MetadataResponse(topics=[3]),  # type: ignore[list-item]
    ],
)
def test_values_out_of_range_are_rejected(message: Message) -> None:
    with pytest.raises(ValueError):
        encode(message, 12)


def test_ids_of_a_wrong_size_in_an_array_are_rejected() -> None:
    with pytest.raises(ValueError, match="directories"):
        encode(PartitionChangeRecord(directories=[ZERO_UUID, Uuid(b"short")]), 1)


def test_decoded_records_are_a_view_of_the_buffer() -> None:
    """The largest part of a Produce request is never copied."""
    batch = b"batch" * 100
    request = ProduceRequest(
        topic_data=[TopicProduceData(name="t", partition_data=[PartitionProduceData(0, memoryview(batch))])]
    )
    buffer = bytearray(encode(request, 9))
    decoded, _ = decode(ProduceRequest, 9, buffer)
    records = decoded.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records == batch
    assert records.obj is buffer


def test_tagged_fields_are_encoded_only_if_they_differ_from_the_default() -> None:
    default = PartitionData()
    changed = PartitionData(current_leader=LeaderIdAndEpoch(leader_id=1, leader_epoch=2))
    short, long = (part_encoder(FetchResponse, PartitionData, 12)(data) for data in (default, changed))
    assert long == short[:-1] + bytes.fromhex("01 01 09 00000001 00000002 00")


def test_shared_default_of_a_struct_is_read_only() -> None:
    """A change would show in every message whose struct was not set."""
    data = PartitionData()
    with pytest.raises(AttributeError, match="shared default"):
        data.current_leader.leader_id = 4
    assert data.current_leader == LeaderIdAndEpoch()
    assert LeaderIdAndEpoch() == data.current_leader
    assert data.current_leader != LeaderIdAndEpoch(leader_id=4)
    data.current_leader = LeaderIdAndEpoch(leader_id=4)
    assert PartitionData().current_leader.leader_id == -1


def test_nullable_struct_is_encoded() -> None:
    assert encode(DescribeTopicPartitionsRequest(), 0) == bytes.fromhex("01 000007d0 ff 00")
    assert encode(DescribeTopicPartitionsRequest(cursor=Cursor("t", 3)), 0) == bytes.fromhex(
        "01 000007d0 01 0274 00000003 00 00"
    )


class Inner(Message):
    session_timeout_ms: int = i32("0+", default=0)
    names: list[bytes] = array(binary, "0+", default=())


class Unusual(Message):
    """Features of declarations that no supported API uses."""

    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 1

    ratio: float = f64("0+", default=0.0)
    check: int = u32("0+", default=0)
    inner: Inner | None = struct(Inner, "1+", nullable="1+", factory=Inner, tag=0)
    text: str | None = string("0+", nullable="1+", default="x", tag=1, tagged="1+")


@pytest.mark.parametrize(
    ("message", "version", "encoded"),
    [
        (Unusual(), 1, "0000000000000000 00000000 00"),
        (Unusual(inner=None), 1, "0000000000000000 00000000 01 00 01 00"),
        (Unusual(inner=Inner(7)), 1, "0000000000000000 00000000 01 00 07 01 00000007 01 00"),
        (
            Unusual(inner=Inner(7, [b"a"]), text=None),
            1,
            "0000000000000000 00000000 02 00 09 01 00000007 02 0261 00 01 01 00",
        ),
        (Unusual(1.5, 0xFFFFFFFF, text="ab"), 0, "3ff8000000000000 ffffffff 0002 6162"),
    ],
)
def test_nullable_tagged_struct_and_field_that_becomes_tagged(message: Unusual, version: int, encoded: str) -> None:
    """A nullable tagged struct is preceded by a varint, 0 for null, as in Kafka's classic member metadata."""
    assert encode(message, version) == bytes.fromhex(encoded)
    assert decode(Unusual, version, bytes.fromhex(encoded))[0] == message


def test_messages_compare_by_value() -> None:
    request = MetadataRequest([MetadataRequestTopic(name="t")], False)
    assert request == MetadataRequest(topics=[MetadataRequestTopic(ZERO_UUID, "t")], allow_auto_topic_creation=False)
    assert request != MetadataRequest()
    assert request != "something else"
    assert MetadataRequestTopic(name="t").__repr__() == f"MetadataRequestTopic(topic_id={bytes(16)!r}, name='t')"
    with pytest.raises(AttributeError):
        request.topic = 1  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        MetadataRequest(topic=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        hash(request)
    assert MetadataRequest().topics is not MetadataRequest().topics


def test_part_encoder_encodes_a_struct_as_its_message_does(sampler: Any) -> None:
    """A topic's bytes can be cached and joined into any response of that version."""
    for version in (0, 8, 9, 13):
        topics = [sampler(MetadataResponseTopic, version, Random(seed)) for seed in range(3)]
        one = part_encoder(MetadataResponse, MetadataResponseTopic, version)
        assert b"".join([one(topic) for topic in topics]) in encode(MetadataResponse(topics=topics), version)
