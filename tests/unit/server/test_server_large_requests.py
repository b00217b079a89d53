"""Large requests: handled like others, but one at a time, in slices, and within limits."""

import asyncio
from collections.abc import Callable, Generator
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.node.assemble import assemble
from ottla.node.config import node_config
from ottla.runtime.slice_scheduler import PAUSE_FACTOR, LargeRequestThrottle, SliceScheduler
from ottla.server.connection import ServerConnection
from ottla.sim.client import SimulatedClient
from ottla.sim.world import World
from ottla.testing import Broker
from ottla.wire.batches import Record, build_batch
from ottla.wire.errors import MalformedMessage
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from tests.compat.raw import RawConnection, framed, request_bytes


def connected(broker: Broker) -> RawConnection:
    host, _, port = broker.bootstrap.rpartition(":")
    return RawConnection((host, int(port)))


def test_large_requests_get_the_same_responses_as_small_ones() -> None:
    """Whether the handler responds at once, in bytes or later; later requests keep their order."""
    with Broker(configs={"auto.create.topics.enable": "false"}) as broker, connected(broker) as connection:
        broker.create_topic("there", partitions=2)
        names = ["there", *(f"not-there-{number}" for number in range(4000))]
        connection.send(MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names]), 12)
        connection.send(DescribeTopicPartitionsRequest(response_partition_limit=2000), 0)
        response = connection.receive(MetadataRequest, 12)
        assert [(topic.name, topic.error_code, len(topic.partitions)) for topic in response.topics] == [
            ("there", 0, 2),
            *((name, 3, 0) for name in names[1:]),
        ]
        assert [topic.name for topic in connection.receive(DescribeTopicPartitionsRequest, 0).topics] == ["there"]
        requested = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(4000)]
        offsets = connection.call(
            ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="there", partitions=requested)]), 6
        )
        assert [part.error_code for part in offsets.topics[0].partitions] == [0, 0] + [3] * 3998
        created = connection.call(
            CreateTopicsRequest(
                topics=[
                    CreatableTopic(name=f"bad name {number}", num_partitions=1, replication_factor=1)
                    for number in range(3000)
                ]
            ),
            5,
        )
        assert [topic.error_code for topic in created.topics] == [17] * 3000


def fetch(count: int, *, session_id: int = 0, session_epoch: int = -1) -> FetchRequest:
    requested = [FetchPartition(partition=index, partition_max_bytes=1000) for index in range(count)]
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1000,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=[FetchTopic(topic="there", partitions=requested)] if count else [],
    )


def test_large_fetch_gets_the_same_response_as_a_small_one() -> None:
    with Broker() as broker, connected(broker) as connection:
        broker.create_topic("there", partitions=2)
        for version in (11, 12):
            response = connection.call(fetch(6000), version)
            codes = [part.error_code for topic in response.responses for part in topic.partitions]
            assert codes == [0, 0] + [3] * 5998
        opened = connection.call(fetch(6000, session_epoch=0), 12)
        assert opened.session_id
        again = connection.call(fetch(0, session_id=opened.session_id, session_epoch=1), 12)
        assert (again.error_code, again.session_id, len(again.responses[0].partitions)) == (0, opened.session_id, 5998)
        before = broker._broker.node._server.apis[1].errors
        assert connection.call(fetch(4), 12).error_code == 0
        assert connection.call(fetch(2), 12).error_code == 0
        assert connection.call(fetch(0, session_id=123, session_epoch=1), 12).error_code == 70
        assert broker._broker.node._server.apis[1].errors - before == 3


@pytest.mark.parametrize("version", [3, 8, 12])
def test_produce_to_many_partitions_gets_the_same_response_as_to_few(version: int) -> None:
    """Batches of existing partitions are appended, others get errors, in order; without acks the connection closes."""
    batch = bytes(build_batch([Record(timestamp=0, value=b"x")]))
    requested = [PartitionProduceData(index=index, records=batch if index % 2 else None) for index in range(2500)]
    request = ProduceRequest(
        acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name="there", partition_data=requested)]
    )
    with Broker() as broker, connected(broker) as connection:
        broker.create_topic("there", partitions=250)
        response = connection.call(request, version)
        found = [(part.index, part.error_code, part.base_offset) for part in response.responses[0].partition_responses]
        there = [(index, 0, 0) if index % 2 else (index, ErrorCode.INVALID_RECORD, -1) for index in range(250)]
        assert found == [*there, *((index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1) for index in range(250, 2500))]
        request.topic_data[0].partition_data = [part for part in requested[:250] if part.records]
        response = connection.call(request, version)
        assert [part.base_offset for part in response.responses[0].partition_responses] == [1] * 125
        request.acks = 0
        request.topic_data[0].partition_data = requested
        connection.send(request, version)
        assert connection.is_closed()


@pytest.mark.parametrize(
    "request_of",
    [
        lambda: fetch(1500),
        lambda: ProduceRequest(
            acks=1,
            timeout_ms=1000,
            topic_data=[
                TopicProduceData(
                    name="there", partition_data=[PartitionProduceData(index=index) for index in range(900)]
                )
            ],
        ),
    ],
)
def test_loop_serves_others_while_a_request_names_many_partitions(
    request_of: Callable[[], FetchRequest | ProduceRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are several loop iterations between request and response."""
    iterations: list[int] = []
    handle, response = ServerConnection._on_frame, ServerConnection.send

    async def scenario(world: World) -> None:
        ports = world.start("node")
        config = node_config(
            {"listeners": "PLAINTEXT://node:9092", "log.dirs": "/data"}, directory="/", canonical_host=lambda: "node"
        )
        node = await world.within(ports, assemble(ports, config))
        client = SimulatedClient(world.start("client").network, "node", 9092)
        await client.connect()
        passed = 0
        is_responded = False

        def pass_iteration() -> None:
            nonlocal passed
            passed += 1
            if not is_responded and passed < 1000:  # virtual time passes only once nothing is ready
                world.loop.call_soon(pass_iteration)

        def on_frame(connection: ServerConnection, *frame: Any) -> bool:
            world.loop.call_soon(pass_iteration)
            return handle(connection, *frame)

        def on_response(connection: ServerConnection, parts: Any) -> bool:
            nonlocal is_responded
            is_responded = True
            iterations.append(passed)
            return response(connection, parts)

        monkeypatch.setattr(ServerConnection, "_on_frame", on_frame)
        monkeypatch.setattr(ServerConnection, "send", on_response)
        request = request_of()
        await client.call(request, FetchResponse if isinstance(request, FetchRequest) else ProduceResponse, 12)
        await world.within(ports, node.stop())

    with World(3) as world:
        world.run(scenario(world))
    assert len(iterations) == 1
    assert iterations[0] > 5


@pytest.mark.parametrize("version", [11, 12])
def test_fetch_of_too_many_partitions_closes_its_connection_only(version: int) -> None:
    with Broker() as broker, connected(broker) as connection, connected(broker) as other:
        connection.send_bytes(framed(request_bytes(fetch(50_001), version, 1)))
        assert connection.is_closed()
        assert other.call(fetch(1), version).error_code == 0


def test_malformed_large_request_closes_its_connection_only() -> None:
    names = [MetadataRequestTopic(name=f"topic-{number}") for number in range(4000)]
    request = request_bytes(MetadataRequest(topics=names), 12, 1)
    with Broker() as broker, connected(broker) as connection, connected(broker) as other:
        connection.send_frame(request[: len(request) // 2])
        assert connection.is_closed()
        assert other.call(MetadataRequest(topics=[]), 12).topics == []


class Loop:
    """A clock and loop whose time is set by the test, and whose timers are called by it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[tuple[float, object]] = []

    def monotonic(self) -> float:
        return self.now

    def create_future(self) -> "asyncio.Future[None]":
        return asyncio.get_running_loop().create_future()

    def call_later(self, delay: float, callback: object) -> None:
        self.timers.append((delay, callback))


def throttle_of(loop: Loop) -> LargeRequestThrottle:
    return SliceScheduler(loop, loop).large_requests


async def test_throttle_admits_one_request_at_a_time_after_a_pause() -> None:
    loop = Loop()
    throttle = throttle_of(loop)
    await throttle.acquire(10)
    second = asyncio.ensure_future(throttle.acquire(20))
    await asyncio.sleep(0)
    assert (second.done(), throttle.queued_bytes) == (False, 20)
    loop.now += 0.01
    throttle.release()
    delay, wake = loop.timers.pop()
    assert delay == pytest.approx(PAUSE_FACTOR * 0.01)
    assert not second.done()
    wake()  # type: ignore[operator]
    await second
    assert throttle.queued_bytes == 0


async def test_throttle_skips_cancelled_requests() -> None:
    loop = Loop()
    throttle = throttle_of(loop)
    await throttle.acquire(0)
    cancelled, woken_and_cancelled, last = (asyncio.ensure_future(throttle.acquire(5)) for _ in range(3))
    await asyncio.sleep(0)
    cancelled.cancel()
    throttle.release()
    loop.timers.pop()[1]()  # type: ignore[operator]
    woken_and_cancelled.cancel()
    await asyncio.wait([last])
    assert (last.exception(), throttle.queued_bytes) == (None, 0)


async def test_throttle_pauses_after_each_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, pauses = Loop(), []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)

    def work() -> Generator[None, None, str]:
        for seconds in (0.001, 0.002, 10.0):
            loop.now += seconds
            yield
        return "done"

    throttle = throttle_of(loop)
    await throttle.acquire(0)
    assert await throttle.run(work()) == "done"
    assert pauses == [pytest.approx(PAUSE_FACTOR * 0.001), pytest.approx(PAUSE_FACTOR * 0.002), 1.0]


def test_queued_bytes_are_limited() -> None:
    throttle = throttle_of(Loop())
    throttle.queued_bytes = 60 << 20
    throttle.check_capacity(4 << 20)
    with pytest.raises(MalformedMessage, match="large-request queue is full"):
        throttle.check_capacity((4 << 20) + 1)
