"""Malformed and hostile requests affect only their own connection."""

import asyncio
import logging
import os
import struct

import pytest

from ottla.runtime import broker as runtime_broker
from ottla.testing import AsyncBroker
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.compat.raw import framed, header_bytes, read_response, request_bytes

DESCRIBE_CLUSTER = 60


class Client:
    """A connection in the test's own loop."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    @classmethod
    async def to(cls, broker):
        host, _, port = broker.bootstrap.rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    async def send(self, frame):
        self.writer.write(framed(frame))
        try:
            size = struct.unpack(">i", await asyncio.wait_for(self.reader.readexactly(4), 10))[0]
            return await asyncio.wait_for(self.reader.readexactly(size), 10)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    async def call(self, request, version):
        response = await self.send(request_bytes(request, version, 1))
        return None if response is None else read_response(type(request), version, response)[1]

    def close(self):
        self.writer.close()


@pytest.fixture
async def running():
    async with AsyncBroker(configs={"ottla.auto.create.topics.max": "30"}) as broker:
        yield broker


@pytest.mark.parametrize("error", [MemoryError(), RecursionError("too deep"), KeyError("x"), AssertionError()])
async def test_failing_handler_closes_only_its_connection(running, caplog, error):
    def fail(*arguments):
        raise error

    api = running.node._server.apis[DESCRIBE_CLUSTER]
    api.load()
    api.handle = fail
    other = await Client.to(running)
    with caplog.at_level(logging.ERROR, "ottla"):
        for _ in range(5):
            client = await Client.to(running)
            assert await client.send(header_bytes(DESCRIBE_CLUSTER, 0, 1, "x", flexible=True) + b"\0\0") is None
            client.close()
    assert len(caplog.records) == 1  # the others within a second are only counted
    assert caplog.records[0].exc_info[1] is error
    assert running.node._server.failed == 5
    assert await other.call(MetadataRequest(topics=[]), 12) is not None
    other.close()


async def test_failing_coroutine_closes_only_its_connection(running, caplog):
    async def fail(*arguments):
        raise MemoryError

    api = running.node._server.apis[DESCRIBE_CLUSTER]
    api.load()
    api.handle = fail
    client = await Client.to(running)
    with caplog.at_level(logging.ERROR, "ottla"):
        assert await client.send(header_bytes(DESCRIBE_CLUSTER, 0, 1, "x", flexible=True) + b"\0\0") is None
    assert len(caplog.records) == 1
    client.close()


@pytest.mark.parametrize("name", ["..", ".", "a/b", "../../tmp/x", "a\0b", "", "x" * 250, "a b", "é"])
async def test_invalid_topic_names_create_no_directories(running, name):
    """Neither by CreateTopics, nor by Metadata, nor by Produce."""
    before = sorted(os.listdir(running.data))
    client = await Client.to(running)
    created = await client.call(
        CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1)]), 7
    )
    assert created.topics[0].error_code == 17
    existing = await client.call(
        MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True), 9
    )
    assert existing.topics[0].error_code == 17
    data = [TopicProduceData(name=name, partition_data=[PartitionProduceData(index=0, records=b"x")])]
    produced = await client.call(ProduceRequest(acks=1, topic_data=data), 9)
    assert produced is None or produced.responses[0].partition_responses[0].error_code
    assert sorted(os.listdir(running.data)) == before
    client.close()


async def test_auto_created_topics_are_limited(running, monkeypatch):
    """In number, and in how many are created at a time; CreateTopics is not affected."""
    monkeypatch.setattr(runtime_broker, "PENDING_CREATIONS_MAX", 20)
    broker = running.node.broker
    client = await Client.to(running)
    for wave in range(4):
        names = [MetadataRequestTopic(name=f"topic-{wave}-{number}") for number in range(500)]
        await client.call(MetadataRequest(topics=names, allow_auto_topic_creation=True), 9)
        while broker._creating:
            await asyncio.sleep(0.005)
        assert len(broker.image.topics_by_name) == (20 if wave == 0 else 30)
    await running.create_topic("wanted")
    assert len(broker.image.topics_by_name) == 31
    client.close()


@pytest.mark.parametrize(
    ("key", "version", "body"),
    [
        (3, 1, struct.pack(">i", 200_000) + b"\0\1a" * 200_000),
        (3, 1, struct.pack(">i", 2**31 - 1)),
        (
            0,
            3,
            struct.pack(">hhii", -1, 1, 1000, 1)
            + b"\0\1a"
            + struct.pack(">i", 300_000)
            + struct.pack(">ii", 0, -1) * 300_000,
        ),
        (0, 3, struct.pack(">hhii", -1, 1, 1000, 300_000) + (b"\0\1a" + struct.pack(">i", 0)) * 300_000),
        (0, 3, struct.pack(">hhii", -1, 1, 1000, 300_000) + (b"\0\1a" + struct.pack(">i", -5)) * 300_000),
    ],
)
async def test_excessive_array_lengths_close_the_connection(running, key, version, body):
    client = await Client.to(running)
    assert await client.send(header_bytes(key, version, 1, "x", flexible=False) + body) is None
    client.close()
    assert running.node._server.malformed == 1
