"""The producer with scripted brokers: moving leaders, throttling, unresponsive and old brokers."""

import asyncio

import pytest

from ottla.client import (
    AsyncProducer,
    BootstrapError,
    BrokerError,
    BufferExhaustedError,
    ClientClosedError,
    ClientTimeoutError,
    UnknownTopicOrPartitionError,
)
from ottla.sim.loop import CallbackFailed
from tests.unit.client.scripted_broker import run

BOOTSTRAP = "cluster:9001,cluster:9002"


def producer(ports, **configs):
    return AsyncProducer(bootstrap_servers=BOOTSTRAP, ports=ports, linger_ms=0, **configs)


@pytest.mark.parametrize("gives_hints", [True, False])
def test_producer_follows_a_moved_leader(gives_hints):
    """By the old leader's response if it names the new one, else by metadata."""

    async def scenario(cluster, ports):
        cluster.gives_hints = gives_hints
        async with producer(ports) as client:
            first = await client.send_and_wait("t", b"1")
            cluster.leader, cluster.epoch = 2, 1
            second = await client.send_and_wait("t", b"2")
        return (
            first.offset,
            second.offset,
            cluster.values,
            [node for node, name, _ in cluster.requests if name == "Produce"],
        )

    assert run(scenario) == (0, 1, [b"1", b"2"], [1, 1, 2])


def test_records_wait_for_a_leader():
    """Metadata is requested with backoff, and waiting records are sent once there is a leader."""

    async def scenario(cluster, ports):
        cluster.leader = -1
        async with producer(ports) as client:
            future = await client.send("t", b"1")
            await asyncio.sleep(10)
            requested = cluster.names().count("Metadata")
            assert not future.done()
            cluster.leader, cluster.epoch = 2, 1
            await future
        return cluster.values, requested

    values, requested = run(scenario)
    assert values == [b"1"]
    assert 8 <= requested <= 20


def test_retriable_errors_are_retried():
    async def scenario(cluster, ports):
        cluster.produce_errors = [7, 19, 56]
        async with producer(ports) as client:
            metadata = await client.send_and_wait("t", b"1")
            retries = client.metrics()["record-retry-total"]
            return metadata.offset, cluster.values, cluster.names().count("Produce"), retries

    assert run(scenario) == (0, [b"1"], 4, 3)


def test_fatal_errors_are_raised():
    async def scenario(cluster, ports):
        cluster.produce_errors = [29]
        async with producer(ports) as client:
            with pytest.raises(BrokerError, match=r"TOPIC_AUTHORIZATION_FAILED \(partition 0 of topic 't'\)"):
                await client.send_and_wait("t", b"1")
            await client.send_and_wait("t", b"2")
        return [(header.producer_id, header.producer_epoch, header.base_sequence) for header in cluster.batches]

    assert run(scenario) == [(77, 0, 0)]


def test_request_to_an_unresponsive_broker_times_out_and_is_retried():
    async def scenario(cluster, ports):
        async with producer(ports, request_timeout_ms=2000) as client:
            await client.send_and_wait("t", b"1")
            cluster.is_unresponsive = True
            began = asyncio.get_running_loop().time()
            future = await client.send("t", b"2")
            await asyncio.sleep(5)
            cluster.is_unresponsive = False
            await future
            return cluster.values, asyncio.get_running_loop().time() - began

    values, seconds = run(scenario)
    assert values == [b"1", b"2"]
    assert 5 < seconds < 20


def test_records_for_an_unresponsive_broker_expire():
    async def scenario(cluster, ports):
        async with producer(ports, request_timeout_ms=2000, delivery_timeout_ms=7000) as client:
            await client.send_and_wait("t", b"1")
            cluster.is_unresponsive = True
            began = asyncio.get_running_loop().time()
            with pytest.raises(
                ClientTimeoutError, match="1 record for partition 0 of topic 't' was not delivered within 7 s"
            ):
                await client.send_and_wait("t", b"2")
            return asyncio.get_running_loop().time() - began

    assert run(scenario) == pytest.approx(7, abs=0.1)


def test_producer_respects_throttling():
    async def scenario(cluster, ports):
        async with producer(ports) as client:
            cluster.throttle_ms = 3000
            await client.send_and_wait("t", b"1")
            cluster.throttle_ms = 0
            began = asyncio.get_running_loop().time()
            await client.send_and_wait("t", b"2")
            return asyncio.get_running_loop().time() - began

    assert 2.9 < run(scenario) < 3.2


def test_old_broker_gets_old_versions():
    """Topics are identified by name."""

    async def scenario(cluster, ports):
        async with producer(ports) as client:
            await client.send_and_wait("t", b"1")
        return cluster.values, [
            (name, version) for _, name, version in cluster.requests if name in ("ApiVersions", "Produce")
        ]

    values, requested = run(scenario, produce_max=7, api_versions_max=1)
    assert values == [b"1"]
    assert requested[:2] == [("ApiVersions", 4), ("ApiVersions", 1)]
    assert requested[-1] == ("Produce", 7)


def test_send_to_a_missing_topic_times_out():
    async def scenario(cluster, ports):
        cluster.topic_error = 3
        async with producer(ports, max_block_ms=2000) as client:
            with pytest.raises(
                UnknownTopicOrPartitionError,
                match=r"\(topic 't'\): it did not exist for 2000 ms\. Create the topic first",
            ):
                await client.send("t", b"1")
        return 4 <= cluster.names().count("Metadata") <= 10

    assert run(scenario)


def test_send_waits_for_a_new_topic():
    async def scenario(cluster, ports):
        cluster.topic_error = 5
        asyncio.get_running_loop().call_later(3, lambda: setattr(cluster, "topic_error", 0))
        async with producer(ports) as client:
            await client.send_and_wait("t", b"1")
        return cluster.values

    assert run(scenario) == [b"1"]


def test_unreachable_cluster_raises():
    async def scenario(cluster, ports):
        async with AsyncProducer(bootstrap_servers="nowhere:1", ports=ports, max_block_ms=1000) as client:
            with pytest.raises(BootstrapError, match=r"No broker could be reached\. nowhere:1 is unreachable"):
                await client.send("t", b"1")

    run(scenario)


def test_close_without_waiting_fails_records():
    async def scenario(cluster, ports):
        client = producer(ports)
        await client.send_and_wait("t", b"1")
        cluster.is_unresponsive = True
        future = await client.send("t", b"2")
        await client.close(1)
        with pytest.raises(ClientClosedError, match="closed before the record was delivered"):
            await future
        return len(asyncio.all_tasks())

    assert run(scenario) <= 2


def test_close_releases_sends_that_wait_for_memory():
    async def scenario(cluster, ports):
        client = producer(ports, buffer_memory=20_000, batch_size=10_000)
        await client.send_and_wait("t", b"1")
        cluster.is_unresponsive = True
        waiting = asyncio.ensure_future(fill(client))
        await asyncio.sleep(1)
        assert not waiting.done()
        await client.close(1)
        with pytest.raises(ClientClosedError):
            await waiting

    async def fill(client):
        while True:
            await client.send("t", b"x" * 6000)

    run(scenario)


def test_idle_connections_are_closed_and_reopened():
    async def scenario(cluster, ports):
        async with producer(ports, connections_max_idle_ms=5000) as client:
            await client.send_and_wait("t", b"1")
            before = cluster.open_count
            await asyncio.sleep(20)
            between = cluster.open_count
            await client.send_and_wait("t", b"2")
        return before > 0, between, cluster.values

    assert run(scenario) == (True, 0, [b"1", b"2"])


def test_acks_0_completes_without_offsets():
    async def scenario(cluster, ports):
        async with producer(ports, acks=0) as client:
            metadata = await client.send_and_wait("t", b"1")
            await asyncio.sleep(1)
        return metadata.offset, cluster.values

    assert run(scenario) == (-1, [b"1"])


async def send_until_full(client):
    """Return how many records were accepted before one blocked."""
    for sent in range(5_000):
        try:
            await client.send("t", b"x" * 1000)
        except BufferExhaustedError:
            return sent
    raise AssertionError("nothing is held back")


def test_acks_0_blocks_while_the_broker_does_not_read():
    """Records beyond the socket buffer fill buffer.memory, then sends block."""

    async def scenario(cluster, ports):
        async with producer(ports, acks=0, buffer_memory=100_000, max_block_ms=1000) as client:
            await client.send_and_wait("t", b"first")
            for connection in cluster.connections:
                connection.pause_reading()
            sent = 1 + await send_until_full(client)
            for connection in cluster.connections:
                connection.resume_reading()
            await client.flush()
            await asyncio.sleep(1)
        return len(cluster.values) - sent

    assert run(scenario) == 0


def test_acks_0_continues_after_losing_a_full_connection():
    async def scenario(cluster, ports):
        async with producer(ports, acks=0, buffer_memory=100_000, max_block_ms=1000) as client:
            await client.send_and_wait("t", b"first")
            for connection in cluster.connections:
                connection.pause_reading()
            await send_until_full(client)
            for connection in list(cluster.connections):
                connection.abort()
            await client.send_and_wait("t", b"last")
            await asyncio.sleep(1)
        return cluster.values[-1]

    assert run(scenario) == b"last"


def test_close_ends_all_tasks_if_the_broker_does_not_close():
    async def scenario(cluster, ports):
        before = asyncio.all_tasks()
        async with producer(ports, acks=0, buffer_memory=100_000, max_block_ms=1000) as client:
            await client.send_and_wait("t", b"first")
            for connection in cluster.connections:
                connection.pause_reading()
            await send_until_full(client)
            await client.close(timeout=1)
        return asyncio.all_tasks() - before

    assert run(scenario) == set()


def test_failing_callbacks_are_reported_to_the_loop():
    """The simulator's loop raises what other loops log."""

    async def scenario(cluster, ports):
        async with producer(ports) as client:
            future = await client.send("t", b"1")
            future.add_done_callback(lambda done: 1 / 0)
            await future

    with pytest.raises(CallbackFailed, match="a callback of a send failed"):
        run(scenario)
