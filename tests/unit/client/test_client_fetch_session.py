"""Incremental fetch sessions: contents of requests and the session's state."""

from ottla.base.errors import ErrorCode
from ottla.base.ids import ZERO_UUID, Uuid
from ottla.client.fetch_session import FetchSessionHandler, FetchTarget
from ottla.client.records import TopicPartition
from ottla.wire.messages.fetch import FetchPartition, FetchResponse, FetchTopic, ForgottenTopic

A, B = Uuid(b"a" * 16), Uuid(b"b" * 16)
A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def target(offset, topic_id=A):
    return FetchTarget(topic_id, offset, 3, 100)


def entry(partition, offset):
    return FetchPartition(partition=partition, current_leader_epoch=3, fetch_offset=offset, partition_max_bytes=100)


def opened():
    """Return a session with two partitions at offset 0."""
    session = FetchSessionHandler()
    session.next_request({A0: target(0), A1: target(0)})
    assert session.handle_response(FetchResponse(session_id=7))
    return session


def test_first_request_has_all_partitions():
    session = FetchSessionHandler()
    request = session.next_request({A0: target(0), A1: target(5)})
    assert (request.session_id, request.session_epoch) == (0, 0)
    assert request.topics == [FetchTopic(topic="a", topic_id=A, partitions=[entry(0, 0), entry(1, 5)])]


def test_later_requests_have_changed_partitions():
    """Epochs increase; unchanged partitions are left out."""
    session = opened()
    request = session.next_request({A0: target(9), A1: target(0)})
    assert (request.session_id, request.session_epoch) == (7, 1)
    assert (request.topics, request.forgotten_topics_data) == (
        [FetchTopic(topic="a", topic_id=A, partitions=[entry(0, 9)])],
        [],
    )
    session.handle_response(FetchResponse(session_id=7))
    request = session.next_request({A0: target(9), A1: target(0)})
    assert (request.session_epoch, request.topics) == (2, [])


def test_removed_partitions_are_forgotten():
    session = opened()
    request = session.next_request({A0: target(0)})
    assert request.topics == []
    assert request.forgotten_topics_data == [ForgottenTopic(topic="a", topic_id=A, partitions=[1])]


def test_recreated_topic_is_forgotten_by_its_old_id():
    session = opened()
    request = session.next_request({A0: target(0, B), A1: target(0)})
    assert request.topics == [FetchTopic(topic="a", topic_id=B, partitions=[entry(0, 0)])]
    assert request.forgotten_topics_data == [ForgottenTopic(topic="a", topic_id=A, partitions=[0])]


def test_unknown_session_is_replaced():
    session = opened()
    session.next_request({A0: target(1), A1: target(0)})
    assert not session.handle_response(FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
    request = session.next_request({A0: target(1), A1: target(0)})
    assert (request.session_id, request.session_epoch, len(request.topics[0].partitions)) == (0, 0, 2)


def test_broker_without_session_gets_full_requests():
    """A broker with a full session cache responds with session id 0."""
    session = FetchSessionHandler()
    session.next_request({A0: target(0)})
    assert session.handle_response(FetchResponse(session_id=0))
    request = session.next_request({A0: target(0)})
    assert (request.session_id, request.session_epoch, len(request.topics)) == (0, 0, 1)


def test_topics_without_ids_are_requested_by_name():
    session = FetchSessionHandler()
    session.next_request({A0: target(0, ZERO_UUID)})
    assert session.version_max == 12
    session.next_request({A0: target(0)})
    assert session.version_max is None
