"""Consumer groups in the simulator: despite crashes and partitions all records are read and commits never decrease."""

import asyncio

import pytest

from ottla.client import AsyncAdmin, AsyncConsumer, AsyncProducer, TopicPartition
from ottla.node.assemble import assemble
from ottla.node.config import node_config
from ottla.sim.rng import stream
from ottla.sim.world import ProcessCrashed, World

PORT = 9092
BOOTSTRAP = f"node:{PORT}"
PARTITIONS = 4
RECORDS = 200
SECONDS_MAX = 300


def config():
    settings = {
        "listeners": f"PLAINTEXT://node:{PORT}",
        "log.dirs": "/data",
        "group.initial.rebalance.delay.ms": "100",
        "offsets.topic.num.partitions": "2",
    }
    return node_config(settings, cluster_id="AAAAAAAAAAAAAAAAAAAAAA", directory="/", canonical_host=lambda: "node")


async def start_node(world):
    while True:
        ports = world.start("node")
        try:
            return ports, await world.within(ports, assemble(ports, config()))
        except ProcessCrashed:
            continue


class Member:
    """A consumer that polls until stopped and notes its records and its position in each new partition."""

    def __init__(self, ports, seen, begun, strategy):
        self.seen, self.begun = seen, begun
        self.consumer = AsyncConsumer(
            bootstrap_servers=BOOTSTRAP,
            ports=ports,
            group_id="g",
            auto_offset_reset="earliest",
            partition_assignment_strategy=strategy,
            heartbeat_interval_ms=300,
            session_timeout_ms=6_000,
            auto_commit_interval_ms=200,
            request_timeout_ms=1_500,
            max_poll_records=9,
        )
        self.is_stopped = False

    async def run(self):
        self.consumer.subscribe(["numbers"], on_assigned=self.on_assigned)
        while not self.is_stopped:
            for record in await self.consumer.poll(0.2):
                self.seen.append((record.partition, record.offset, record.value))
        await self.consumer.close(5)

    async def on_assigned(self, partitions):
        for partition in partitions:
            self.begun.append((partition.partition, await self.consumer.position(partition)))


async def produce(ports):
    async with AsyncProducer(
        bootstrap_servers=BOOTSTRAP, ports=ports, linger_ms=1, request_timeout_ms=1_000
    ) as producer:
        for number in range(RECORDS):
            await producer.send("numbers", b"%d" % number, partition=number % PARTITIONS)
            await asyncio.sleep(0.02)


async def inject_fault(world, random, ports, node, names):
    match random.choice(("crash", "partition", "nothing")):
        case "crash":
            world.crash("node")
            await asyncio.sleep(random.uniform(0, 2))
            return await start_node(world)
        case "partition":
            world.fabric.partition(random.choice(names), "node")
            await asyncio.sleep(random.uniform(0, 8))
            world.fabric.heal()
    return ports, node


async def committed(ports):
    async with AsyncConsumer(bootstrap_servers=BOOTSTRAP, ports=ports, group_id="g") as consumer:
        found = await consumer.committed(*(TopicPartition("numbers", index) for index in range(PARTITIONS)))
    return [-1 if each is None else each.offset for each in found.values()]


def run(seed, strategy):
    random = stream(seed, "trouble")

    async def scenario(world):
        ports, node = await start_node(world)
        writer = world.start("writer")
        async with AsyncAdmin(bootstrap_servers=BOOTSTRAP, ports=writer) as admin:
            await admin.create_topic("numbers", PARTITIONS)
        seen, begun, running = [], [], {}

        def start_member(name):
            reader = world.start(name)
            member = Member(reader, seen, begun, strategy)
            running[name] = member, world.loop.create_task(member.run(), context=reader.process.context())

        writing = world.loop.create_task(produce(writer), context=writer.process.context())
        for index in range(3):
            start_member(f"member-{index}")
            await asyncio.sleep(random.uniform(0, 1))
            ports, node = await inject_fault(world, random, ports, node, list(running))
            if random.random() < 0.3:  # a member crashes and another one starts
                name = random.choice(list(running))
                world.crash(name)
                running.pop(name)
                start_member(f"{name}-again")
        await writing
        deadline = world.loop.time() + SECONDS_MAX
        while len({(p, o) for p, o, _ in seen}) < RECORDS:
            assert world.loop.time() < deadline, "not all was read in time"
            await asyncio.sleep(0.5)
        for member, task in running.values():
            member.is_stopped = True
            await task
        found = await committed(world.start("asker"))
        await world.within(ports, node.stop())
        return seen, begun, found

    with World(seed) as world:
        return world.run(scenario(world))


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_all_records_are_read_and_commits_never_decrease(sim_seed, strategy):
    """At least once; and a partition's new owner does not start before its previous owner did."""
    seen, begun, found = run(sim_seed, strategy)
    values = {(partition, offset): value for partition, offset, value in seen}
    assert values == {(number % PARTITIONS, number // PARTITIONS): b"%d" % number for number in range(RECORDS)}
    for index in range(PARTITIONS):
        starts = [offset for partition, offset in begun if partition == index]
        assert starts == sorted(starts)
    assert found == [RECORDS // PARTITIONS] * PARTITIONS


def test_run_is_deterministic_by_seed():
    assert run(4, "range") == run(4, "range")
