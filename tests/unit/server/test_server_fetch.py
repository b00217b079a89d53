"""Fetch in the server: delayed fetches, disk reads by workers, and the memory that a response holds."""

import asyncio
import threading

import pytest

from ottla.io.disk import RealFile
from ottla.runtime import slice_scheduler
from ottla.server import disk_reads
from ottla.server.connection import FileRegion, ServerConnection
from ottla.testing import AsyncBroker
from ottla.wire.batches import Record, build_batch
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.compat.raw import read_response, request_bytes

VERSION = 17


class Client:
    """The network's side of a server connection: stores what is sent."""

    peer_host, peer_port, sent_bytes = "test", 1, 0

    def __init__(self, broker: AsyncBroker) -> None:
        self.broker = broker
        self.parts = []
        self.came = asyncio.Event()
        self.connection = ServerConnection(broker.node._server, "PLAINTEXT")
        self.connection.connection_made(self)

    def write(self, parts, more=False):
        self.parts += parts
        self.came.set()

    def send_file(self, file, position, size):
        self.parts.append(FileRegion(file, position, size))
        self.came.set()

    def pause_reading(self):
        pass

    resume_reading = abort = close = pause_reading

    def send(self, request: FetchRequest) -> None:
        frame = bytearray(request_bytes(request, VERSION))
        self.connection._on_frame(frame, memoryview(frame), 0, len(frame))
        self.connection.flush()

    async def call(self, request: FetchRequest):
        self.send(request)
        return await self.receive()

    async def receive(self):
        await asyncio.wait_for(self.came.wait(), 10)
        self.came.clear()
        parts, self.parts = self.parts, []
        frame = b"".join(
            part.file.read_at(part.position, part.size) if isinstance(part, FileRegion) else part for part in parts
        )
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4
        return read_response(FetchRequest, VERSION, frame[4:])[1]

    def partition(self, topic: str, index: int = 0):
        return self.broker.node.broker.partition(topic, index)

    def fill(self, topic: str, index: int, count: int, size: int) -> None:
        for number in range(count):
            self.partition(topic, index).append(
                memoryview(build_batch([Record(0, number, None, b"%d" % (number % 10) * size)])), 1
            )

    def request(self, topic: str, *positions: tuple[int, int], **fields) -> FetchRequest:
        max_bytes = fields.pop("max_bytes", 1 << 20)
        request = [
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=max_bytes)
            for index, offset in positions
        ]
        return FetchRequest(
            **{"max_wait_ms": 0, "min_bytes": 1, **fields},
            topics=[FetchTopic(topic_id=self.partition(topic).topic_id, partitions=request)],
        )


def run_scenario(scenario, **config):
    """Run a scenario with a client of a new broker."""

    async def run():
        async with AsyncBroker(configs=config) as broker:
            await broker.create_topic("events", 100)
            await scenario(Client(broker))

    asyncio.run(run())


def records(response, at: int = 0) -> bytes:
    return bytes(response.responses[0].partitions[at].records)


def test_disconnect_cancels_a_delayed_fetch():
    async def scenario(client):
        client.send(client.request("events", (0, 0), (1, 0), max_wait_ms=60_000))
        assert [len(client.partition("events", index).delayed_fetches) for index in (0, 1)] == [1, 1]
        client.connection.connection_lost(None)
        assert [len(client.partition("events", index).delayed_fetches) for index in (0, 1)] == [0, 0]

    run_scenario(scenario)


def test_disconnect_during_a_disk_read_prevents_a_delayed_fetch(monkeypatch):
    async def scenario(client):
        client.fill("events", 0, 50, 300)
        with monkeypatch.context() as patched:
            patched.setattr(RealFile, "read_at_if_cached", lambda file, position, size: None)
            client.send(client.request("events", (0, 0), max_wait_ms=60_000, min_bytes=1 << 20))
            task = client.connection._task
            client.connection.connection_lost(None)
            await task
        assert not client.partition("events").delayed_fetches

    run_scenario(scenario)


def test_disconnect_between_two_slices_prevents_a_delayed_fetch(monkeypatch):
    async def scenario(client):
        for name in ("SLICE_SECONDS", "SINGLE_CLIENT_SLICE_SECONDS"):
            monkeypatch.setattr(slice_scheduler, name, 0.0)
        client.send(client.request("events", *((index, 0) for index in range(100)), max_wait_ms=60_000))
        task = client.connection._task
        client.connection.connection_lost(None)
        await task
        assert not client.partition("events").delayed_fetches

    run_scenario(scenario)


def test_partition_may_be_removed_between_two_slices(monkeypatch):
    async def scenario(client):
        client.fill("events", 0, 1, 10)
        for name in ("SLICE_SECONDS", "SINGLE_CLIENT_SLICE_SECONDS"):
            monkeypatch.setattr(slice_scheduler, name, 0.0)
        client.send(client.request("events", *((index, 0) for index in range(100)), max_wait_ms=0))
        await client.broker.node.broker.controller.submit(DeleteTopicsRequest(topic_names=["events"]))
        codes = [partition.error_code for partition in (await client.receive()).responses[0].partitions]
        assert set(codes) <= {0, 3, 100}
        assert len(codes) == 100

    run_scenario(scenario)


@pytest.mark.parametrize(("size", "max_bytes"), [(300, 4_000), (300, 100_000), (3000, 1 << 20)])
def test_loop_never_reads_uncached_records(monkeypatch, size, max_bytes):
    """Whether the position must be searched, a few records are read, or many are sent from the file."""
    readers, prefetched = [], []
    read_at, prefetch = RealFile.read_at, RealFile.prefetch

    def reading(file, position, size):
        readers.append(threading.current_thread())
        return read_at(file, position, size)

    def prefetching(file, position, size):
        readers.append(threading.current_thread())
        prefetched.append(size)
        prefetch(file, position, size)

    async def scenario(client):
        client.fill("events", 0, 400, size)
        client.fill("events", 1, 10, size)
        request = client.request("events", (0, 7), (1, 0), max_bytes=max_bytes)
        warm = await client.call(request)
        with monkeypatch.context() as patched:
            patched.setattr(RealFile, "read_at_if_cached", lambda file, position, size: None)
            patched.setattr(RealFile, "read_at", reading)
            patched.setattr(RealFile, "prefetch", prefetching)
            client.send(request)
            await client.connection._task
        assert await client.receive() == warm
        assert len(records(warm)) == max_bytes
        assert max_bytes in prefetched
        assert readers
        assert threading.current_thread() not in readers

    run_scenario(scenario)


def test_worker_reads_uncached_records_of_a_delayed_fetch(monkeypatch):
    async def scenario(client):
        client.send(client.request("events", (0, 0), max_wait_ms=60_000))
        with monkeypatch.context() as patched:
            patched.setattr(RealFile, "read_at_if_cached", lambda file, position, size: None)
            client.fill("events", 0, 1, 300)
            assert b"0" * 300 in records(await client.receive())

    run_scenario(scenario)


def test_large_responses_are_not_held_in_memory():
    """Each range is too small for `sendfile` to be cheaper; together they are too large for memory."""

    async def scenario(client):
        for index in range(100):
            client.fill("events", index, 2, 90_000)
        client.send(client.request("events", *((index, 0) for index in range(100)), max_bytes=50 << 20))
        bytes_in_memory = sum(len(part) for part in client.parts if not isinstance(part, FileRegion))
        assert bytes_in_memory <= disk_reads.IN_MEMORY_BYTES_MAX + disk_reads.SEND_FILE_BYTES_MIN + 100 * 100
        response = await client.receive()
        assert {len(bytes(partition.records)) > 180_000 for partition in response.responses[0].partitions} == {True}

    run_scenario(scenario)


def test_response_is_limited_by_the_broker():
    async def scenario(client):
        for index in range(4):
            client.fill("events", index, 4, 1000)
        response = await client.call(client.request("events", *((index, 0) for index in range(4)), max_bytes=1 << 30))
        sizes = [len(bytes(partition.records)) for partition in response.responses[0].partitions]
        assert (sum(sizes), sizes[0] > 4000, sizes[3]) == (6000, True, 0)

    run_scenario(scenario, **{"fetch.max.bytes": "6000"})


def test_session_gets_only_changes():
    async def scenario(client):
        opened = await client.call(
            client.request("events", *((index, 0) for index in range(100)), session_id=0, session_epoch=0)
        )
        assert len(opened.responses[0].partitions) == 100
        session = {"session_id": opened.session_id, "max_wait_ms": 0, "min_bytes": 1}
        client.send(FetchRequest(**session, session_epoch=1))
        assert sum(map(len, client.parts)) == 4 + 4 + 1 + 4 + 2 + 4 + 1 + 1
        assert (await client.receive()).responses == []
        client.fill("events", 42, 1, 10)
        response = await client.call(FetchRequest(**session, session_epoch=2))
        assert [
            (partition.partition_index, partition.high_watermark) for partition in response.responses[0].partitions
        ] == [(42, 1)]

    run_scenario(scenario)


def test_delayed_fetch_fails_if_its_session_was_used_meanwhile():
    """A fetch waits while its session is used on another connection: what its client knows is not known any more."""

    async def scenario(client):
        opened = await client.call(client.request("events", (0, 0), session_id=0, session_epoch=0))
        client.send(FetchRequest(session_id=opened.session_id, session_epoch=1, max_wait_ms=60_000, min_bytes=1))
        other = Client(client.broker)
        assert (
            await other.call(FetchRequest(session_id=opened.session_id, session_epoch=2, max_wait_ms=0))
        ).error_code == 0
        client.fill("events", 0, 1, 10)
        response = await client.receive()
        assert (response.error_code, response.session_id, response.responses) == (71, opened.session_id, [])

    run_scenario(scenario)


@pytest.mark.parametrize(("slots", "granted"), [("0", [False, False]), ("1", [True, False]), ("2", [True, True])])
def test_sessions_are_limited_by_slots(slots, granted):
    async def scenario(client):
        opening = client.request("events", (0, 0), session_id=0, session_epoch=0)
        assert [(await client.call(opening)).session_id > 0 for _ in range(2)] == granted

    run_scenario(scenario, **{"max.incremental.fetch.session.cache.slots": slots})


def test_delayed_fetch_ends_when_its_topic_is_deleted():
    """The topic id is unknown now, but was not before: like Kafka the response has UNKNOWN_TOPIC_OR_PARTITION."""

    async def scenario(client):
        client.send(client.request("events", (0, 0), max_wait_ms=60_000))
        await client.broker.node.broker.controller.submit(DeleteTopicsRequest(topic_names=["events"]))
        response = await client.receive()
        assert [partition.error_code for partition in response.responses[0].partitions] == [3]

    run_scenario(scenario)


def test_fenced_leader_epoch_comes_with_the_current_leader():
    async def scenario(client):
        partition = client.partition("events")
        partition.become_leader(5)
        request = client.request("events", (0, 0))
        request.topics[0].partitions[0].current_leader_epoch = 4
        (found,) = (await client.call(request)).responses[0].partitions
        leader = (found.current_leader.leader_id, found.current_leader.leader_epoch)
        assert (found.error_code, leader) == (74, (client.broker.node.broker.settings.node_id, 5))

    run_scenario(scenario)


def test_unknown_partitions_do_not_end_a_delayed_fetch():
    async def scenario(client):
        client.send(client.request("events", (0, 0), (777, 0), max_wait_ms=60_000))
        assert client.parts == []
        client.fill("events", 0, 1, 10)
        response = await client.receive()
        assert [
            (partition.partition_index, partition.error_code) for partition in response.responses[0].partitions
        ] == [
            (0, 0),
            (777, 3),
        ]

    run_scenario(scenario)
