"""AsyncConsumer in the simulator: after broker crashes and broken connections, each record is read once, in order."""

import asyncio

import pytest

from ottla.client import AsyncAdmin, AsyncConsumer, AsyncProducer, TopicPartition
from ottla.node.assemble import assemble
from ottla.node.config import node_config
from ottla.sim.rng import stream
from ottla.sim.world import ProcessCrashed, World

PORT = 9092
BOOTSTRAP = f"node:{PORT}"
PARTITIONS = 3
METHODS = ("poll", "iterate", "columns")


def config():
    settings = {"listeners": f"PLAINTEXT://node:{PORT}", "log.dirs": "/data"}
    return node_config(settings, cluster_id="AAAAAAAAAAAAAAAAAAAAAA", directory="/", canonical_host=lambda: "node")


async def start_node(world):
    while True:
        ports = world.start("node")
        try:
            return ports, await world.within(ports, assemble(ports, config()))
        except ProcessCrashed:
            continue


async def produce(ports, records, random):
    async with AsyncProducer(
        bootstrap_servers=BOOTSTRAP, ports=ports, batch_size=300, linger_ms=1, request_timeout_ms=1000
    ) as producer:
        for number in range(records):
            await producer.send("numbers", b"%d" % number, partition=number % PARTITIONS)
            if random.random() < 0.2:
                await asyncio.sleep(random.uniform(0, 0.04))


async def consume(ports, method, records, random):
    """Return all records as (partition, offset, value), read with one of the METHODS."""
    seen = []
    async with AsyncConsumer(
        bootstrap_servers=BOOTSTRAP,
        ports=ports,
        auto_offset_reset="earliest",
        request_timeout_ms=1000,
        max_poll_records=7,
    ) as consumer:
        consumer.assign([TopicPartition("numbers", index) for index in range(PARTITIONS)])
        while len(seen) < records:
            if method == "poll":
                seen += [(r.partition, r.offset, r.value) for r in await consumer.poll(1)]
            elif method == "columns":
                batch = await consumer.poll_batch(1)
                if batch is not None:
                    seen += zip(batch.partition.tolist(), batch.offsets.tolist(), batch.values.tolist(), strict=True)
            else:
                async for record in consumer:
                    seen.append((record.partition, record.offset, record.value))
                    if len(seen) == records or random.random() < 0.05:
                        break
            if random.random() < 0.1:
                await asyncio.sleep(random.uniform(0, 0.1))
        assert await consumer.poll(2) == []
        buffered = consumer.metrics()["buffered-bytes"]
    return seen, buffered


async def inject_fault(world, random, ports, node):
    """Cause one fault, and return the running node."""
    match random.choice(("crash", "responses lost", "partition")):
        case "crash":
            world.crash("node")
        case "responses lost":
            world.fabric.cut("node", "consumer")
            await asyncio.sleep(random.uniform(0, 3))
            world.fabric.heal()
        case "partition":
            world.fabric.partition("consumer", "node")
            await asyncio.sleep(random.uniform(0, 3))
            world.fabric.heal()
    if not world.is_running("node"):
        await asyncio.sleep(random.uniform(0, 2))
        return await start_node(world)
    return ports, node


def run(seed, method, records=300):
    random = stream(seed, "trouble")

    async def scenario(world):
        ports, node = await start_node(world)
        writer, reader = world.start("producer"), world.start("consumer")
        async with AsyncAdmin(bootstrap_servers=BOOTSTRAP, ports=writer) as admin:
            await admin.create_topic("numbers", PARTITIONS)
        writing = world.loop.create_task(
            produce(writer, records, stream(seed, "writer")), context=writer.process.context()
        )
        reading = world.loop.create_task(
            consume(reader, method, records, stream(seed, "reader")), context=reader.process.context()
        )
        for _ in range(4):
            await asyncio.wait((writing, reading), timeout=random.uniform(0.05, 0.5))
            ports, node = await inject_fault(world, random, ports, node)
        await writing
        seen, buffered = await reading
        await world.within(ports, node.stop())
        return seen, buffered

    with World(seed) as world:
        return world.run(scenario(world))


@pytest.mark.parametrize("method", METHODS)
def test_records_are_read_once_and_in_order(sim_seed, method):
    seen, buffered = run(sim_seed, method)
    for partition in range(PARTITIONS):
        assert [(offset, value) for p, offset, value in seen if p == partition] == [
            (index, b"%d" % number) for index, number in enumerate(range(partition, 300, PARTITIONS))
        ]
    assert buffered == 0


def test_run_is_deterministic_by_seed():
    assert run(5, "iterate", 90) == run(5, "iterate", 90)
