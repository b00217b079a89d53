"""Produce requests of several partitions, which are appended in slices."""

import asyncio

import pytest

from ottla.runtime import slice_scheduler
from ottla.server.connection import ServerConnection
from ottla.testing import AsyncBroker
from ottla.wire.batches import Record, build_batch, decode_records
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.compat.raw import read_response, request_bytes

PARTITIONS = 40


class Client:
    """The network's side of a connection, whose receive buffer is used again at once."""

    peer_host, peer_port, sent_bytes = "test", 1, 0

    def __init__(self, broker: AsyncBroker) -> None:
        self.responses: asyncio.Queue[bytes] = asyncio.Queue()
        self.connection = ServerConnection(broker.node._server, "PLAINTEXT")
        self.connection.connection_made(self)

    def write(self, parts, more=False):
        self.responses.put_nowait(b"".join(parts))

    def pause_reading(self):
        pass

    resume_reading = abort = close = pause_reading

    def send(self, request: ProduceRequest, version: int) -> bool:
        """Return whether there was a response at once."""
        frame = bytearray(request_bytes(request, version))
        is_ready = self.connection._on_frame(frame, memoryview(frame), 0, len(frame))
        frame[:] = bytes(len(frame))
        self.connection.flush()
        return is_ready

    async def receive(self, version: int):
        frame = await asyncio.wait_for(self.responses.get(), 10)
        return read_response(ProduceRequest, version, frame[4:])[1].responses[0].partition_responses


@pytest.fixture
async def broker():
    async with AsyncBroker() as broker:
        await broker.create_topic("events", partitions=PARTITIONS)
        yield broker


def request(count: int = PARTITIONS) -> ProduceRequest:
    data = [
        PartitionProduceData(index=index, records=bytes(build_batch([Record(timestamp=0, value=b"%d" % index)])))
        for index in range(count)
    ]
    return ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name="events", partition_data=data)])


@pytest.fixture
def short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """One piece fills a slice."""
    for name in ("SLICE_SECONDS", "SINGLE_CLIENT_SLICE_SECONDS"):
        monkeypatch.setattr(slice_scheduler, name, 0.0)


def value(broker: AsyncBroker, index: int) -> bytes | None:
    partition_log = broker.node.broker.partition("events", index).log
    found = partition_log.read(0, 1 << 20, limit_offset=1, min_one_message=True)
    return decode_records(found.file.read_at(found.position, found.size))[0].value


@pytest.mark.parametrize("version", [8, 12])
async def test_request_of_several_partitions_is_responded_to_at_once(broker: AsyncBroker, version: int) -> None:
    client = Client(broker)
    assert client.send(request(3), version)
    assert [(part.index, part.error_code) for part in await client.receive(version)] == [
        (index, 0) for index in range(3)
    ]


@pytest.mark.parametrize("version", [8, 12])
async def test_request_in_slices_owns_its_bytes(broker: AsyncBroker, short_slices: None, version: int) -> None:
    client = Client(broker)
    assert not client.send(request(), version)
    assert [(part.index, part.error_code, part.base_offset) for part in await client.receive(version)] == [
        (index, 0, 0) for index in range(PARTITIONS)
    ]
    assert [value(broker, index) for index in range(PARTITIONS)] == [b"%d" % index for index in range(PARTITIONS)]


async def test_topic_may_be_deleted_between_two_slices(broker: AsyncBroker, short_slices: None) -> None:
    client = Client(broker)
    assert not client.send(request(), 12)
    for _ in range(3):
        await broker.node.broker.scheduler.next_slice()
    del broker.node.broker.partitions_by_name[b"events"]
    codes = [part.error_code for part in await client.receive(12)]
    assert codes[0] == 0
    assert codes[-1] != 0
    assert sorted(set(codes)) == [0, codes[-1]]


async def test_connection_may_be_lost_between_two_slices(broker: AsyncBroker, short_slices: None) -> None:
    client = Client(broker)
    assert not client.send(request(), 12)
    client.connection.connection_lost(None)
    while value_of_last(broker) is None:
        await broker.node.broker.scheduler.next_slice()
    assert client.responses.empty()


def value_of_last(broker: AsyncBroker) -> bytes | None:
    """Return None while nothing is appended."""
    is_appended = broker.node.broker.partition("events", PARTITIONS - 1).log.log_end_offset
    return value(broker, PARTITIONS - 1) if is_appended else None
