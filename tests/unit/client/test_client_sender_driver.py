"""The producer and a cluster of a script: leaders that move, brokers that throttle, fall silent or are old."""

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
def test_a_leader_that_has_moved_is_followed(gives_hints):
    """By its predecessor's word where that says who it is, else by the metadata."""

    async def scenario(cluster, ports):
        cluster.gives_hints = gives_hints
        async with producer(ports) as ours:
            first = await ours.send_and_wait("t", b"1")
            cluster.leader, cluster.epoch = 2, 1
            second = await ours.send_and_wait("t", b"2")
        return (
            first.offset,
            second.offset,
            cluster.values,
            [node for node, name, _ in cluster.requests if name == "Produce"],
        )

    assert run(scenario) == (0, 1, [b"1", b"2"], [1, 1, 2])


def test_a_partition_without_a_leader_is_waited_for():
    """Metadata is asked for again and again, ever more seldom, and what waits is sent when there is a leader."""

    async def scenario(cluster, ports):
        cluster.leader = -1
        async with producer(ports) as ours:
            future = await ours.send("t", b"1")
            await asyncio.sleep(10)
            asked = cluster.names().count("Metadata")
            assert not future.done()
            cluster.leader, cluster.epoch = 2, 1
            await future
        return cluster.values, asked

    values, asked = run(scenario)
    assert values == [b"1"]
    assert 8 <= asked <= 20


def test_errors_that_pass_are_tried_again():
    async def scenario(cluster, ports):
        cluster.produce_errors = [7, 19, 56]
        async with producer(ports) as ours:
            told = await ours.send_and_wait("t", b"1")
            return told.offset, cluster.values, cluster.names().count("Produce"), ours.metrics()["record-retry-total"]

    assert run(scenario) == (0, [b"1"], 4, 3)


def test_errors_that_stay_are_raised():
    async def scenario(cluster, ports):
        cluster.produce_errors = [29]
        async with producer(ports) as ours:
            with pytest.raises(BrokerError, match=r"TOPIC_AUTHORIZATION_FAILED \(partition 0 of topic 't'\)"):
                await ours.send_and_wait("t", b"1")
            await ours.send_and_wait("t", b"2")
        return [(header.producer_id, header.producer_epoch, header.base_sequence) for header in cluster.batches]

    assert run(scenario) == [(77, 0, 0)]


def test_a_broker_that_falls_silent_costs_a_request_its_timeout():
    async def scenario(cluster, ports):
        async with producer(ports, request_timeout_ms=2000) as ours:
            await ours.send_and_wait("t", b"1")
            cluster.silent = True
            began = asyncio.get_running_loop().time()
            future = await ours.send("t", b"2")
            await asyncio.sleep(5)
            cluster.silent = False
            await future
            return cluster.values, asyncio.get_running_loop().time() - began

    values, seconds = run(scenario)
    assert values == [b"1", b"2"]
    assert 5 < seconds < 20


def test_a_broker_that_stays_silent():
    async def scenario(cluster, ports):
        async with producer(ports, request_timeout_ms=2000, delivery_timeout_ms=7000) as ours:
            await ours.send_and_wait("t", b"1")
            cluster.silent = True
            began = asyncio.get_running_loop().time()
            with pytest.raises(
                ClientTimeoutError, match="1 records for partition 0 of topic 't' were not delivered within 7 s"
            ):
                await ours.send_and_wait("t", b"2")
            return asyncio.get_running_loop().time() - began

    assert run(scenario) == pytest.approx(7, abs=0.1)


def test_throttling_is_obeyed():
    async def scenario(cluster, ports):
        async with producer(ports) as ours:
            cluster.throttle_ms = 3000
            await ours.send_and_wait("t", b"1")
            cluster.throttle_ms = 0
            began = asyncio.get_running_loop().time()
            await ours.send_and_wait("t", b"2")
            return asyncio.get_running_loop().time() - began

    assert 2.9 < run(scenario) < 3.2


def test_an_old_broker():
    """Versions are those that it speaks, and topics go by their names."""

    async def scenario(cluster, ports):
        async with producer(ports) as ours:
            await ours.send_and_wait("t", b"1")
        return cluster.values, [
            (name, version) for _, name, version in cluster.requests if name in ("ApiVersions", "Produce")
        ]

    values, asked = run(scenario, produce_max=7, api_versions_max=1)
    assert values == [b"1"]
    assert asked[:2] == [("ApiVersions", 4), ("ApiVersions", 1)]
    assert asked[-1] == ("Produce", 7)


def test_a_topic_that_does_not_come():
    async def scenario(cluster, ports):
        cluster.topic_error = 3
        async with producer(ports, max_block_ms=2000) as ours:
            with pytest.raises(
                UnknownTopicOrPartitionError,
                match=r"\(topic 't'\): it did not exist for 2000 ms\. Create the topic first",
            ):
                await ours.send("t", b"1")
        return 4 <= cluster.names().count("Metadata") <= 10

    assert run(scenario)


def test_a_topic_that_comes_late():
    async def scenario(cluster, ports):
        cluster.topic_error = 5
        asyncio.get_running_loop().call_later(3, lambda: setattr(cluster, "topic_error", 0))
        async with producer(ports) as ours:
            await ours.send_and_wait("t", b"1")
        return cluster.values

    assert run(scenario) == [b"1"]


def test_a_cluster_that_is_not_there():
    async def scenario(cluster, ports):
        async with AsyncProducer(bootstrap_servers="nowhere:1", ports=ports, max_block_ms=1000) as ours:
            with pytest.raises(BootstrapError, match=r"No broker could be reached\. nowhere:1 is unreachable"):
                await ours.send("t", b"1")

    run(scenario)


def test_an_end_that_does_not_wait():
    async def scenario(cluster, ports):
        ours = producer(ports)
        await ours.send_and_wait("t", b"1")
        cluster.silent = True
        future = await ours.send("t", b"2")
        await ours.close(1)
        with pytest.raises(ClientClosedError, match="closed before the record was delivered"):
            await future
        return len(asyncio.all_tasks())

    assert run(scenario) <= 2


def test_sends_that_wait_for_memory_are_let_go_at_the_end():
    async def scenario(cluster, ports):
        ours = producer(ports, buffer_memory=20_000, batch_size=10_000)
        await ours.send_and_wait("t", b"1")
        cluster.silent = True
        waiting = asyncio.ensure_future(fill(ours))
        await asyncio.sleep(1)
        assert not waiting.done()
        await ours.close(1)
        with pytest.raises(ClientClosedError):
            await waiting

    async def fill(ours):
        while True:
            await ours.send("t", b"x" * 6000)

    run(scenario)


def test_idle_connections_are_closed_and_made_again():
    async def scenario(cluster, ports):
        async with producer(ports, connections_max_idle_ms=5000) as ours:
            await ours.send_and_wait("t", b"1")
            before = cluster.open_count
            await asyncio.sleep(20)
            between = cluster.open_count
            await ours.send_and_wait("t", b"2")
        return before > 0, between, cluster.values

    assert run(scenario) == (True, 0, [b"1", b"2"])


def test_acks_0():
    async def scenario(cluster, ports):
        async with producer(ports, acks=0) as ours:
            told = await ours.send_and_wait("t", b"1")
            await asyncio.sleep(1)
        return told.offset, cluster.values

    assert run(scenario) == (-1, [b"1"])


async def send_until_full(ours):
    """How many records were taken before one had to wait for too long."""
    for sent in range(5_000):
        try:
            await ours.send("t", b"x" * 1000)
        except BufferExhaustedError:
            return sent
    raise AssertionError("nothing is held back")


def test_acks_0_waits_for_a_broker_that_does_not_read():
    """Nothing is answered: what the socket does not take fills buffer.memory, and then who sends has to wait."""

    async def scenario(cluster, ports):
        async with producer(ports, acks=0, buffer_memory=100_000, max_block_ms=1000) as ours:
            await ours.send_and_wait("t", b"first")
            for connection in cluster.connections:
                connection.pause_reading()
            sent = 1 + await send_until_full(ours)
            for connection in cluster.connections:
                connection.resume_reading()
            await ours.flush()
            await asyncio.sleep(1)
        return len(cluster.values) - sent

    assert run(scenario) == 0


def test_acks_0_goes_on_after_a_connection_that_was_full_is_lost():
    async def scenario(cluster, ports):
        async with producer(ports, acks=0, buffer_memory=100_000, max_block_ms=1000) as ours:
            await ours.send_and_wait("t", b"first")
            for connection in cluster.connections:
                connection.pause_reading()
            await send_until_full(ours)
            for connection in list(cluster.connections):
                connection.abort()
            await ours.send_and_wait("t", b"last")
            await asyncio.sleep(1)
        return cluster.values[-1]

    assert run(scenario) == b"last"


def test_nothing_is_left_of_a_producer_whose_broker_does_not_close_its_end():
    async def scenario(cluster, ports):
        before = asyncio.all_tasks()
        async with producer(ports, acks=0, buffer_memory=100_000, max_block_ms=1000) as ours:
            await ours.send_and_wait("t", b"first")
            for connection in cluster.connections:
                connection.pause_reading()
            await send_until_full(ours)
            await ours.close(timeout=1)
        return asyncio.all_tasks() - before

    assert run(scenario) == set()


def test_callbacks_that_fail_are_reported_to_the_loop():
    """The simulator's loop ends the run with what others would log."""

    async def scenario(cluster, ports):
        async with producer(ports) as ours:
            future = await ours.send("t", b"1")
            future.add_done_callback(lambda done: 1 / 0)
            await future

    with pytest.raises(CallbackFailed, match="a callback of a send failed"):
        run(scenario)
