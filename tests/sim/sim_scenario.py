"""A simulation scenario: clients run while the node crashes at seeded times and restarts; then everything is checked.

Run one seed and print the digest of its trace: `python -m tests.sim.sim_scenario --seed 7 [--power] [--faults]
[--trace]`.
"""

import argparse
import asyncio
import errno
import logging
import random
import re
import sys
from collections.abc import Coroutine, Sequence
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.node.assemble import Node, assemble
from ottla.node.config import NodeConfig, node_config
from ottla.node.errors import StartError
from ottla.runtime.metadata_log import MetadataLogFailed
from ottla.sim.client import Disconnected, SimulatedClient, records_of
from ottla.sim.history import History, Partition
from ottla.sim.log_files import check_log_files
from ottla.sim.rng import stream
from ottla.sim.storage import Keep
from ottla.sim.world import ProcessCrashed, SimulatedPorts, World
from ottla.wire.batches import Record, iterate_batches
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse
from ottla.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.sim.sim_delete_records import RecordDeleter
from tests.sim.sim_workload import Administrator, IdempotentProducer, Producer, SessionReader

PORT = 9092
STEPS_MAX = 500_000
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3


class ErrorLogHandler(logging.Handler):
    """Collects errors in the log: a node logs failures that it must not raise."""

    def __init__(self, *, expected: str | None = None) -> None:
        super().__init__(logging.ERROR)
        self.errors: list[str] = []
        self._expected = expected

    def emit(self, record: logging.LogRecord) -> None:
        line = self.format(record)
        if self._expected is None or not re.search(self._expected, line):
            self.errors.append(line)


def simulated_config(**properties: str) -> NodeConfig:
    """Return the config of one combined node at `node:9092` with data in /data. Double underscores stand for dots."""
    settings = {"listeners": f"PLAINTEXT://node:{PORT}", "log.dirs": "/data", "log.retention.check.interval.ms": "2000"}
    settings |= {name.replace("__", "."): value for name, value in properties.items()}
    return node_config(settings, cluster_id="AAAAAAAAAAAAAAAAAAAAAA", directory="/", canonical_host=lambda: "node")


class Scenario:
    """One run. `keep` is what a crash preserves: the page cache (killed process) or flushed data only (power loss)."""

    def __init__(self, world: World, keep: Keep, *, has_faults: bool = False) -> None:
        self.world = world
        self.keep = keep
        self.has_faults = has_faults
        self.random = stream(world.seed, "story")
        self.history = History()
        self.config = simulated_config()
        self.node: Node | None = None
        self.ports: SimulatedPorts
        self.client_network = world.start("client").network
        self.topics: dict[str, int] = {}
        self.topic_ids: dict[str, Any] = {}
        self.is_rolled: dict[str, bool] = {}
        self.administrator = Administrator(self)
        self.record_deleter = RecordDeleter(self)
        self.is_finished = False
        self.crashes = 0

    async def run_scenario(self) -> None:
        await self.start_node()
        await self.create_topics()
        workload = [self.spawn(work) for work in self.workload()]
        for _ in range(self.random.randint(1, 3)):
            await self.crash_node()
            await self.start_node(may_crash=True)
            await asyncio.sleep(self.random.uniform(0.0, 2.0))
        self.is_finished = True
        self.world.cancel_faults("node")
        if self.node is not None and self.node.failed.done():
            await self.crash_node()  # the node reported that it cannot continue
            await self.start_node()
        await asyncio.gather(*workload)
        before = await self.read_all()
        self.check(before)
        await self.check_offsets(before)
        await self.check_epochs()
        await self.record_deleter.check_final()
        await self.administrator.check()
        await self.stop_node()
        wrong = [
            fault
            for fault in check_log_files(self.world.storage("node").files())
            if not self.record_deleter.is_expected_problem(fault)
        ]
        assert not wrong, wrong
        await self.start_node()
        assert await self.read_all() == before
        await self.record_deleter.check_final()
        await self.stop_node()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return self.world.loop.create_task(work, context=self.client_network._process.context())

    # Node

    async def start_node(self, *, may_crash: bool = False) -> None:
        """Start the node. With `may_crash`, it sometimes crashes during startup and is started again."""
        while True:
            self.ports = self.world.start("node")
            if may_crash and self.random.random() < 0.3:
                self.world.crash_in("node", self.random.randint(1, 40), self.keep)
            try:
                self.node = await self.world.within(self.ports, assemble(self.ports, self.config))
            except ProcessCrashed:
                self.on_crash()
                continue
            except (OSError, StartError, MetadataLogFailed):
                assert self.has_faults
                self.world.crash("node", self.keep)
                self.on_crash()
                continue
            self.world.cancel_faults("node")
            return

    async def crash_node(self) -> None:
        """Crash after a number of disk changes, in the middle of one, or after some time."""
        if self.random.random() < 0.7:
            self.world.crash_in("node", self.random.randint(1, 300), self.keep)
        await asyncio.wait((self.ports.crashed,), timeout=self.random.uniform(0.05, 6.0))
        if self.world.is_running("node"):
            self.world.cancel_faults("node")
            self.world.crash("node", self.keep)
        self.on_crash()
        await asyncio.sleep(self.random.uniform(0.0, 1.0))

    def on_crash(self) -> None:
        self.crashes += 1
        if self.keep == "flushed":
            self.history.discard_observations()

    async def stop_node(self) -> None:
        assert self.node is not None
        await self.world.within(self.ports, self.node.stop())
        self.world.exit("node")

    # Clients

    async def connect_client(self) -> SimulatedClient:
        """Return a connected client, retrying until the node accepts connections."""
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
        client = await self.connect_client()
        for number in range(self.random.randint(1, 3)):
            name = f"topic-{number}"
            partitions = self.random.randint(1, 3)
            configs = {"index.interval.bytes": str(self.random.choice((0, 300, 4096)))}
            if self.keep == "page-cache" and self.random.random() < 0.7:
                # Not with power loss: a closed segment is flushed after the roll, but recovery checks the last segment
                # only.
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
        readers = [self.follow_partition(partition) for partition in self.partitions()]
        readers += [
            SessionReader(self, version).run() for version in (self.random.randint(7, 12), self.random.randint(13, 18))
        ]
        return [
            *(producer.run() for producer in (*producers, *idempotent)),
            *readers,
            self.administrator.run(),
            self.record_deleter.run(),
            self.inject_faults(),
        ]

    async def inject_faults(self) -> None:
        """Cut network links for a while, make writes fail, and jump the clock."""
        source = stream(self.world.seed, "disturbance")
        while not self.is_finished:
            await asyncio.sleep(source.uniform(0.1, 5.0))
            match source.choice(("cut", "clock", "disk" if self.has_faults else "nothing")):
                case "disk" if not self.is_finished:
                    self.ports.disk.fail("append", source.randint(1, 30), source.choice((errno.ENOSPC, errno.EIO)))
                case "cut":
                    self.world.fabric.cut(*source.choice((("client", "node"), ("node", "client"))))
                    await asyncio.sleep(source.uniform(0.0, 1.0))
                    self.world.fabric.heal()
                case "clock":
                    self.ports.clock.offset_ms += source.randint(-3000, 3000)

    async def follow_partition(self, partition: Partition) -> None:
        """Run a consumer that follows a partition, seeks back sometimes, and reports what it reads."""
        offset = 0
        source = stream(self.world.seed, f"reader/{partition}")
        while not self.is_finished:
            client = await self.connect_client()
            try:
                while not self.is_finished:
                    offset = await self.poll(client, partition, offset, source)
            except Disconnected:
                client.close()
                continue
            client.close()

    async def poll(self, client: SimulatedClient, partition: Partition, offset: int, source: random.Random) -> int:
        version, wait_ms, bytes_max = source.randint(4, 18), source.randint(0, 500), source.choice((1, 5000, 1 << 20))
        crashes, known_before = self.crashes, self.history.high_watermark(partition)
        response = await client.fetch(*partition, offset, wait_ms=wait_ms, bytes_max=bytes_max, version=version)
        self.expect_no_power_cut_since(crashes)
        if response.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and self.keep == "flushed":
            return 0
        if response.error_code == ErrorCode.KAFKA_STORAGE_ERROR and self.has_faults:
            raise Disconnected("the only directory has failed: the node stops")
        assert response.error_code == 0, (partition, offset, response.error_code)
        records = records_of(response.records, offset)
        self.history.on_fetched(partition, records, response.high_watermark, known_before=known_before)
        if source.random() < 0.05:
            return source.randint(0, offset)
        return records[-1].offset + 1 if records else offset

    def expect_no_power_cut_since(self, crashes: int) -> None:
        """Discard a response that arrived after a power loss: what it says may be lost."""
        if self.keep == "flushed" and self.crashes != crashes:
            raise Disconnected("power was cut meanwhile")

    # Final checks

    async def read_all(self) -> dict[Partition, list[Record]]:
        client = await self.connect_client()
        found: dict[Partition, list[Record]] = {}
        for partition in self.partitions():
            records: list[Record] = []
            while True:
                known_before = self.history.high_watermark(partition)
                response = await client.fetch(*partition, len(records), bytes_max=100_000)
                assert response.error_code == 0, (partition, response.error_code)
                more = records_of(response.records, len(records))
                if not more:
                    break
                self.history.on_fetched(partition, more, response.high_watermark, known_before=known_before)
                records += more
            assert response.high_watermark == len(records), (partition, response.high_watermark, len(records))
            found[partition] = records
        client.close()
        return found

    def check(self, final: dict[Partition, list[Record]]) -> None:
        violations = self.history.check(final)
        assert not violations, "\n".join(violations)

    async def check_offsets(self, final: dict[Partition, list[Record]]) -> None:
        """Check ListOffsets against the log: start and end, latest record, and first record at or after a timestamp."""
        client = await self.connect_client()
        for partition, records in final.items():
            times = [record.timestamp for record in records]
            requested = {EARLIEST: (-1, 0), LATEST: (-1, len(records)), MAX_TIMESTAMP: (-1, -1)}
            if times:
                requested[MAX_TIMESTAMP] = (max(times), times.index(max(times)))
            for time in sorted({*self.random.sample(times, min(len(times), 10)), *(t + 1 for t in times[:3])}):
                later = [(record.timestamp, record.offset) for record in records if record.timestamp >= time]
                requested[time] = later[0] if later else (-1, -1)
            for time, expected in requested.items():
                response = await client.list_offsets(
                    *partition, time, version=self.random.randint(7 if time == MAX_TIMESTAMP else 1, 11)
                )
                assert (response.error_code, response.timestamp, response.offset) == (0, *expected), (partition, time)
        client.close()

    async def check_epochs(self) -> None:
        """Check OffsetForLeaderEpoch against the log: an epoch ends where a later one starts, or at the log end."""
        client = await self.connect_client()
        metadata = await client.call(MetadataRequest(topics=None), MetadataResponse, 12)
        leading = {
            (topic.name, part.partition_index): part.leader_epoch
            for topic in metadata.topics
            for part in topic.partitions
        }
        for name, index in self.partitions():
            starts, end = await self.epoch_starts(client, (name, index))
            for epoch in starts:
                requested = OffsetForLeaderPartition(
                    partition=index, current_leader_epoch=leading[name, index], leader_epoch=epoch
                )
                request = OffsetForLeaderEpochRequest(
                    replica_id=-1, topics=[OffsetForLeaderTopic(topic=name, partitions=[requested])]
                )
                response = await client.call(request, OffsetForLeaderEpochResponse, self.random.randint(3, 4))
                found = response.topics[0].partitions[0]
                later = [start for other, start in starts.items() if other > epoch]
                assert (found.error_code, found.leader_epoch, found.end_offset) == (0, epoch, min([*later, end])), (
                    name,
                    index,
                    starts,
                )
        client.close()

    async def epoch_starts(self, client: SimulatedClient, partition: Partition) -> tuple[dict[int, int], int]:
        """Return the first offset of each epoch, and the log end offset."""
        starts: dict[int, int] = {}
        offset = 0
        while True:
            response = await client.fetch(*partition, offset, bytes_max=100_000)
            headers = [header for _, header in iterate_batches(response.records or b"")]
            for header in headers:
                starts.setdefault(header.leader_epoch, header.base_offset)
            if not headers:
                return starts, offset
            offset = headers[-1].last_offset + 1


def run_seed(seed: int, keep: Keep, *, has_faults: bool = False, scenario_type: type[Scenario] = Scenario) -> World:
    """Run the scenario of one seed and return its world. Raises AssertionError, or the error that ended the run."""
    errors_logged = ErrorLogHandler(expected=r"\[Errno (5|28)\]|OSError\((5|28)," if has_faults else None)
    logger = logging.getLogger("ottla")
    logger.addHandler(errors_logged)
    try:
        with World(seed, steps_max=STEPS_MAX) as world:
            world.run(scenario_type(world, keep, has_faults=has_faults).run_scenario())
            assert not errors_logged.errors, errors_logged.errors
            return world
    finally:
        logger.removeHandler(errors_logged)


def main() -> None:
    parser = argparse.ArgumentParser(description="Play one seed and print the digest of its trace.")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--power", action="store_true", help="crashes are power cuts")
    parser.add_argument("--faults", action="store_true", help="writes fail now and then")
    parser.add_argument("--trace", action="store_true", help="print every port call")
    arguments = parser.parse_args()
    world = run_seed(arguments.seed, "flushed" if arguments.power else "page-cache", has_faults=arguments.faults)
    if arguments.trace:
        sys.stdout.write("\n".join(world.trace.entries()) + "\n")
    sys.stdout.write(f"{world.trace.digest()} {world.trace.count} calls, {world.loop.steps} steps\n")


if __name__ == "__main__":
    main()
