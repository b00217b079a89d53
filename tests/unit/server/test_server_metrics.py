"""The metrics page and its HTTP server."""

import asyncio
import re

import pytest

from ottla.base.errors import ErrorCode
from ottla.client import AsyncConsumer, TopicPartition
from ottla.server.error_counts import error_count, error_count_in_slices
from ottla.server.metrics_http import REQUEST_BYTES_MAX
from ottla.testing import AsyncBroker
from ottla.wire.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from ottla.wire.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from ottla.wire.schema import run_to_end


async def http(port, request):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    response = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    head, _, body = response.partition(b"\r\n\r\n")
    return head.split(b"\r\n")[0].decode(), body.decode()


@pytest.fixture
async def broker_with_metrics():
    async with AsyncBroker(configs={"ottla.metrics.listener": "127.0.0.1:0"}) as broker:
        yield broker


async def test_metrics_page_contains_only_comments_and_samples(broker_with_metrics):
    await broker_with_metrics.create_topic("events", 3)
    status, page = await http(broker_with_metrics.node.metrics_port, b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")
    assert status == "HTTP/1.1 200 OK"
    for line in page.splitlines():
        assert re.fullmatch(r'# (HELP|TYPE) \w+ .+|\w+(\{\w+="[^"]*"\})? [0-9.e+-]+', line), line
    assert "ottla_partitions 3\n" in page
    assert 'ottla_topic_log_end_offset_sum{topic="events"} 0\n' in page
    assert 'ottla_connections{listener="PLAINTEXT"} 0\n' in page


async def test_group_metrics_appear_with_the_first_group(broker_with_metrics):
    async def lines():
        _, page = await http(broker_with_metrics.node.metrics_port, b"GET /metrics HTTP/1.1\r\n\r\n")
        return [line for line in page.splitlines() if line.startswith("ottla_group")]

    assert await lines() == []
    await broker_with_metrics.create_topic("events")
    async with AsyncConsumer(bootstrap_servers=broker_with_metrics.bootstrap, group_id="g") as consumer:
        consumer.subscribe(["events"])
        while not consumer.assignment:
            await consumer.poll(0.05)
        await consumer.commit({TopicPartition("events", 0): 0})
        assert await lines() == [
            'ottla_group_coordinator_partitions{state="loading"} 0',
            'ottla_group_coordinator_partitions{state="active"} 50',
            'ottla_group_coordinator_partitions{state="failed"} 0',
            'ottla_groups{state="Empty"} 0',
            'ottla_groups{state="PreparingRebalance"} 0',
            'ottla_groups{state="CompletingRebalance"} 0',
            'ottla_groups{state="Stable"} 1',
            "ottla_group_members 1",
            "ottla_group_members_expired_total 0",
            "ottla_group_rebalances_total 1",
            "ottla_group_offset_commits_total 1",
            "ottla_group_offsets_expired_total 0",
        ]


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"GET / HTTP/1.1", "404 Not Found"),
        (b"POST /metrics HTTP/1.1", "405 Method Not Allowed"),
        (b"nonsense", "400 Bad Request"),
        (b"GET /metrics?x=1 HTTP/1.0", "200 OK"),
        (b"HEAD /metrics HTTP/1.1", "200 OK"),
    ],
)
async def test_metrics_server_status_codes(broker_with_metrics, request_line, status):
    found, body = await http(broker_with_metrics.node.metrics_port, request_line + b"\r\n\r\n")
    assert found == f"HTTP/1.1 {status}"
    assert bool(body) is not request_line.startswith(b"HEAD")


async def test_metrics_server_rejects_an_oversized_header(broker_with_metrics):
    status, _ = await http(
        broker_with_metrics.node.metrics_port, b"GET /metrics HTTP/1.1\r\nX: ".ljust(REQUEST_BYTES_MAX, b"x")
    )
    assert status == "HTTP/1.1 431 Request Header Fields Too Large"


async def test_metrics_server_limits_its_connections(broker_with_metrics):
    async def connect():
        reader, writer = await asyncio.open_connection("127.0.0.1", broker_with_metrics.node.metrics_port)
        return reader, writer

    opened = [await connect() for _ in range(16)]
    reader, writer = await connect()
    assert await asyncio.wait_for(reader.read(), 10) == b""
    for _, each in [*opened, (reader, writer)]:
        each.close()


def test_error_count_covers_nested_error_codes():
    created = CreateTopicsResponse(
        topics=[CreatableTopicResult(name="a", error_code=0), CreatableTopicResult(name="b", error_code=36)]
    )
    produced = ProduceResponse(
        responses=[
            TopicProduceResponse(
                name="a",
                partition_responses=[
                    PartitionProduceResponse(index=index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                    for index in range(2)
                ],
            )
        ]
    )
    assert (error_count(created), error_count(produced)) == (1, 2)
    assert (run_to_end(error_count_in_slices(created)), run_to_end(error_count_in_slices(produced))) == (1, 2)
