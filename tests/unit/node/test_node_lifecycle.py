"""Start, stop, crash and restart of a node on simulated ports."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.controller.requests import FenceBroker
from ottla.log.config import LogConfig
from ottla.metadata.image import ClusterImage
from ottla.node.assemble import Node, assemble
from ottla.node.config import node_config
from ottla.runtime.log_recovery import RecoveryInterrupted
from ottla.runtime.metadata_log import MetadataLog
from ottla.sim.client import SimulatedClient
from ottla.sim.world import SimulatedPorts, World
from ottla.wire.batches import Record, build_batch
from ottla.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

PORT = 9092
CLUSTER = "AAAAAAAAAAAAAAAAAAAAAg"


@pytest.fixture
def world() -> Iterator[World]:
    with World(11) as created:
        yield created


def start(
    world: World, *, is_stopping: Callable[[], bool] = lambda: False, **settings: str
) -> tuple[SimulatedPorts, Any]:
    configs = {"listeners": f"PLAINTEXT://node:{PORT}", "log.dirs": "/data"} | {
        k.replace("_", "."): v for k, v in settings.items()
    }
    config = node_config(configs, cluster_id=CLUSTER, directory="/", canonical_host=lambda: "node")
    ports = world.start("node")
    return ports, world.within(ports, assemble(ports, config, is_stopping=is_stopping))


def read_image(world: World) -> ClusterImage:
    """Return the image in the metadata log of a stopped node."""
    ports = world.start("node")

    async def read() -> ClusterImage:
        log = MetadataLog.open(
            ports.disk,
            ports.clock,
            ports.workers,
            "/data/__cluster_metadata-0",
            node_id=1,
            clean=True,
            config=LogConfig(),
            on_failed=lambda error: None,
        )
        return log.load(CLUSTER)

    image = world.run(world.within(ports, read()))
    world.exit("node")
    return image


async def connect(world: World, name: str = "client") -> SimulatedClient:
    network = world.start(name).network
    client = SimulatedClient(network, "node", PORT)
    await client.connect()
    return client


def test_clean_stop_fences_the_broker_and_removes_all_leaders(world: World) -> None:
    """The next reader of the metadata log need not wait for this broker's session to expire."""

    async def scenario() -> None:
        ports, starting = start(world)
        node: Node = await starting
        client = await connect(world)
        await client.create_topic("t", 2)
        await world.within(ports, node.stop())

    world.run(scenario())
    world.exit("node")
    image = read_image(world)
    assert (image.brokers[1].fenced, image.brokers[1].in_controlled_shutdown) == (True, True)
    assert [partition.leader for partition in image.topics_by_name["t"].partitions.values()] == [-1, -1]


def test_stop_during_recovery_is_immediate_and_loses_nothing(world: World) -> None:
    """Its directories are unlocked afterwards, and not marked as clean."""

    async def crash() -> None:
        _, starting = start(world)
        await starting
        client = await connect(world)
        await client.create_topic("t", 2)
        await client.produce("t", 0, build_batch([Record(value=b"kept")]), acks=1)

    async def stop() -> None:
        ports, starting = start(world, is_stopping=lambda: True)
        with pytest.raises(RecoveryInterrupted):
            await starting
        assert not ports.disk.exists("/data/.kafka_cleanshutdown")

    async def restart() -> None:
        ports, starting = start(world)
        node: Node = await starting
        partition = node.broker.partition("t", 0)
        assert partition is not None
        assert partition.log.log_end_offset == 1
        await world.within(ports, node.stop())

    world.run(crash())
    world.crash("node")
    world.run(stop())
    world.exit("node")
    world.run(restart())


def test_leader_changes_before_the_partition_is_open(world: World) -> None:
    """As when a node stops just after a topic was created. Until then requests get a retriable error."""

    async def scenario() -> None:
        ports, starting = start(world)
        node: Node = await starting
        client = await connect(world)
        await client.create_topic("t", 1)
        node.broker.flushes_in_flight["/data/t-1"] = node.broker.loop.create_future()
        topic = CreatePartitionsTopic(name="t", count=2, assignments=None)
        creating = asyncio.ensure_future(
            client.call(CreatePartitionsRequest(topics=[topic], timeout_ms=1000), CreatePartitionsResponse)
        )
        while len(node.broker.image.topics_by_name["t"].partitions) == 1:
            await asyncio.sleep(0.001)
        other = await connect(world, "other")
        other.topic_ids = client.topic_ids
        records = bytes(build_batch([Record(timestamp=1, value=b"x")]))
        errors = [
            (await other.list_offsets("t", 1, -1)).error_code,
            (await other.produce("t", 1, records, acks=-1)).error_code,
            (await other.fetch("t", 1, 0)).error_code,
            (await other.fetch("t", 2, 0)).error_code,
        ]
        assert errors == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 3 + [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        fencing = asyncio.ensure_future(node.broker.controller.submit(FenceBroker(1, node._broker_epoch)))
        while node.broker.image.topics_by_name["t"].partitions[1].leader == 1:
            await asyncio.sleep(0.001)
        assert node.broker.partition("t", 1) is None
        node.broker.flushes_in_flight.pop("/data/t-1").set_result(None)
        await creating
        await fencing
        partition = node.broker.partition("t", 1)
        assert partition is not None
        assert not partition.is_leader
        assert not node.failed.done()
        await world.within(ports, node.stop())

    world.run(scenario())


def test_restart_after_a_clean_stop_leads_in_a_new_epoch(world: World) -> None:
    async def scenario() -> list[tuple[int, int]]:
        ports, starting = start(world)
        node: Node = await starting
        client = await connect(world)
        await client.create_topic("t", 1)
        await world.within(ports, node.stop())
        world.exit("node")
        _, starting = start(world)
        node = await starting
        partition = node.broker.image.topics_by_name["t"].partitions[0]
        led = node.broker.partition("t", 0)
        assert led is not None
        return [(partition.leader, partition.leader_epoch), (1, led.leader_epoch)]

    image, led = world.run(scenario())
    assert image == led
    assert image[1] > 0


def test_partitions_are_spread_over_directories_and_reported(world: World) -> None:
    async def scenario() -> dict[str, int]:
        _, starting = start(world, log_dirs="/data,/more")
        node: Node = await starting
        client = await connect(world)
        await client.create_topic("t", 4)
        while not all(
            partition.directories[0] in node.broker.image.brokers[1].log_dirs
            for partition in node.broker.image.topics_by_name["t"].partitions.values()
        ):
            await asyncio.sleep(0.01)  # the simulator fails the test if this never ends
        directories = [partition.log.directory.rpartition("/")[0] for partition in node.broker.all_partitions()]
        return {directory: directories.count(directory) for directory in directories}

    assert world.run(scenario()) == {"/data": 2, "/more": 2}


def test_topic_recreated_during_a_flush_of_the_old_one_is_empty(world: World) -> None:
    """A worker that still writes to the old log neither stops the node nor affects the new log."""

    async def scenario() -> tuple[bool, int, list[int]]:
        ports, starting = start(world)
        node: Node = await starting
        client = await connect(world)
        await client.create_topic("t", 1, {"segment.bytes": "1048576"})
        value = bytes(700_000)
        for _ in range(4):
            response = await client.produce(
                "t", 0, bytes(build_batch([Record(timestamp=ports.clock.now_ms(), value=value)])), acks=-1
            )
            assert response.error_code == 0
        old = node.broker.partition("t", 0)
        assert old is not None
        flushing = asyncio.ensure_future(world.within(ports, node.flusher.flush(old, to_end=False)))
        while not node.broker.flushes_in_flight:
            await asyncio.sleep(0)
        await client.call(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), DeleteTopicsResponse, 5)
        await client.create_topic("t", 1)
        await flushing
        while (new := node.broker.partition("t", 0)) is None:
            await asyncio.sleep(0.001)
        assert new is not old
        return node.failed.done(), new.log.log_end_offset, [segment.base_offset for segment in new.log.segments]

    assert world.run(scenario()) == (False, 0, [0])


def test_topic_deleted_while_its_partitions_are_opened_leaves_no_directories(world: World) -> None:
    """A topic of the same name, created right after, works."""

    async def scenario() -> tuple[list[str], int, bool]:
        ports, starting = start(world)
        node: Node = await starting
        client, other, third = await connect(world), await connect(world, "other"), await connect(world, "third")
        creating = asyncio.ensure_future(client.create_topic("t", 20))
        while "t" not in node.broker.image.topics_by_name:
            await asyncio.sleep(0.0001)
        old_id = node.broker.image.topics_by_name["t"].topic_id
        assert node.broker.partition("t", 19) is None  # it is not open yet
        deleting = asyncio.ensure_future(
            other.call(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), DeleteTopicsResponse, 5)
        )
        while "t" in node.broker.image.topics_by_name:
            await asyncio.sleep(0.0001)
        await third.create_topic("t", 1)
        await asyncio.gather(creating, deleting)
        assert node.broker.image.topics_by_name["t"].topic_id != old_id
        produced = await third.produce(
            "t", 0, bytes(build_batch([Record(timestamp=ports.clock.now_ms(), value=b"v")])), acks=-1
        )
        names = [name for name in ports.disk.list("/data") if name.startswith("t-") and not name.endswith("-delete")]
        return names, produced.error_code, node.failed.done()

    assert world.run(scenario()) == (["t-0"], 0, False)
