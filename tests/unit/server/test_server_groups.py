"""Group requests on connections: waiting members block no other connection, and responses keep their order."""

import asyncio
import struct
from typing import Any

from ottla.metadata.topic_names import OFFSETS_TOPIC
from ottla.testing import AsyncBroker
from ottla.wire.batches import Record, build_batch
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.schema import Message
from tests.compat.raw import framed, read_response, request_bytes

JOIN_VERSION, BEAT_VERSION = 3, 3
WAITING = {"group.initial.rebalance.delay.ms": "3000000"}


class Client:
    """A client that sends without waiting for responses."""

    async def connect(self, broker: AsyncBroker) -> "Client":
        host, _, port = broker.bootstrap.rpartition(":")
        self.reader, self.writer = await asyncio.open_connection(host, int(port))
        return self

    def send(self, request: Message, version: int, correlation_id: int = 1) -> None:
        self.writer.write(framed(request_bytes(request, version, correlation_id)))

    async def receive(self, request_type: type[Message], version: int) -> tuple[int, Any]:
        size = struct.unpack(">i", await asyncio.wait_for(self.reader.readexactly(4), 10))[0]
        return read_response(request_type, version, await self.reader.readexactly(size))

    async def call(self, request: Message, version: int) -> Any:
        self.send(request, version)
        return (await self.receive(type(request), version))[1]


def join(group: str = "g", member: str = "") -> JoinGroupRequest:
    protocols = [JoinGroupRequestProtocol("range", b"\0\0\0\0\0\0\0\0\0\0")]
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=6000,
        rebalance_timeout_ms=6000,
        member_id=member,
        protocol_type="consumer",
        protocols=protocols,
    )


async def found(broker: AsyncBroker) -> Client:
    client = await Client().connect(broker)
    assert (await client.call(FindCoordinatorRequest(key="g"), 0)).error_code == 0
    return client


async def members_of(broker: AsyncBroker, group: str) -> int:
    """Return the number of members in the group."""
    from ottla.wire.messages.describe_groups import DescribeGroupsRequest

    client = await Client().connect(broker)
    response = await client.call(DescribeGroupsRequest(groups=[group]), 5)
    client.writer.close()
    return len(response.groups[0].members)


async def test_waiting_member_blocks_no_other_connection():
    async with AsyncBroker(configs=WAITING) as broker:
        waiting, other = await found(broker), await found(broker)
        waiting.send(join(), JOIN_VERSION)
        while not await members_of(broker, "g"):
            await asyncio.sleep(0)
        assert (await other.call(HeartbeatRequest("h", 1, "nobody"), BEAT_VERSION)).error_code == 25
        await broker.create_topic("t")
        topic = OffsetCommitRequestTopic(name="t", partitions=[OffsetCommitRequestPartition(0, 5)])
        commit = OffsetCommitRequest(group_id="h", topics=[topic])
        assert (await other.call(commit, 8)).topics[0].partitions[0].error_code == 0


async def test_responses_on_a_connection_keep_their_order():
    """The response to a Heartbeat sent after a JoinGroup follows that of the JoinGroup, however long it takes."""
    async with AsyncBroker() as broker:
        client = await found(broker)
        client.send(join(), JOIN_VERSION, 7)
        client.send(HeartbeatRequest("h", 1, "nobody"), BEAT_VERSION, 8)
        client.send(HeartbeatRequest("", 1, "nobody"), BEAT_VERSION, 9)
        joined = await client.receive(JoinGroupRequest, JOIN_VERSION)
        first, second = (
            await client.receive(HeartbeatRequest, BEAT_VERSION),
            await client.receive(HeartbeatRequest, BEAT_VERSION),
        )
        assert (joined[0], joined[1].error_code, joined[1].generation_id) == (7, 0, 1)
        assert [(found[0], found[1].error_code) for found in (first, second)] == [(8, 25), (9, 24)]


async def test_client_may_disconnect_while_it_waits():
    """The group accepts further members, and no request fails."""
    async with AsyncBroker(configs=WAITING) as broker:
        client = await found(broker)
        client.send(join(), JOIN_VERSION)
        while not await members_of(broker, "g"):
            await asyncio.sleep(0)
        client.writer.close()
        await client.writer.wait_closed()
        other = await found(broker)
        other.send(join(), JOIN_VERSION)
        while await members_of(broker, "g") < 2:
            await asyncio.sleep(0)
        assert broker.node._server.failed == 0


async def test_stop_does_not_wait_for_members():
    async with AsyncBroker(configs=WAITING) as broker:
        client = await found(broker)
        client.send(join(), JOIN_VERSION)
        while not await members_of(broker, "g"):
            await asyncio.sleep(0)
        await asyncio.wait_for(broker.stop(), 5)
        assert await client.reader.read() == b""


async def test_clients_cannot_produce_to_the_offsets_topic():
    """Whether the batch is small, large or compressed."""
    async with AsyncBroker() as broker:
        client = await found(broker)
        topic = broker.node.broker.image.topics_by_name[OFFSETS_TOPIC]
        before = {partition.log.log_end_offset for partition in broker.node.broker.all_partitions()}
        for codec, value in ((0, b"v"), (0, b"v" * 9000), (1, bytes(range(256)) * 400)):
            records = bytes(build_batch([Record(0, 1_700_000_000_000, b"k", value)], codec=codec))
            data = [PartitionProduceData(index=0, records=records)]
            by_id = ProduceRequest(acks=-1, topic_data=[TopicProduceData(topic_id=topic.topic_id, partition_data=data)])
            assert (await client.call(by_id, 13)).responses[0].partition_responses[0].error_code == 17
        assert {partition.log.log_end_offset for partition in broker.node.broker.all_partitions()} == before == {0}
