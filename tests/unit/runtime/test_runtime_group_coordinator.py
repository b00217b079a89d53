"""The group coordinator in a complete node: the offsets topic, loading, and deletion of topics."""

import asyncio
from typing import Any

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.metadata.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from ottla.runtime import slice_scheduler
from ottla.runtime.internal_topics import internal_topic
from ottla.runtime.shard_driver import ShardState
from ottla.server.api import find_coordinator, join_group, list_groups, offset_commit, offset_fetch
from ottla.testing import AsyncBroker
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

CONTEXT = RequestContext("PLAINTEXT", "User:ANONYMOUS", "test", "127.0.0.1")


async def resolve(response: Any) -> Any:
    return await response if asyncio.isfuture(response) or asyncio.iscoroutine(response) else response


async def find(broker: AsyncBroker, group: str = "g") -> Any:
    request = FindCoordinatorRequest(coordinator_keys=[group])
    return (await resolve(find_coordinator.handle(broker.node.broker, CONTEXT, request, 6))).coordinators[0]


async def commit(broker: AsyncBroker, offset: int, *, group: str = "g", topic: str = "t") -> int:
    request = OffsetCommitRequest(
        group_id=group,
        topics=[
            OffsetCommitRequestTopic(
                name=topic, partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)]
            )
        ],
    )
    response = await resolve(offset_commit.handle(broker.node.broker, CONTEXT, request, 9))
    return int(response.topics[0].partitions[0].error_code)


async def fetch(broker: AsyncBroker, group: str = "g") -> tuple[int, dict[str, int]]:
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
    found = (await resolve(offset_fetch.handle(broker.node.broker, CONTEXT, request, 9))).groups[0]
    return found.error_code, {topic.name: topic.partitions[0].committed_offset for topic in found.topics}


async def wait_until_loaded(broker: AsyncBroker) -> None:
    while any(driver.state == ShardState.LOADING for driver in broker.node.broker.group_coordinator.runtime.drivers()):
        await asyncio.sleep(0)


async def test_offsets_topic_is_created_by_the_first_request():
    async with AsyncBroker() as broker:
        responses = await asyncio.gather(*(find(broker, f"g{at}") for at in range(5)))
        assert [(response.error_code, response.node_id) for response in responses] == [(0, 1)] * 5
        topic = broker.node.broker.image.topics_by_name[OFFSETS_TOPIC]
        assert (len(topic.partitions), {partition.replicas for partition in topic.partitions.values()}) == (50, {(1,)})
        configs = broker.node.broker.image.topic_configs(OFFSETS_TOPIC)
        assert dict(configs) == {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": "104857600",
        }


async def test_find_coordinator_waits_until_the_partitions_are_open():
    """The metadata names the leader before it has opened the partition; a client that joined now would be rejected."""
    async with AsyncBroker() as broker:
        await broker.create_topic("t")
        first = asyncio.ensure_future(find(broker))
        while OFFSETS_TOPIC not in broker.node.broker.image.topics_by_name:
            await asyncio.sleep(0)
        assert not list(broker.node.broker.group_coordinator.runtime.drivers())
        second = await find(broker)
        assert await commit(broker, 5) == ErrorCode.NONE
        assert [(found.error_code, found.node_id) for found in (second, await first)] == [(0, 1)] * 2


async def test_no_coordinator_is_named_if_its_partition_could_not_be_opened():
    async with AsyncBroker() as broker:
        await find(broker)
        driver = broker.node.broker.group_coordinator.runtime.driver_for("g")
        assert driver is not None
        del broker.node.broker.group_coordinator.runtime._drivers[driver.partition.index]
        assert (await find(broker)).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


async def test_offsets_topic_is_created_with_the_configured_settings():
    config = {
        "offsets.topic.num.partitions": "3",
        "offsets.topic.segment.bytes": "1048576",
        "offsets.topic.compression.codec": "1",
    }
    async with AsyncBroker(configs=config) as broker:
        await find(broker)
        await broker.create_topic("t")
        assert await commit(broker, 5) == 0
        node = broker.node.broker
        assert len(node.image.topics_by_name[OFFSETS_TOPIC].partitions) == 3
        assert node.image.topic_configs(OFFSETS_TOPIC)["segment.bytes"] == "1048576"
        (found,) = [partition.log for partition in node.all_partitions() if partition.log.log_end_offset]
        assert found.disk.read(found.segments[0].log_path)[22] & 7 == 1
        await broker.restart()
        await wait_until_loaded(broker)
        assert await fetch(broker) == (0, {"t": 5})


async def test_configured_replication_factor_is_not_reduced():
    async with AsyncBroker(configs={"offsets.topic.replication.factor": "3"}) as broker:
        assert (await find(broker)).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        offsets = internal_topic(broker.node.broker, OFFSETS_TOPIC)
        assert offsets is not None
        assert offsets.replication_factor == 3
        transactions = internal_topic(broker.node.broker, TRANSACTIONS_TOPIC)
        assert transactions is not None
        assert (transactions.replication_factor, transactions.num_partitions) == (1, 50)
        assert internal_topic(broker.node.broker, "t") is None


async def test_commit_before_find_coordinator_creates_the_topic():
    async with AsyncBroker() as broker:
        await broker.create_topic("t")
        assert await commit(broker, 1) == ErrorCode.NOT_COORDINATOR
        await broker.node.broker.internal_topics.create(OFFSETS_TOPIC)
        assert await commit(broker, 1) == 0


async def test_requests_get_load_in_progress_while_a_shard_is_loading(monkeypatch, tmp_path):
    """With minimal slices, requests are handled while the shard loads; afterwards all offsets are there."""
    async with AsyncBroker(data=tmp_path, configs={"offsets.topic.num.partitions": "2"}) as broker:
        await broker.create_topic("t")
        await find(broker)
        for number in range(400):
            assert await commit(broker, number, group=f"g{number % 40}") == 0
        monkeypatch.setattr(slice_scheduler, "SLICE_SECONDS", 0)
        await broker.restart()
        codes = [(await fetch(broker))[0]]
        listing = await resolve(list_groups.handle(broker.node.broker, CONTEXT, ListGroupsRequest(), 5))
        assert listing.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert await commit(broker, 7) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        while codes[-1]:
            await asyncio.sleep(0)
            codes.append((await fetch(broker))[0])
        assert len(codes) > 5
        assert set(codes[:-1]) == {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
        await wait_until_loaded(broker)
        assert [(await fetch(broker, f"g{at}")) for at in range(40)] == [(0, {"t": 360 + at}) for at in range(40)]


async def test_committed_offsets_survive_a_crash(tmp_path):
    async with AsyncBroker(data=tmp_path) as broker:
        await broker.create_topic("t")
        await find(broker)
        assert await commit(broker, 41) == 0
        await broker.kill()
        await broker.start()
        await wait_until_loaded(broker)
        assert await fetch(broker) == (0, {"t": 41})


async def test_shard_with_a_corrupt_log_answers_with_not_coordinator(tmp_path, caplog):
    async with AsyncBroker(data=tmp_path, configs={"offsets.topic.num.partitions": "1"}) as broker:
        await broker.create_topic("t")
        await find(broker)
        assert await commit(broker, 41) == 0
        await broker.stop()
        path = tmp_path / f"{OFFSETS_TOPIC}-0" / "00000000000000000000.log"
        data = bytearray(path.read_bytes())
        data[61] = 99  # the length of the first record
        path.write_bytes(data)
        await broker.start()
        await wait_until_loaded(broker)
        assert (await fetch(broker))[0] == ErrorCode.NOT_COORDINATOR
        assert "could not load" in caplog.text


async def test_offsets_of_a_deleted_topic_are_removed():
    async with AsyncBroker() as broker:
        await broker.create_topic("t")
        await broker.create_topic("u")
        await find(broker)
        assert await commit(broker, 1) == 0
        assert await commit(broker, 2, topic="u") == 0
        await broker.node.broker.controller.submit(DeleteTopicsRequest(topic_names=["t"]))
        assert await fetch(broker) == (0, {"u": 2})


async def test_deleting_the_offsets_topic_ends_pending_requests():
    """They get NOT_COORDINATOR, and groups start empty."""
    async with AsyncBroker(configs={"group.initial.rebalance.delay.ms": "60000"}) as broker:
        await broker.create_topic("t")
        await find(broker)
        assert await commit(broker, 1, group="h") == 0
        protocols = [JoinGroupRequestProtocol("range", b"")]
        request = JoinGroupRequest(group_id="g", session_timeout_ms=10_000, protocol_type="x", protocols=protocols)
        waiting = join_group.handle(broker.node.broker, CONTEXT, request, 3)
        assert not waiting.done()
        await broker.node.broker.controller.submit(DeleteTopicsRequest(topic_names=[OFFSETS_TOPIC]))
        assert (await waiting).error_code == ErrorCode.NOT_COORDINATOR
        assert (await find(broker)).error_code == 0
        assert await fetch(broker, "h") == (0, {})
        assert await commit(broker, 3, group="h") == 0
