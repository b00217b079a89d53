"""Fetching ahead: whom is asked for what, and how many results may wait."""

import asyncio

import pytest

from ottla.base.errors import ErrorCode
from ottla.base.ids import Uuid
from ottla.client.cluster_metadata import ClusterMetadata, Node, PartitionInfo, TopicInfo
from ottla.client.consumer_config import consumer_config
from ottla.client.fetcher import Fetcher
from ottla.client.positions import Positions
from ottla.client.records import TopicPartition
from ottla.wire.batches import Record, build_batch
from ottla.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData

ID = Uuid(b"t" * 16)
P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Backoff:
    def delay_ms(self, attempt):
        return 0.0


class BrokerConnection:
    """A broker whose results are given; the requests that have none yet wait."""

    throttled_until_ms = 0.0

    def __init__(self):
        self.requests = []

    def call(self, request, answer, *, timeout_ms, version_max):
        future = asyncio.get_running_loop().create_future()
        self.requests.append((request, future))
        return future


class Core:
    def __init__(self):
        self.loop = asyncio.get_running_loop()
        self.update_callbacks, self.is_closed, self.refreshes = [], False, 0
        self.retry_backoff, self.request_timeout_ms = Backoff(), 1000.0
        self.cluster = ClusterMetadata()
        self.cluster.nodes = {1: Node(1, "a", 1), 2: Node(2, "b", 2)}
        infos = tuple(PartitionInfo("t", index, 1, 5, (1, 2), (1, 2)) for index in range(2))
        self.cluster.topics = {"t": TopicInfo("t", ID, False, infos, (0, 1))}
        self.cluster.topic_names = {ID: "t"}
        self.connections = {1: BrokerConnection(), 2: BrokerConnection()}

    def now_ms(self):
        return self.loop.time() * 1000

    async def get_connection(self, node, *, purpose):
        return self.connections[node]

    def request_update(self):
        self.refreshes += 1


@pytest.fixture
async def parts():
    """Core, positions, the fetcher, and the partitions that it wanted reset."""
    core, positions, resets = Core(), Positions(), []
    positions.replace([P0, P1])
    fetcher = Fetcher(core, consumer_config({"bootstrap.servers": "a:1"}, {}), positions, lambda: None, resets.append)
    yield core, positions, fetcher, resets
    core.is_closed = True
    await fetcher.close()


async def settle():
    for _ in range(10):
        await asyncio.sleep(0)


def asked(request):
    return [(each.partition, each.fetch_offset) for topic in request.topics for each in topic.partitions]


def answer(partition, **fields):
    return FetchResponse(
        session_id=9,
        responses=[
            FetchableTopicResponse(topic_id=ID, partitions=[PartitionData(partition_index=partition, **fields)])
        ],
    )


def records(offset, count=2):
    return bytes(build_batch([Record(value=b"v")] * count, base_offset=offset, leader_epoch=5))


async def test_the_next_request_leaves_before_the_answer_is_taken(parts):
    """Two results may wait: then the broker is left alone until one is taken."""
    core, positions, fetcher, _ = parts
    positions.states[P0].seek(0)
    fetcher.fetch()
    await settle()
    requests = core.connections[1].requests
    for offset in (0, 2):
        assert asked(requests[-1][0]) == [(0, offset)]
        requests[-1][1].set_result(answer(0, records=records(offset), high_watermark=50))
        await settle()
    assert (len(requests), len(fetcher.results)) == (2, 2)
    taken = fetcher.take()
    assert [(part.partition, part.fetch_offset) for part in taken.parts] == [(P0, 0)]
    await settle()
    assert asked(requests[2][0]) == [(0, 4)]


async def test_a_partition_that_goes_before_its_request_leaves(parts):
    """And one that was sought elsewhere: their results are dropped, and nothing fails."""
    core, positions, fetcher, _ = parts
    positions.states[P0].seek(0)
    positions.states[P1].seek(0)
    fetcher.fetch()
    positions.replace([P1])
    positions.states[P1].seek(70)
    await settle()
    future = core.connections[1].requests[0][1]
    future.set_result(answer(1, records=records(0)))
    await settle()
    assert (list(fetcher.failures), list(fetcher.results)) == ([], [])
    assert asked(core.connections[1].requests[1][0]) == [(1, 70)]


async def test_a_nearer_replica_is_asked_until_it_does_not_have_the_offset(parts):
    core, positions, fetcher, resets = parts
    positions.states[P0].seek(8)
    fetcher.fetch()
    await settle()
    core.connections[1].requests[0][1].set_result(answer(0, preferred_read_replica=2))
    await settle()
    assert asked(core.connections[2].requests[0][0]) == [(0, 8)]
    core.connections[2].requests[0][1].set_result(answer(0, error_code=ErrorCode.OFFSET_OUT_OF_RANGE))
    await settle()
    assert (resets, len(core.connections[1].requests)) == ([], 2)
    core.connections[1].requests[1][1].set_result(answer(0, error_code=ErrorCode.OFFSET_OUT_OF_RANGE))
    await settle()
    assert resets == [P0]


async def test_a_batch_that_had_no_room_is_asked_for_again(parts):
    core, positions, fetcher, _ = parts
    positions.states[P0].seek(0)
    fetcher.fetch()
    await settle()
    core.connections[1].requests[0][1].set_result(answer(0, records=records(0)[:-1]))
    await settle()
    assert (list(fetcher.results), len(core.connections[1].requests), positions.states[P0].fetch_offset) == ([], 2, 0)


async def test_a_lost_session_begins_anew(parts):
    core, positions, fetcher, _ = parts
    positions.states[P0].seek(0)
    positions.states[P1].seek(0)
    fetcher.fetch()
    await settle()
    core.connections[1].requests[0][1].set_result(FetchResponse(session_id=9))
    await settle()
    assert (core.connections[1].requests[1][0].session_id, asked(core.connections[1].requests[1][0])) == (9, [])
    core.connections[1].requests[1][1].set_result(FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
    await settle()
    assert (core.connections[1].requests[2][0].session_id, asked(core.connections[1].requests[2][0])) == (
        0,
        [(0, 0), (1, 0)],
    )


async def test_leaders_that_are_named_are_asked(parts):
    """A broker that is not the leader any more says who is."""
    core, positions, fetcher, _ = parts
    from ottla.wire.messages.fetch import LeaderIdAndEpoch

    positions.states[P0].seek(0)
    fetcher.fetch()
    await settle()
    core.connections[1].requests[0][1].set_result(
        answer(
            0, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=6)
        )
    )
    await settle()
    assert asked(core.connections[2].requests[0][0]) == [(0, 0)]
    assert core.refreshes == 0


async def test_an_error_that_lasts_is_told(parts):
    core, positions, fetcher, _ = parts
    positions.states[P0].seek(0)
    fetcher.fetch()
    await settle()
    core.connections[1].requests[0][1].set_result(answer(0, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    await settle()
    assert [failure.code for failure in fetcher.failures] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
