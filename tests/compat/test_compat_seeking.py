"""Consumers without a group seek by offset, by time and to both ends."""

import pytest

from tests.compat.clients.base import Client
from tests.compat.clients.confluent_client import ConfluentClient
from tests.compat.conftest import Broker, MakeTopic
from tests.compat.record import START_MS, Sent, noise

COUNT = 40


@pytest.fixture
def filled(broker: Broker, make_topic: MakeTopic) -> str:
    """Two partitions: one with timestamps 1,000 ms apart in several batches and segments, one empty."""
    topic = make_topic(2, segment_bytes="1048576", index_interval_bytes="200")
    for start in range(0, COUNT, 5):
        records = [
            Sent(0, b"%d" % i, b"value %d " % i + noise(75_000, i), (), START_MS + 1000 * i)
            for i in range(start, start + 5)
        ]
        ConfluentClient().produce(broker.bootstrap, topic, records)
    return topic


def test_ends_of_a_partition(broker: Broker, client: Client, filled: str) -> None:
    assert client.offsets(broker.bootstrap, filled, [0, 1], "earliest") == {0: 0, 1: 0}
    assert client.offsets(broker.bootstrap, filled, [0, 1], "latest") == {0: COUNT, 1: 0}


@pytest.mark.parametrize("start", [0, 1, 4, 5, 17, 39])
def test_seek_by_offset(broker: Broker, client: Client, filled: str, start: int) -> None:
    """Also into the middle of a batch, skipping its earlier records."""
    end = min(start + 7, COUNT)
    found = client.consume(broker.bootstrap, filled, {0: start}, {0: end})
    assert [(record.offset, record.key) for record in found] == [(i, b"%d" % i) for i in range(start, end)]


def test_seek_by_time(broker: Broker, client: Client, filled: str) -> None:
    """The first record at or after a timestamp; none after the last."""
    moments = {
        START_MS - 1: 0,
        START_MS: 0,
        START_MS + 1: 1,
        START_MS + 17_000: 17,
        START_MS + 17_001: 18,
        START_MS + 39_000: 39,
    }
    found = {moment: client.offsets(broker.bootstrap, filled, [0], moment)[0] for moment in moments}
    assert found == moments
    # Without such a record librdkafka returns the end offset, the others return none.
    beyond = client.offsets(broker.bootstrap, filled, [0, 1], START_MS + 39_001)
    assert beyond in ({0: None, 1: None}, {0: COUNT, 1: 0})
