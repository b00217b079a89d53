"""Fetch as the server handles it: what waits, what is read by workers, what an answer holds. The client's side keeps what is sent."""

import asyncio
import threading

import pytest

from ottla.io.disk import RealFile
from ottla.server import disk_reads
from ottla.server.connection import FileRegion, ServerConnection
from ottla.testing import AsyncBroker
from ottla.wire.batches import Record, build_batch
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.compat.raw import read_response, request_bytes

VERSION = 17


class Client:
    """A connection of the server whose other side is this object."""

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
        """Nothing comes that was not called for."""

    resume_reading = abort = close = pause_reading

    def send(self, request: FetchRequest) -> None:
        frame = bytearray(request_bytes(request, VERSION))
        self.connection._on_frame(frame, memoryview(frame), 0, len(frame))
        self.connection.flush()

    async def ask(self, request: FetchRequest):
        self.send(request)
        return await self.answer()

    async def answer(self):
        await asyncio.wait_for(self.came.wait(), 10)
        self.came.clear()
        parts, self.parts = self.parts, []
        whole = b"".join(
            part.file.read_at(part.position, part.size) if isinstance(part, FileRegion) else part for part in parts
        )
        assert int.from_bytes(whole[:4], "big") == len(whole) - 4
        return read_response(FetchRequest, VERSION, whole[4:])[1]

    def partition(self, topic: str, index: int = 0):
        return self.broker.node.broker.partition(topic, index)

    def fill(self, topic: str, index: int, count: int, size: int) -> None:
        for number in range(count):
            self.partition(topic, index).append(
                memoryview(build_batch([Record(0, number, None, b"%d" % (number % 10) * size)])), 1
            )

    def request(self, topic: str, *places: tuple[int, int], **fields) -> FetchRequest:
        most = fields.pop("most", 1 << 20)
        wanted = [
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=most) for index, offset in places
        ]
        return FetchRequest(
            **{"max_wait_ms": 0, "min_bytes": 1, **fields},
            topics=[FetchTopic(topic_id=self.partition(topic).topic_id, partitions=wanted)],
        )


def told(story, **config):
    """Run a story with a client of a fresh broker."""

    async def run():
        async with AsyncBroker(config=config) as broker:
            await broker.create_topic("events", 100)
            await story(Client(broker))

    asyncio.run(run())


def records(answer, at: int = 0) -> bytes:
    return bytes(answer.responses[0].partitions[at].records)


def test_a_client_that_leaves_waits_no_longer():
    async def story(client):
        client.send(client.request("events", (0, 0), (1, 0), max_wait_ms=60_000))
        assert [len(client.partition("events", index).delayed_fetches) for index in (0, 1)] == [1, 1]
        client.connection.connection_lost(None)
        assert [len(client.partition("events", index).delayed_fetches) for index in (0, 1)] == [0, 0]

    told(story)


def test_a_client_that_leaves_while_the_disk_is_read_never_waits_for_data(monkeypatch):
    async def story(client):
        client.fill("events", 0, 50, 300)
        with monkeypatch.context() as patched:
            patched.setattr(RealFile, "read_at_if_cached", lambda file, position, size: None)
            client.send(client.request("events", (0, 0), max_wait_ms=60_000, min_bytes=1 << 20))
            task = client.connection._task
            client.connection.connection_lost(None)
            await task
        assert not client.partition("events").delayed_fetches

    told(story)


@pytest.mark.parametrize(("size", "most"), [(300, 4_000), (300, 100_000), (3000, 1 << 20)])
def test_the_loop_never_reads_what_is_cold(monkeypatch, size, most):
    """Whether the position must be looked up, a few records are read, or many are sent from the file."""
    readers, brought_in = [], []
    read_at, prefetch = RealFile.read_at, RealFile.prefetch

    def reading(file, position, size):
        readers.append(threading.current_thread())
        return read_at(file, position, size)

    def bringing_in(file, position, size):
        readers.append(threading.current_thread())
        brought_in.append(size)
        prefetch(file, position, size)

    async def story(client):
        client.fill("events", 0, 400, size)
        client.fill("events", 1, 10, size)
        wanted = client.request("events", (0, 7), (1, 0), most=most)
        warm = await client.ask(wanted)
        with monkeypatch.context() as patched:
            patched.setattr(RealFile, "read_at_if_cached", lambda file, position, size: None)
            patched.setattr(RealFile, "read_at", reading)
            patched.setattr(RealFile, "prefetch", bringing_in)
            client.send(wanted)
            await client.connection._task
        assert await client.answer() == warm
        assert len(records(warm)) == most
        assert most in brought_in
        assert readers
        assert threading.current_thread() not in readers

    told(story)


def test_what_is_cold_after_a_wait_is_read_by_a_worker(monkeypatch):
    async def story(client):
        client.send(client.request("events", (0, 0), max_wait_ms=60_000))
        with monkeypatch.context() as patched:
            patched.setattr(RealFile, "read_at_if_cached", lambda file, position, size: None)
            client.fill("events", 0, 1, 300)
            assert b"0" * 300 in records(await client.answer())

    told(story)


def test_large_answers_are_not_held_in_memory():
    """Each slice is too small for `sendfile` to be cheaper, all of them are too much to be held."""

    async def story(client):
        for index in range(100):
            client.fill("events", index, 2, 90_000)
        client.send(client.request("events", *((index, 0) for index in range(100)), max_bytes=50 << 20))
        held = sum(len(part) for part in client.parts if not isinstance(part, FileRegion))
        assert held <= disk_reads.HELD_BYTES_MAX + disk_reads.SEND_FILE_BYTES_MIN + 100 * 100
        answer = await client.answer()
        assert {len(bytes(partition.records)) > 180_000 for partition in answer.responses[0].partitions} == {True}

    told(story)


def test_an_answer_has_no_more_than_the_broker_allows():
    async def story(client):
        for index in range(4):
            client.fill("events", index, 4, 1000)
        answer = await client.ask(client.request("events", *((index, 0) for index in range(4)), max_bytes=1 << 30))
        sizes = [len(bytes(partition.records)) for partition in answer.responses[0].partitions]
        assert (sum(sizes), sizes[0] > 4000, sizes[3]) == (6000, True, 0)

    told(story, **{"fetch.max.bytes": "6000"})


def test_a_session_is_told_what_is_new_and_nothing_else():
    async def story(client):
        opened = await client.ask(
            client.request("events", *((index, 0) for index in range(100)), session_id=0, session_epoch=0)
        )
        assert len(opened.responses[0].partitions) == 100
        session = {"session_id": opened.session_id, "max_wait_ms": 0, "min_bytes": 1}
        client.send(FetchRequest(**session, session_epoch=1))
        assert sum(map(len, client.parts)) == 4 + 4 + 1 + 4 + 2 + 4 + 1 + 1
        assert (await client.answer()).responses == []
        client.fill("events", 42, 1, 10)
        answer = await client.ask(FetchRequest(**session, session_epoch=2))
        assert [
            (partition.partition_index, partition.high_watermark) for partition in answer.responses[0].partitions
        ] == [(42, 1)]

    told(story)


def test_a_session_that_another_used_meanwhile_is_refused():
    """A fetch waits, the same session is used on another connection: the one that waited cannot know any more what its client knows."""

    async def story(client):
        opened = await client.ask(client.request("events", (0, 0), session_id=0, session_epoch=0))
        client.send(FetchRequest(session_id=opened.session_id, session_epoch=1, max_wait_ms=60_000, min_bytes=1))
        other = Client(client.broker)
        assert (
            await other.ask(FetchRequest(session_id=opened.session_id, session_epoch=2, max_wait_ms=0))
        ).error_code == 0
        client.fill("events", 0, 1, 10)
        answer = await client.answer()
        assert (answer.error_code, answer.session_id, answer.responses) == (71, opened.session_id, [])

    told(story)


@pytest.mark.parametrize(("slots", "granted"), [("0", [False, False]), ("1", [True, False]), ("2", [True, True])])
def test_there_are_as_many_sessions_as_slots(slots, granted):
    async def story(client):
        opening = client.request("events", (0, 0), session_id=0, session_epoch=0)
        assert [(await client.ask(opening)).session_id > 0 for _ in range(2)] == granted

    told(story, **{"max.incremental.fetch.session.cache.slots": slots})


def test_a_topic_that_is_deleted_while_a_fetch_waits_for_it():
    """By its id it is unknown now, but the client was told nothing of the kind before: Kafka says that the partition is gone."""

    async def story(client):
        client.send(client.request("events", (0, 0), max_wait_ms=60_000))
        await client.broker.node.broker.controller.submit(DeleteTopicsRequest(topic_names=["events"]))
        answer = await client.answer()
        assert [partition.error_code for partition in answer.responses[0].partitions] == [3]

    told(story)


def test_who_leads_is_told_to_those_who_know_an_older_leader():
    async def story(client):
        partition = client.partition("events")
        partition.become_leader(5)
        wanted = client.request("events", (0, 0))
        wanted.topics[0].partitions[0].current_leader_epoch = 4
        (found,) = (await client.ask(wanted)).responses[0].partitions
        leader = (found.current_leader.leader_id, found.current_leader.leader_epoch)
        assert (found.error_code, leader) == (74, (client.broker.node.broker.settings.node_id, 5))

    told(story)


def test_unknown_partitions_do_not_end_a_wait():
    async def story(client):
        client.send(client.request("events", (0, 0), (777, 0), max_wait_ms=60_000))
        assert client.parts == []
        client.fill("events", 0, 1, 10)
        answer = await client.answer()
        assert [(partition.partition_index, partition.error_code) for partition in answer.responses[0].partitions] == [
            (0, 0),
            (777, 3),
        ]

    told(story)
