"""Who deletes records in a scenario: what was answered holds from then on, over every scenario_type of crash."""

import asyncio
import re
from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode
from ottla.sim.client import Disconnected, SimulatedClient, records_of
from ottla.sim.rng import stream
from ottla.wire.batches import Record, build_batch
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)

if TYPE_CHECKING:
    from tests.sim.sim_scenario import Scenario

TOPIC = "shortened"
LATEST, EARLIEST = -1, -2
ROUNDS_MAX = 25


class RecordDeleter:
    """Fills a topic of its on_assigned and deletes its beginning, again and again. The log never begins before what was answered, nor after what
    was requested for, and has no gaps."""

    def __init__(self, scenario: "Scenario") -> None:
        self.scenario = scenario
        self.random = stream(scenario.world.seed, "record_deleter")
        self.topics: dict[str, int] = {}
        self.low = 0
        self.requested = 0
        self.sent = 0
        self.start = 0

    async def run(self) -> None:
        for _ in range(ROUNDS_MAX):
            if self.scenario.is_finished and self.topics:
                return
            client = await self.scenario.connect_client()
            try:
                await self.work(client)
            except Disconnected:
                client.close()
                continue
            client.close()
            await asyncio.sleep(self.random.uniform(0.0, 0.4))

    async def work(self, client: SimulatedClient) -> None:
        if not self.topics:
            configs = {"segment.ms": "300"} if self.scenario.keep == "page-cache" else {}
            result = await client.create_topic(TOPIC, 1, configs)
            assert result.error_code in (0, ErrorCode.TOPIC_ALREADY_EXISTS), result
            self.topics[TOPIC] = 1
        for _ in range(self.random.randint(1, 4)):
            await self.send(client)
        await self.check(client)
        if self.random.random() < 0.7:
            await self.delete(client)
            await self.check(client)

    async def send(self, client: SimulatedClient) -> None:
        self.sent += 1
        records = [Record(value=b"%d %d" % (self.sent, index)) for index in range(self.random.choice((1, 3, 10)))]
        response = await client.produce(TOPIC, 0, build_batch(records), acks=-1, version=self.random.randint(7, 12))
        assert response.error_code in (0, ErrorCode.KAFKA_STORAGE_ERROR if self.scenario.has_faults else 0), (
            response.error_code
        )

    async def delete(self, client: SimulatedClient) -> None:
        """To a place between beginning and end, or to the end."""
        crashes = self.scenario.crashes
        start, end = await self.offset(client, EARLIEST), await self.offset(client, LATEST)
        wanted = self.random.choice((self.random.randint(start, end), -1))
        self.requested = max(self.requested, end if wanted == -1 else wanted)
        topic = DeleteRecordsTopic(name=TOPIC, partitions=[DeleteRecordsPartition(partition_index=0, offset=wanted)])
        response = await client.call(
            DeleteRecordsRequest(topics=[topic], timeout_ms=1000), DeleteRecordsResponse, self.random.randint(0, 2)
        )
        self.scenario.expect_no_power_cut_since(crashes)
        result = response.topics[0].partitions[0]
        self.check_storage_error(result.error_code)
        assert (result.error_code, result.low_watermark) == (0, end if wanted == -1 else wanted), (
            wanted,
            start,
            end,
            result,
        )
        self.low = result.low_watermark

    async def offset(self, client: SimulatedClient, which: int) -> int:
        response = await client.list_offsets(TOPIC, 0, which, version=self.random.randint(1, 11))
        self.check_storage_error(response.error_code)
        assert response.error_code == 0, response.error_code
        return response.offset

    def check_storage_error(self, error_code: int) -> None:
        """Where disks fail, the only directory may have failed just now: the node stops, and is started again."""
        if error_code == ErrorCode.KAFKA_STORAGE_ERROR and self.scenario.has_faults:
            raise Disconnected("the only directory has failed")

    async def check(self, client: SimulatedClient) -> None:
        self.start = start = await self.offset(client, EARLIEST)
        assert self.low <= start <= self.requested, (self.low, start, self.requested)
        end = await self.offset(client, LATEST)
        assert end >= start, (start, end)
        if start:
            gone = await client.fetch(TOPIC, 0, start - 1, version=self.random.randint(4, 12))
            self.check_storage_error(gone.error_code)
            assert gone.error_code == ErrorCode.OFFSET_OUT_OF_RANGE, gone.error_code
        at = start
        while at < end:
            response = await client.fetch(TOPIC, 0, at, version=self.random.randint(4, 12))
            self.check_storage_error(response.error_code)
            assert response.error_code == 0, response.error_code
            offsets = [record.offset for record in records_of(response.records, at)]
            assert offsets, (at, end)
            assert offsets == list(range(at, at + len(offsets))), (at, offsets)
            at += len(offsets)

    def is_expected_problem(self, fault: str) -> bool:
        """A segment that was deleted keeps its file for a while, and no index is written for it."""
        found = re.match(rf".*/{TOPIC}-0/(\d+)\.(time)?index is missing$", fault)
        return found is not None and int(found[1]) < self.start

    async def check_final(self) -> None:
        """At the end of the scenario, and after a restart."""
        client = await self.scenario.connect_client()
        if self.topics:
            await self.check(client)
        client.close()
