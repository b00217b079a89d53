"""AsyncProducer in the simulator: broker crashes and broken connections cause no loss, duplicates or reordering."""

import asyncio

import pytest

from ottla.client import AsyncAdmin, AsyncProducer
from ottla.node.assemble import assemble
from ottla.node.config import node_config
from ottla.sim.client import SimulatedClient, records_of
from ottla.sim.rng import stream
from ottla.sim.world import ProcessCrashed, World
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

PORT = 9092
BOOTSTRAP = f"node:{PORT}"


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


async def read_all(world, topic, partitions):
    """Return the values of each partition, read back."""
    client = SimulatedClient(world.start("reader").network, "node", PORT)
    await client.connect()
    known = await client.call(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), MetadataResponse)
    client.topic_ids[topic] = known.topics[0].topic_id
    found = []
    for partition in range(partitions):
        values, offset = [], 0
        while True:
            records = records_of((await client.fetch(topic, partition, offset)).records, offset)
            if not records:
                break
            values += [record.value for record in records]
            offset = records[-1].offset + 1
        found.append(values)
    return found


def run_with_crashes(seed, *, records=400, keep="page-cache", **configs):
    """Send numbered records during crashes; return the log's content and the futures' results."""
    random = stream(seed, "crashes")

    async def produce(ports):
        producer = AsyncProducer(
            bootstrap_servers=BOOTSTRAP, ports=ports, batch_size=300, linger_ms=1, request_timeout_ms=1000, **configs
        )
        futures = []
        for number in range(records):
            futures.append(await producer.send("numbers", b"%d" % number, partition=number % 2))
            if random.random() < 0.2:
                await asyncio.sleep(random.uniform(0, 0.04))
        results = [await future for future in futures]
        metrics = producer.metrics()
        await producer.close()
        return results, metrics

    async def scenario(world):
        ports, node = await start_node(world)
        client = world.start("client")
        async with AsyncAdmin(bootstrap_servers=BOOTSTRAP, ports=client) as admin:
            await admin.create_topic("numbers", 2)
        work = world.loop.create_task(produce(client), context=client.process.context())
        for _ in range(4):
            await asyncio.wait((work,), timeout=random.uniform(0.05, 0.5))
            match random.choice(("crash", "crash in a write", "responses lost", "partition")):
                case "crash":
                    world.crash("node", keep)
                case "crash in a write":
                    world.crash_in("node", random.randint(1, 10), keep)
                    await asyncio.wait((ports.crashed,), timeout=1)
                    world.cancel_faults("node") if world.is_running("node") else None
                case "responses lost":  # responses are lost, although the records are in the log
                    world.fabric.cut("node", "client")
                    await asyncio.sleep(random.uniform(0, 3))
                    world.fabric.heal()
                case "partition":
                    world.fabric.partition("client", "node")
                    await asyncio.sleep(random.uniform(0, 3))
                    world.fabric.heal()
            if not world.is_running("node"):
                await asyncio.sleep(random.uniform(0, 2))
                ports, node = await start_node(world)
        results, metrics = await work
        values = await read_all(world, "numbers", 2)
        await world.within(ports, node.stop())
        return results, values, metrics

    with World(seed) as world:
        return world.run(scenario(world))


def test_idempotent_producer_survives_crashes_without_loss_or_duplicates(sim_seed):
    """With five requests in flight, the log has exactly the sent records, in order, at the futures' offsets."""
    results, values, metrics = run_with_crashes(sim_seed)
    for partition in (0, 1):
        expected = [b"%d" % number for number in range(partition, 400, 2)]
        assert values[partition] == expected
        assert [each.offset for each in results if each.partition == partition] == list(range(len(expected)))
    assert metrics["record-acknowledged-total"] == 400
    assert metrics["record-error-total"] == 0
    assert metrics["buffer-available-bytes"] == metrics["buffer-total-bytes"]


def test_producer_continues_after_power_loss(sim_seed):
    """A single node that loses unflushed data loses records and producer state; the rest is in order, without
    duplicates.
    """
    results, values, metrics = run_with_crashes(sim_seed, keep="flushed")
    assert len(results) == 400
    for partition in (0, 1):
        numbers = [int(value) for value in values[partition]]
        assert numbers == sorted(set(numbers))
    assert metrics["record-error-total"] == 0


def test_run_is_deterministic_by_seed():
    assert run_with_crashes(3, records=60) == run_with_crashes(3, records=60)


def test_producer_without_idempotence_loses_nothing(sim_seed):
    """Duplicates are allowed."""
    results, values, _ = run_with_crashes(sim_seed, enable_idempotence=False)
    for partition in (0, 1):
        expected = [b"%d" % number for number in range(partition, 400, 2)]
        assert list(dict.fromkeys(values[partition])) == sorted(expected, key=int)
        assert [values[partition][each.offset] for each in results if each.partition == partition] == expected


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches_survive_crashes(codec):
    _, values, _ = run_with_crashes(11, records=100, compression_type=codec)
    assert [value for partition in values for value in partition] == [
        b"%d" % n for n in (*range(0, 100, 2), *range(1, 100, 2))
    ]
