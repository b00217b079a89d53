"""Long polling: a fetch waits for bytes or time, and a produce completes it."""

import threading
import time

import pytest

from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.fetch import FetchRequest
from tests.compat.conftest import Broker, MakeTopic
from tests.compat.raw import RawConnection
from tests.compat.test_raw_streams import fetch, produce, wait_for_leader


@pytest.fixture
def topic(broker: Broker, make_topic: MakeTopic) -> str:
    name = make_topic()
    wait_for_leader(broker, name)
    return name


def records(response: object) -> bytes:
    return bytes(response.responses[0].partitions[0].records or b"")  # type: ignore[attr-defined]


def test_fetch_waits_for_max_wait(broker: Broker, topic: str) -> None:
    with RawConnection(broker.address) as connection:
        start = time.perf_counter()
        response = connection.call(fetch(topic, 0, max_wait_ms=300), 12)
        waited = time.perf_counter() - start
    assert records(response) == b""
    assert 0.28 <= waited < 2


@pytest.mark.parametrize("acks", [1, -1])
def test_produce_completes_a_waiting_fetch(broker: Broker, topic: str, acks: int) -> None:
    with RawConnection(broker.address) as reader, RawConnection(broker.address) as writer:
        reader.send(fetch(topic, 0, max_wait_ms=14_000), 12)
        assert not reader.is_closed(within_seconds=0.05)
        start = time.perf_counter()
        writer.call(produce(topic, b"wake up", acks=acks), 11)
        assert b"wake up" in records(reader.receive(FetchRequest, 12))
        assert time.perf_counter() - start < 5


def test_fetch_waits_for_min_bytes(broker: Broker, topic: str) -> None:
    """It completes once enough bytes are appended, and returns all of them."""
    with RawConnection(broker.address) as reader, RawConnection(broker.address) as writer:
        reader.send(fetch(topic, 0, min_bytes=5000, max_wait_ms=14_000), 12)
        writer.call(produce(topic, b"a little"), 11)
        assert not reader.is_closed(within_seconds=0.2)
        writer.call(produce(topic, b"x" * 6000), 11)
        assert b"a little" in records(response := reader.receive(FetchRequest, 12))
        assert b"x" * 6000 in records(response)


def test_many_fetches_wait_for_one_produce(broker: Broker, topic: str) -> None:
    readers = [RawConnection(broker.address) for _ in range(50)]
    try:
        for reader in readers:
            reader.send(fetch(topic, 0, max_wait_ms=14_000), 12)
        with RawConnection(broker.address) as writer:
            writer.call(produce(topic, b"for all"), 11)
        for reader in readers:
            assert b"for all" in records(reader.receive(FetchRequest, 12))
    finally:
        for reader in readers:
            reader.close()


def test_requests_behind_a_waiting_fetch_wait(broker: Broker, topic: str) -> None:
    with RawConnection(broker.address) as connection:
        connection.send(fetch(topic, 0, max_wait_ms=200), 12)
        connection.send(ApiVersionsRequest(), 0)
        assert records(connection.receive(FetchRequest, 12)) == b""
        assert connection.receive(ApiVersionsRequest, 0).error_code == 0


def test_disconnect_during_a_waiting_fetch(broker: Broker, topic: str) -> None:
    for _ in range(20):
        with RawConnection(broker.address) as connection:
            connection.send(fetch(topic, 0, max_wait_ms=14_000), 12)
    with RawConnection(broker.address) as writer:
        assert writer.call(produce(topic, b"alone"), 11).responses[0].partition_responses[0].error_code == 0
        assert b"alone" in records(writer.call(fetch(topic, 0), 12))


def test_reader_follows_the_end_of_the_log(broker: Broker, topic: str) -> None:
    """A reader at the end of the log gets every record in order during writes."""
    count = 300

    def write() -> None:
        with RawConnection(broker.address) as writer:
            for i in range(count):
                writer.call(produce(topic, b"value %d." % i), 11)

    thread = threading.Thread(target=write)
    thread.start()
    seen = b""
    with RawConnection(broker.address) as reader:
        offset = 0
        while offset < count:
            response = reader.call(fetch(topic, offset, max_wait_ms=5000), 12)
            assert response.responses[0].partitions[0].error_code == 0
            found = records(response)
            seen += found
            offset += found.count(b"value ")
    thread.join()
    assert [seen.count(b"value %d." % i) for i in range(count)] == [1] * count
