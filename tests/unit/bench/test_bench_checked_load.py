"""The load beside an attack checks every record and detects errors."""

import random
import struct

import pytest

from bench import checked_load, frames
from bench.checked_load import consume_checked, number_in, produce_checked, value_of, values_in
from bench.frames import BrokerError, Connection
from ottla.testing import Broker


def stored(first, *values):
    batch = bytearray(frames.batch_of(values))
    struct.pack_into(">q", batch, 0, first)
    return batch


def test_values_contain_their_number():
    value = value_of(7, random.Random(1))
    assert number_in(value) == 7
    with pytest.raises(ValueError, match="unknown value"):
        number_in(value[:-1] + bytes([value[-1] ^ 1]))


def test_values_in_returns_offsets_and_values():
    records = stored(3, b"a", b"b" * 300) + stored(5, b"")
    assert values_in(records) == [(3, b"a"), (4, b"b" * 300), (5, b"")]
    assert values_in(records[:-1]) == [(3, b"a"), (4, b"b" * 300)]


@pytest.fixture
def served(monkeypatch):
    monkeypatch.setattr(checked_load, "PAUSE_SECONDS", 0)
    with Broker() as broker:
        port = int(broker.bootstrap.rpartition(":")[2])
        connection = Connection(port)
        yield port, connection, frames.create_topic(connection, "t")
        connection.close()


def test_produced_records_are_consumed(served):
    port, _, topic = served
    produced = produce_checked(port, topic, 1, 0.1)
    assert produced.count > 1
    assert consume_checked(port, topic, 1, 10, produced.count) == produced.count


def test_unknown_record_is_detected(served):
    port, connection, topic = served
    produced = produce_checked(port, topic, 1, 0.05)
    connection.request(frames.produce(topic, frames.batch_of([value_of(produced.count + 5, random.Random(1))])))
    with pytest.raises(ValueError, match="at offset"):
        consume_checked(port, topic, 1, 10, produced.count + 1)
    with pytest.raises(BrokerError, match="offset"):
        produce_checked(port, topic, produced.count, 1)


def test_missing_records_are_detected(served):
    port, _, topic = served
    with pytest.raises(BrokerError, match="3 records are missing"):
        consume_checked(port, topic, 1, 0.01, 4)
