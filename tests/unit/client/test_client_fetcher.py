"""Fetcher: which broker gets which fetch, and how many results are buffered."""

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
    """A connection to a broker with given responses."""

    throttled_until_ms = 0.0

    def __init__(self):
        self.requests = []

    def call(self, request, response_type, *, timeout_ms, version_max):
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
    """Core, positions, fetcher, and the partitions it reset."""
    core, positions, resets = Core(), Positions(), []
    positions.replace([P0, P1])
    fetcher = Fetcher(core, consumer_config({"bootstrap.servers": "a:1"}, {}), positions, lambda: None, resets.append)
    yield core, positions, fetcher, resets
    core.is_closed = True
    await fetcher.close()


async def run_pending():
    for _ in range(10):
        await asyncio.sleep(0)


def requested(request):
    return [(each.partition, each.fetch_offset) for topic in request.topics for each in topic.partitions]


def response(partition, **fields):
    return FetchResponse(
        session_id=9,
        responses=[
            FetchableTopicResponse(topic_id=ID, partitions=[PartitionData(partition_index=partition, **fields)])
        ],
    )


def records(offset, count=2):
    return bytes(build_batch([Record(value=b"v")] * count, base_offset=offset, leader_epoch=5))


async def test_next_fetch_is_sent_before_the_result_is_taken(parts):
    """Two results may be buffered; then no fetch is sent until one is taken."""
    core, positions, fetcher, _ = parts
    positions.states[P0].seek(0)
    fetcher.fetch()
    await run_pending()
    requests = core.connections[1].requests
    for offset in (0, 2):
        assert requested(requests[-1][0]) == [(0, offset)]
        requests[-1][1].set_result(response(0, records=records(offset), high_watermark=50))
        await run_pending()
    assert (len(requests), len(fetcher.results)) == (2, 2)
    taken = fetcher.take()
    assert [(part.partition, part.fetch_offset) for part in taken.parts] == [(P0, 0)]
    await run_pending()
    assert requested(requests[2][0]) == [(0, 4)]


async def test_results_of_removed_and_sought_partitions_are_dropped(parts):
    """Their results are dropped without an error."""
    core, positions, fetcher, _ = parts
    positions.states[P0].seek(0)
    positions.states[P1].seek(0)
    fetcher.fetch()
    positions.replace([P1])
    positions.states[P1].seek(70)
    await run_pending()
    future = core.connections[1].requests[0][1]
    future.set_result(response(1, records=records(0)))
    await run_pending()
    assert (list(fetcher.failures), list(fetcher.results)) == ([], [])
    assert requested(core.connections[1].requests[1][0]) == [(1, 70)]


async def test_preferred_replica_is_used_until_it_lacks_the_offset(parts):
    core, positions, fetcher, resets = parts
    positions.states[P0].seek(8)
    fetcher.fetch()
    await run_pending()
    core.connections[1].requests[0][1].set_result(response(0, preferred_read_replica=2))
    await run_pending()
    assert requested(core.connections[2].requests[0][0]) == [(0, 8)]
    core.connections[2].requests[0][1].set_result(response(0, error_code=ErrorCode.OFFSET_OUT_OF_RANGE))
    await run_pending()
    assert (resets, len(core.connections[1].requests)) == ([], 2)
    core.connections[1].requests[1][1].set_result(response(0, error_code=ErrorCode.OFFSET_OUT_OF_RANGE))
    await run_pending()
    assert resets == [P0]


async def test_incomplete_batch_is_fetched_again(parts):
    core, positions, fetcher, _ = parts
    positions.states[P0].seek(0)
    fetcher.fetch()
    await run_pending()
    core.connections[1].requests[0][1].set_result(response(0, records=records(0)[:-1]))
    await run_pending()
    assert (list(fetcher.results), len(core.connections[1].requests), positions.states[P0].fetch_offset) == ([], 2, 0)


async def test_lost_session_is_replaced(parts):
    core, positions, fetcher, _ = parts
    positions.states[P0].seek(0)
    positions.states[P1].seek(0)
    fetcher.fetch()
    await run_pending()
    core.connections[1].requests[0][1].set_result(FetchResponse(session_id=9))
    await run_pending()
    assert (core.connections[1].requests[1][0].session_id, requested(core.connections[1].requests[1][0])) == (9, [])
    core.connections[1].requests[1][1].set_result(FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
    await run_pending()
    assert (core.connections[1].requests[2][0].session_id, requested(core.connections[1].requests[2][0])) == (
        0,
        [(0, 0), (1, 0)],
    )


async def test_fetch_follows_the_reported_leader(parts):
    """A former leader reports the current one."""
    core, positions, fetcher, _ = parts
    from ottla.wire.messages.fetch import LeaderIdAndEpoch

    positions.states[P0].seek(0)
    fetcher.fetch()
    await run_pending()
    core.connections[1].requests[0][1].set_result(
        response(
            0, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=6)
        )
    )
    await run_pending()
    assert requested(core.connections[2].requests[0][0]) == [(0, 0)]
    assert core.refreshes == 0


async def test_fatal_errors_are_reported(parts):
    core, positions, fetcher, _ = parts
    positions.states[P0].seek(0)
    fetcher.fetch()
    await run_pending()
    core.connections[1].requests[0][1].set_result(response(0, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    await run_pending()
    assert [failure.code for failure in fetcher.failures] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
