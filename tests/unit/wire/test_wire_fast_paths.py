"""The hand-written codecs of Produce and Fetch agree with the compiled ones, in every version."""

from struct import pack_into
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.wire.errors import MalformedMessage
from ottla.wire.fetch_codec import (
    PartitionFetchResult,
    current_leader,
    diverging_epoch,
    pack_fetch_response,
    pack_single_fetch_response,
    read_fetch,
)
from ottla.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    LeaderIdAndEpoch,
    PartitionData,
    ReplicaState,
)
from ottla.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from ottla.wire.produce_codec import pack_produce_response, read_produce, read_single_partition
from ottla.wire.schema import encode

i8, i16, i32, i64 = (st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) for bits in (8, 16, 32, 64))
ids = st.binary(min_size=16, max_size=16)
names = st.text(max_size=20)
versions_of_produce = st.integers(3, 13)
versions_of_fetch = st.integers(4, 18)
PADDING = b"\xaa" * 7
"""Requests are parsed in the middle of a buffer with other bytes."""

produce_topics = st.lists(
    st.tuples(ids, names, st.lists(st.tuples(i32, st.one_of(st.none(), st.binary(max_size=300))), max_size=4)),
    max_size=4,
)


def placed(body: bytes) -> tuple[bytearray, memoryview, int, int]:
    buffer = bytearray(PADDING + body + PADDING)
    return buffer, memoryview(buffer), len(PADDING), len(PADDING) + len(body)


@given(versions_of_produce, st.one_of(st.none(), names), i16, i32, produce_topics)
def test_produce_requests_are_parsed_alike(version, transactional_id, acks, timeout_ms, topics):
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[
            TopicProduceData(
                **({"topic_id": topic_id} if version >= 13 else {"name": name}),
                partition_data=[PartitionProduceData(index=index, records=records) for index, records in partitions],
            )
            for topic_id, name, partitions in topics
        ],
    )
    buffer, view, start, end = placed(encode(request, version))
    read_id, read_acks, read_timeout, read_topics = read_produce(buffer, view, start, end, version)
    assert (read_id, read_acks, read_timeout) == (
        None if transactional_id is None else transactional_id.encode(),
        acks,
        timeout_ms,
    )
    assert [
        (topic, [(index, None if at < 0 else bytes(view[at:stop])) for index, at, stop in partitions])
        for topic, partitions in read_topics
    ] == [(topic_id if version >= 13 else name.encode(), partitions) for topic_id, name, partitions in topics]


@given(
    i16,
    ids,
    i32,
    st.one_of(st.none(), st.binary(max_size=70), st.integers(60, 40_000).map(bytes)),
    st.booleans(),
    st.integers(0, 2),
)
def test_single_partition_parser_agrees_or_returns_none(acks, topic_id, index, records, is_transactional, missing):
    """It returns what the general parser returns, or None for unusual and malformed requests."""
    request = ProduceRequest(
        transactional_id="t" if is_transactional else None,
        acks=acks,
        timeout_ms=7,
        topic_data=[
            TopicProduceData(topic_id=topic_id, partition_data=[PartitionProduceData(index=index, records=records)])
        ],
    )
    buffer, view, start, end = placed(encode(request, 13))
    single = read_single_partition(buffer, start, end - missing)
    if missing or is_transactional or records is None:
        assert single is None
    else:
        assert single is not None
        _, read_acks, _, topics = read_produce(buffer, view, start, end, 13)
        assert (read_acks, topics) == (single[0], [(single[1], [single[2]])])


@given(
    versions_of_produce,
    i32,
    st.lists(st.tuples(ids, names, st.lists(st.tuples(i32, i64, i64, i64), max_size=4)), max_size=4),
)
def test_produce_responses_are_packed_alike(version, correlation_id, topics):
    response = ProduceResponse(
        responses=[
            TopicProduceResponse(
                **({"topic_id": topic_id} if version >= 13 else {"name": name}),
                partition_responses=[
                    PartitionProduceResponse(
                        index=index,
                        base_offset=base,
                        log_append_time_ms=time,
                        **({"log_start_offset": start} if version >= 5 else {}),
                    )
                    for index, base, time, start in partitions
                ],
            )
            for topic_id, name, partitions in topics
        ]
    )
    tags = b"\0" if version >= 9 else b""
    payload = correlation_id.to_bytes(4, "big", signed=True) + tags + encode(response, version)
    packed = pack_produce_response(
        version,
        correlation_id,
        [(topic_id if version >= 13 else name.encode(), partitions) for topic_id, name, partitions in topics],
    )
    assert packed == len(payload).to_bytes(4, "big") + payload


fetch_partitions = st.lists(st.tuples(i32, i32, i64, i32, i32, i64), max_size=4)


def fetch_request(version, limits, topics, forgotten, rack, tags) -> FetchRequest:
    """Return a request with the fields that the version has; `tags` adds tagged fields."""
    wait, least, most, isolation, session_id, session_epoch, replica = limits
    request = FetchRequest(
        max_wait_ms=wait,
        min_bytes=least,
        max_bytes=most,
        isolation_level=isolation,
        rack_id=rack if version >= 11 else "",
        replica_id=replica if version < 15 else -1,
        topics=[
            FetchTopic(
                **({"topic_id": topic_id} if version >= 13 else {"topic": name}),
                partitions=[
                    FetchPartition(
                        partition=index,
                        current_leader_epoch=epoch,
                        fetch_offset=offset,
                        partition_max_bytes=size,
                        log_start_offset=start,
                        **({"last_fetched_epoch": last} if version >= 12 else {}),
                        **({"replica_directory_id": b"d" * 16} if tags and version >= 17 else {}),
                        **({"high_watermark": 5} if tags and version >= 18 else {}),
                    )
                    for index, epoch, offset, last, size, start in partitions
                ],
            )
            for topic_id, name, partitions in topics
        ],
    )
    if version >= 7:
        request.session_id, request.session_epoch = session_id, session_epoch
        request.forgotten_topics_data = [
            ForgottenTopic(**({"topic_id": topic_id} if version >= 13 else {"topic": name}), partitions=indexes)
            for topic_id, name, indexes in forgotten
        ]
    if tags and version >= 12:
        request.cluster_id = "somewhere"
    if tags and version >= 15:
        request.replica_state = ReplicaState(3, 4)
    return request


@given(
    versions_of_fetch,
    st.tuples(i32, i32, i32, i8, i32, i32, i32),
    st.lists(st.tuples(ids, names, fetch_partitions), max_size=4),
    st.lists(st.tuples(ids, names, st.lists(i32, max_size=3)), max_size=3),
    names,
    st.booleans(),
)
def test_fetch_requests_are_parsed_alike(version, limits, topics, forgotten, rack, tags):
    wait, least, most, isolation, session_id, session_epoch, replica = limits
    request = fetch_request(version, limits, topics, forgotten, rack, tags)
    buffer, view, start, end = placed(encode(request, version))
    read = read_fetch(buffer, view, start, end, version)

    def key(topic_id: bytes, name: str) -> bytes:
        return topic_id if version >= 13 else name.encode()

    assert read == (
        replica if version < 15 else 3 if tags else -1,
        wait,
        least,
        most,
        isolation,
        *((session_id, session_epoch) if version >= 7 else (0, -1)),
        [
            (
                key(topic_id, name),
                [
                    (index, epoch if version >= 9 else -1, offset, last if version >= 12 else -1, size)
                    for index, epoch, offset, last, size, _ in partitions
                ],
            )
            for topic_id, name, partitions in topics
        ],
        [(key(topic_id, name), indexes) for topic_id, name, indexes in forgotten] if version >= 7 else [],
    )


u31 = st.integers(0, 2**31 - 1)
epochs = st.one_of(st.none(), st.tuples(st.sampled_from([EpochEndOffset, LeaderIdAndEpoch]), u31, u31))
results = st.lists(
    st.tuples(
        i32,
        i16,
        i64,
        i64,
        i64,
        st.one_of(st.none(), st.lists(st.tuples(i64, i64), max_size=3).map(tuple)),
        st.binary(max_size=300),
        epochs,
    ),
    max_size=4,
)


def declared_tags(version: int, tag: Any) -> dict[str, Any]:
    if tag is None or version < 12:
        return {}
    tag_class, *values = tag
    return {"diverging_epoch" if tag_class is EpochEndOffset else "current_leader": tag_class(*values)}


def packed_tags(tag: Any) -> bytes:
    if tag is None:
        return b"\0"
    tag_class, *values = tag
    return (diverging_epoch if tag_class is EpochEndOffset else current_leader)(*values)


@given(versions_of_fetch, i32, i16, i32, st.lists(st.tuples(ids, names, results), max_size=4))
def test_fetch_responses_are_packed_alike(version, correlation_id, error, session_id, topics):
    response = FetchResponse(
        responses=[
            FetchableTopicResponse(
                **({"topic_id": topic_id} if version >= 13 else {"topic": name}),
                partitions=[
                    PartitionData(
                        partition_index=index,
                        error_code=code,
                        high_watermark=high,
                        last_stable_offset=stable,
                        log_start_offset=start,
                        aborted_transactions=None
                        if aborted is None
                        else [AbortedTransaction(*pair) for pair in aborted],
                        records=data,
                        **declared_tags(version, tag),
                    )
                    for index, code, high, stable, start, aborted, data, tag in partitions
                ],
            )
            for topic_id, name, partitions in topics
        ]
    )
    if version >= 7:
        response.error_code, response.session_id = error, session_id
    tags = b"\0" if version >= 12 else b""
    payload = correlation_id.to_bytes(4, "big", signed=True) + tags + encode(response, version)
    pieces = pack_fetch_response(
        version,
        correlation_id,
        error,
        session_id,
        [
            (
                topic_id if version >= 13 else name.encode(),
                [PartitionFetchResult(*(*result[:6], len(result[6]), packed_tags(result[7]))) for result in partitions],
            )
            for topic_id, name, partitions in topics
        ],
    )
    records = [result[6] for _, _, partitions in topics for result in partitions if result[6]]
    assert len(pieces) == len(records) + 1
    frame = b"".join(piece + data for piece, data in zip(pieces, [*records, b""], strict=True))
    assert frame == len(payload).to_bytes(4, "big") + payload


@given(
    versions_of_fetch,
    i32,
    ids,
    i32,
    i64,
    i64,
    st.none() | st.lists(st.tuples(i64, i64), max_size=2).map(tuple),
    st.integers(1, 1 << 30),
)
def test_single_partition_response_is_packed_alike(version, correlation_id, topic, index, high, start, aborted, size):
    result = PartitionFetchResult(index, 0, high, high, start, aborted, size)
    expected = pack_fetch_response(version, correlation_id, 0, 0, [(topic, [result])])
    assert [*pack_single_fetch_response(version, correlation_id, topic, index, high, start, aborted, size)] == expected


SAMPLE_PRODUCE = ProduceRequest(
    acks=1,
    timeout_ms=5,
    topic_data=[TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=b"x" * 30)])],
)
SAMPLE_FETCH = FetchRequest(max_wait_ms=1, topics=[FetchTopic(topic="t", partitions=[FetchPartition(fetch_offset=3)])])


@pytest.mark.parametrize(
    ("message", "version", "read"),
    [
        *((SAMPLE_PRODUCE, version, read_produce) for version in (3, 8, 9, 12)),
        *((SAMPLE_FETCH, version, read_fetch) for version in (4, 6, 7, 11, 12)),
    ],
)
def test_truncated_request_is_malformed(message, version, read):
    """Bytes after the end of a request in the shared buffer are never read as a part of it."""
    body = encode(message, version)
    for size in range(len(body)):
        buffer = bytearray(body[:size] + body)
        with pytest.raises(MalformedMessage):
            read(buffer, memoryview(buffer), 0, size, version)


@given(
    st.sampled_from(
        [(SAMPLE_PRODUCE, v, read_produce) for v in range(3, 13)]
        + [(SAMPLE_FETCH, v, read_fetch) for v in range(4, 13)]
    ),
    st.data(),
)
def test_mutated_request_is_parsed_or_malformed(case, data):
    message, version, read = case
    buffer = bytearray(encode(message, version))
    end = len(buffer)
    for _ in range(data.draw(st.integers(1, 4))):
        pack_into("B", buffer, data.draw(st.integers(0, end - 1)), data.draw(st.sampled_from((0, 1, 0x7F, 0x80, 0xFF))))
    try:
        read(buffer, memoryview(buffer), 0, end, version)
    except MalformedMessage:
        return
