"""DeleteRecords in a simulation scenario: acknowledged deletions hold across all kinds of crashes."""

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
    """Fills a topic and deletes its oldest records, repeatedly.

    The log start offset is never below an acknowledged one, nor above the highest requested one, and the log has no
    gaps.
    """

    def __init__(self, scenario: "Scenario") -> None:
        self.scenario = scenario
        self.random = stream(scenario.world.seed, "shortener")
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
        """Delete up to a random offset, or up to the high watermark."""
        crashes = self.scenario.crashes
        start, end = await self.offset(client, EARLIEST), await self.offset(client, LATEST)
        target = self.random.choice((self.random.randint(start, end), -1))
        self.requested = max(self.requested, end if target == -1 else target)
        topic = DeleteRecordsTopic(name=TOPIC, partitions=[DeleteRecordsPartition(partition_index=0, offset=target)])
        response = await client.call(
            DeleteRecordsRequest(topics=[topic], timeout_ms=1000), DeleteRecordsResponse, self.random.randint(0, 2)
        )
        self.scenario.expect_no_power_cut_since(crashes)
        result = response.topics[0].partitions[0]
        self.check_storage_error(result.error_code)
        assert (result.error_code, result.low_watermark) == (0, end if target == -1 else target), (
            target,
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
        """With failing writes, the only directory may have failed: the node stops and is restarted."""
        if error_code == ErrorCode.KAFKA_STORAGE_ERROR and self.scenario.has_faults:
            raise Disconnected("the only directory has failed")

    async def check(self, client: SimulatedClient) -> None:
        self.start = start = await self.offset(client, EARLIEST)
        assert self.low <= start <= self.requested, (self.low, start, self.requested)
        end = await self.offset(client, LATEST)
        assert end >= start, (start, end)
        if start:
            deleted = await client.fetch(TOPIC, 0, start - 1, version=self.random.randint(4, 12))
            self.check_storage_error(deleted.error_code)
            assert deleted.error_code == ErrorCode.OFFSET_OUT_OF_RANGE, deleted.error_code
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
        """Whether the problem is a missing index of a deleted segment, whose file is removed later."""
        found = re.match(rf".*/{TOPIC}-0/(\d+)\.(time)?index is missing$", fault)
        return found is not None and int(found[1]) < self.start

    async def check_final(self) -> None:
        """Check at the end of the scenario, and again after a restart."""
        client = await self.scenario.connect_client()
        if self.topics:
            await self.check(client)
        client.close()
