"""A story for the simulator: clients work, the node crashes at moments of the seed's choosing and comes back, and then all is checked.

Run as a program it plays one seed and prints its trace's digest: `python tests/sim/sim_story.py --seed 7 [--power] [--trace]`.
"""

import argparse
import asyncio
import logging
import random
import sys
from collections.abc import Coroutine, Sequence
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.node.assemble import Node, assemble
from ottla.node.config import NodeConfig, node_config
from ottla.sim.client import Disconnected, SimulatedClient, records_of
from ottla.sim.history import History, Partition, Send
from ottla.sim.log_files import check_log_files
from ottla.sim.rng import stream
from ottla.sim.storage import Keep
from ottla.sim.world import ProcessCrashed, SimulatedPorts, World
from ottla.wire.batches import Record, build_batch

PORT = 9092
CODECS = (0, 0, 0, 1, 2, 3, 4)
IN_FLIGHT_MAX = 5
BATCHES_REMEMBERED = 5
SENDS_MAX = 60
STEPS_MAX = 500_000
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3


class LoudLog(logging.Handler):
    """An error in the log is a failure, since it is where a node puts what it must not raise."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.errors: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.errors.append(self.format(record))


def simulated_config(**properties: str) -> NodeConfig:
    """One combined node that listens at `node:9092` and stores in /data. Double underscores stand for dots."""
    settings = {"listeners": f"PLAINTEXT://node:{PORT}", "log.dirs": "/data", "log.retention.check.interval.ms": "2000"}
    settings |= {name.replace("__", "."): value for name, value in properties.items()}
    return node_config(settings, cluster_id="AAAAAAAAAAAAAAAAAAAAAA", directory="/", canonical_host=lambda: "node")


class Story:
    """One run. `keep` says what crashes leave: the page cache (a killed process) or what was flushed (a power cut)."""

    def __init__(self, world: World, keep: Keep) -> None:
        self.world = world
        self.keep = keep
        self.random = stream(world.seed, "story")
        self.history = History()
        self.config = simulated_config()
        self.node: Node | None = None
        self.ports: SimulatedPorts
        self.client_network = world.start("client").network
        self.topics: dict[str, int] = {}
        self.topic_ids: dict[str, Any] = {}
        self.is_rolled: dict[str, bool] = {}
        self.is_over = False
        self.crashes = 0

    async def tell(self) -> None:
        await self.start_node()
        await self.create_topics()
        workload = [self.spawn(work) for work in self.workload()]
        for _ in range(self.random.randint(1, 3)):
            await self.crash_node()
            await self.start_node(may_crash=True)
            await asyncio.sleep(self.random.uniform(0.0, 2.0))
        self.is_over = True
        await asyncio.gather(*workload)
        before = await self.read_all()
        self.check(before)
        await self.check_offsets(before)
        await self.stop_node()
        wrong = check_log_files(self.world.storage("node").files())
        assert not wrong, wrong
        await self.start_node()
        assert await self.read_all() == before
        await self.stop_node()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return self.world.loop.create_task(work, context=self.client_network._process.context())

    # The node's life

    async def start_node(self, *, may_crash: bool = False) -> None:
        """Start it; if it may, it crashes now and then while it starts, and is started again."""
        while True:
            self.ports = self.world.start("node")
            if may_crash and self.random.random() < 0.3:
                self.world.crash_in("node", self.random.randint(1, 40), self.keep)
            try:
                self.node = await self.world.within(self.ports, assemble(self.ports, self.config))
            except ProcessCrashed:
                self.note_crash()
                continue
            self.world.spare("node")
            return

    async def crash_node(self) -> None:
        """After some changes of its disk, in the midst of one, or else after some time, between two."""
        if self.random.random() < 0.7:
            self.world.crash_in("node", self.random.randint(1, 300), self.keep)
        await asyncio.wait((self.ports.crashed,), timeout=self.random.uniform(0.05, 6.0))
        if self.world.is_running("node"):
            self.world.crash("node", self.keep)
        self.note_crash()
        await asyncio.sleep(self.random.uniform(0.0, 1.0))

    def note_crash(self) -> None:
        self.crashes += 1
        if self.keep == "flushed":
            self.history.forget_reads()

    async def stop_node(self) -> None:
        assert self.node is not None
        await self.world.within(self.ports, self.node.stop())
        self.world.exit("node")

    # Clients

    async def connected(self) -> SimulatedClient:
        """A client of the node, as soon as one can be had."""
        while True:
            client = SimulatedClient(self.client_network, "node", PORT)
            client.topic_ids = self.topic_ids
            try:
                await client.connect()
            except OSError:
                await asyncio.sleep(0.1)
                continue
            return client

    async def create_topics(self) -> None:
        client = await self.connected()
        for number in range(self.random.randint(1, 3)):
            name = f"topic-{number}"
            partitions = self.random.randint(1, 3)
            configs = {"index.interval.bytes": str(self.random.choice((0, 300, 4096)))}
            if self.keep == "page-cache" and self.random.random() < 0.7:
                # Not with power cuts: a closed segment is flushed some time after its roll, and recovery looks at the last one only.
                configs["segment.ms"] = str(self.random.choice((200, 1000)))
            self.is_rolled[name] = "segment.ms" in configs
            if self.random.random() < 0.3:
                configs["message.timestamp.type"] = "LogAppendTime"
            if self.keep == "flushed" and self.random.random() < 0.5:
                configs["flush.messages"] = "1"
            result = await client.create_topic(name, partitions, configs)
            assert result.error_code == 0, result
            self.topics[name] = partitions
        client.close()

    def partitions(self) -> list[Partition]:
        return [(topic, index) for topic, count in self.topics.items() for index in range(count)]

    def workload(self) -> Sequence[Coroutine[Any, Any, None]]:
        producers = [Producer(self, f"p{number}", acks=acks) for number, acks in enumerate((1, -1, 0))]
        idempotent = [IdempotentProducer(self, f"i{number}") for number in range(2)]
        readers = [self.read_along(partition) for partition in self.partitions()]
        return [*(producer.run() for producer in producers), *(producer.run() for producer in idempotent), *readers]

    async def read_along(self, partition: Partition) -> None:
        """A consumer that follows a partition, goes back now and then, and tells what it saw."""
        offset = 0
        source = stream(self.world.seed, f"reader/{partition}")
        while not self.is_over:
            client = await self.connected()
            try:
                while not self.is_over:
                    offset = await self.poll(client, partition, offset, source)
            except Disconnected:
                continue
            client.close()

    async def poll(self, client: SimulatedClient, partition: Partition, offset: int, source: random.Random) -> int:
        version, wait_ms, bytes_max = source.randint(4, 18), source.randint(0, 500), source.choice((1, 5000, 1 << 20))
        crashes = self.crashes
        answer = await client.fetch(*partition, offset, wait_ms=wait_ms, bytes_max=bytes_max, version=version)
        self.expect_no_power_cut_since(crashes)
        if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and self.keep == "flushed":
            return 0
        assert answer.error_code == 0, (partition, offset, answer.error_code)
        records = records_of(answer.records, offset)
        self.history.polled(partition, records, answer.high_watermark)
        if source.random() < 0.05:
            return source.randint(0, offset)
        return records[-1].offset + 1 if records else offset

    def expect_no_power_cut_since(self, crashes: int) -> None:
        """An answer that power was cut behind is no promise any more, even if it arrived."""
        if self.keep == "flushed" and self.crashes != crashes:
            raise Disconnected("power was cut meanwhile")

    # The end

    async def read_all(self) -> dict[Partition, list[Record]]:
        client = await self.connected()
        found: dict[Partition, list[Record]] = {}
        for partition in self.partitions():
            records: list[Record] = []
            while True:
                answer = await client.fetch(*partition, len(records), bytes_max=100_000)
                assert answer.error_code == 0, (partition, answer.error_code)
                more = records_of(answer.records, len(records))
                if not more:
                    break
                self.history.polled(partition, more, answer.high_watermark)
                records += more
            assert answer.high_watermark == len(records), (partition, answer.high_watermark, len(records))
            found[partition] = records
        client.close()
        return found

    def check(self, final: dict[Partition, list[Record]]) -> None:
        violations = self.history.check(final)
        assert not violations, "\n".join(violations)

    async def check_offsets(self, final: dict[Partition, list[Record]]) -> None:
        """ListOffsets agrees with the log: its ends, its latest record, and the first record at or after a time."""
        client = await self.connected()
        for partition, records in final.items():
            times = [record.timestamp for record in records]
            asked = {EARLIEST: (-1, 0), LATEST: (-1, len(records)), MAX_TIMESTAMP: (-1, -1)}
            if times:
                asked[MAX_TIMESTAMP] = (max(times), times.index(max(times)))
            for time in sorted({*self.random.sample(times, min(len(times), 10)), *(t + 1 for t in times[:3])}):
                later = [(record.timestamp, record.offset) for record in records if record.timestamp >= time]
                asked[time] = later[0] if later else (-1, -1)
            for time, expected in asked.items():
                answer = await client.list_offsets(*partition, time, version=self.random.randint(7 if time == MAX_TIMESTAMP else 1, 11))
                assert (answer.error_code, answer.timestamp, answer.offset) == (0, *expected), (partition, time)
        client.close()


class Producer:
    """Sends batches without an idempotent id, each once; what is not answered may be there or not."""

    is_idempotent = False

    def __init__(self, story: Story, name: str, *, acks: int) -> None:
        self.story = story
        self.name = name
        self.acks = acks
        self.random = stream(story.world.seed, f"producer/{name}")
        self.sent = 0

    async def run(self) -> None:
        while not self.story.is_over:
            client = await self.story.connected()
            try:
                while not self.story.is_over:
                    await asyncio.gather(*(self.send(client) for _ in range(self.random.randint(1, IN_FLIGHT_MAX))))
                    await self.rest()
            except Disconnected:
                continue
            client.close()

    async def rest(self) -> None:
        """Producers stop for a while after so many sends, which bounds a run."""
        await asyncio.sleep(self.random.uniform(0.0, 0.3) + (1.0 if self.sent > SENDS_MAX else 0.0))

    async def send(self, client: SimulatedClient) -> None:
        partition = self.random.choice(self.story.partitions())
        send = self.story.history.sending(self.name, partition, self.values(), is_idempotent=False)
        batch = self.batch(send)
        if self.acks == 0:
            client.send(client.produce_request(*partition, batch, acks=0), self.random.randint(3, 13))
            return
        crashes = self.story.crashes
        answer = await client.produce(*partition, batch, acks=self.acks, version=self.random.randint(3, 13))
        self.story.expect_no_power_cut_since(crashes)
        assert answer.error_code == 0, (partition, answer.error_code, answer.error_message)
        self.story.history.acked(send, answer.base_offset)

    def values(self) -> list[bytes]:
        values = []
        for _ in range(self.random.choice((1, 1, 1, 2, 5, 20))):
            self.sent += 1
            values.append(f"{self.name}-{self.sent} ".encode() + b"." * self.random.choice((0, 0, 10, 100, 3000)))
        return values

    def batch(self, send: Send, **producer: int) -> bytearray:
        now_ms = int(self.story.world.loop.time() * 1000) + 1_750_000_000_000
        records = [Record(timestamp=now_ms + self.random.randint(-5000, 5000), value=value, key=b"key") for value in send.values]
        return build_batch(records, codec=self.random.choice(CODECS), **producer)


class IdempotentProducer(Producer):
    """Sends what was not answered again, in order, until it is: it must be there once."""

    def __init__(self, story: Story, name: str) -> None:
        super().__init__(story, name, acks=-1)
        self.pending: list[tuple[Send, bytearray, int]] = []
        self.acked: list[tuple[Send, bytearray, int]] = []  # of one partition, as many as a log remembers
        self.producer_id = -1
        self.producer_epoch = -1
        self.sequences: dict[Partition, int] = {}
        self.partition: Partition = ("", 0)
        self.crashes = 0  # how many there had been when the pending batches were made

    async def run(self) -> None:
        while not self.story.is_over or self.pending:
            client = await self.story.connected()
            try:
                await self.work(client)
            except Disconnected:
                continue
            client.close()

    async def work(self, client: SimulatedClient) -> None:
        if self.producer_id < 0:
            answer = await client.init_producer_id()
            assert answer.error_code == 0, answer.error_code
            self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch
        while not self.story.is_over or self.pending:
            attempts = [self.attempt(client, *one) for one in self.doubled()]
            if not self.pending:
                self.prepare()
            if self.random.random() < 0.2:
                self.story.world.loop.call_later(self.random.uniform(0.0, 0.005), client.abort)  # the answers, or some, are lost
            attempts += [self.attempt(client, *one) for one in list(self.pending)]
            results = await asyncio.gather(*attempts, return_exceptions=True)
            failures = [result for result in results if isinstance(result, BaseException)]
            if failures:
                raise failures[0]
            if self.producer_id < 0:
                return
            await self.rest()

    def doubled(self) -> Sequence[tuple[Send, bytearray, int]]:
        """Something that was answered, to be sent again as if it had not been: one of the last five that the log has seen at most."""
        if not self.acked or self.random.random() < 0.5:
            return []
        if not self.pending and self.crashes == self.story.crashes:
            return [self.random.choice(self.acked)]
        return self.acked[-1:] if len(self.pending) < BATCHES_REMEMBERED else []

    def prepare(self) -> None:
        """Some batches for one partition, numbered on."""
        partition = self.random.choice(self.story.partitions())
        if partition != self.partition:
            self.partition = partition
            self.acked.clear()
        if self.crashes != self.story.crashes:
            self.crashes = self.story.crashes
            del self.acked[:-1]
        for _ in range(self.random.randint(1, IN_FLIGHT_MAX)):
            sequence = self.sequences.get(partition, 0)
            send = self.story.history.sending(f"{self.name}/{self.producer_id}", partition, self.values(), is_idempotent=True)
            batch = self.batch(send, producer_id=self.producer_id, producer_epoch=self.producer_epoch, base_sequence=sequence)
            self.sequences[partition] = sequence + len(send.values)
            self.pending.append((send, batch, self.random.randint(3, 13)))

    async def attempt(self, client: SimulatedClient, send: Send, batch: bytearray, version: int) -> None:
        crashes = self.story.crashes
        answer = await client.produce(*send.partition, bytes(batch), acks=self.acks, version=version)
        self.story.expect_no_power_cut_since(crashes)
        if answer.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and self.may_be_forgotten(send):
            self.begin_anew()
            return
        assert answer.error_code == 0, (send.partition, send.values[0][:20], answer.error_code, answer.error_message)
        self.story.history.acked(send, answer.base_offset)
        if any(one[0] is send for one in self.pending):
            self.pending = [one for one in self.pending if one[0] is not send]
            self.acked = [*self.acked, (send, batch, version)][-BATCHES_REMEMBERED:]

    def may_be_forgotten(self, send: Send) -> bool:
        """A power cut takes what the log knew of its producers. A killed process leaves a snapshot, if a segment was rolled, and in that
        there is only the last batch of each, as in Kafka: an earlier one that is sent again is not known for what it is."""
        return self.story.keep == "flushed" or (self.crashes < self.story.crashes and self.story.is_rolled[send.partition[0]])

    def begin_anew(self) -> None:
        self.pending.clear()
        self.acked.clear()
        self.sequences.clear()
        self.producer_id = -1


def play(seed: int, keep: Keep) -> World:
    """The whole story of a seed; its world is returned for its trace. AssertionError or another where it ends badly."""
    loud = LoudLog()
    logger = logging.getLogger("ottla")
    logger.addHandler(loud)
    try:
        with World(seed, steps_max=STEPS_MAX) as world:
            world.run(Story(world, keep).tell())
            assert not loud.errors, loud.errors
            return world
    finally:
        logger.removeHandler(loud)


def main() -> None:
    parser = argparse.ArgumentParser(description="Play one seed and print the digest of its trace.")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--power", action="store_true", help="crashes are power cuts")
    parser.add_argument("--trace", action="store_true", help="print every port call")
    arguments = parser.parse_args()
    world = play(arguments.seed, "flushed" if arguments.power else "page-cache")
    if arguments.trace:
        sys.stdout.write("\n".join(world.trace.entries()) + "\n")
    sys.stdout.write(f"{world.trace.digest()} {world.trace.count} calls, {world.loop.steps} steps\n")


if __name__ == "__main__":
    main()
