"""A compacted topic on a simulated node: records are appended during compaction, with crashes at seeded times."""

import asyncio

import pytest

from ottla.sim.client import Disconnected, SimulatedClient
from ottla.sim.clock import EPOCH_MS
from ottla.sim.log_files import check_log_files
from ottla.sim.rng import stream
from ottla.wire.batches import Record, build_batch, decode_records, iterate_batches
from tests.sim.sim_scenario import Scenario, run_seed, simulated_config

pytestmark = pytest.mark.timeout(120)

TOPIC = "compacted"
KEYS = [b"key %d" % number for number in range(8)]
CONFIGS = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "1500",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "700",
    "file.delete.delay.ms": "300",
    "index.interval.bytes": "200",
}


class CompactionScenario(Scenario):
    """One producer, one reader, one log; the reader always starts at the beginning."""

    sent: dict[bytes, bytes]
    """Key by value, for records that are not tombstones."""
    acked: dict[int, Record]
    unknown_keys: dict[bytes, None]
    """Keys of sends without a response: a later record than the last acknowledged one may exist."""
    cleanings = 0

    async def run_scenario(self) -> None:
        self.config = simulated_config(
            log__cleaner__backoff__ms="100", log__cleaner__io__max__bytes__per__second="100000"
        )
        self.sent, self.acked, self.unknown_keys = {}, {}, {}
        await self.start_node()
        client = await self.connect_client()
        configs = {**CONFIGS, "flush.messages": "1"} if self.keep == "flushed" else CONFIGS
        assert (await client.create_topic(TOPIC, 1, configs)).error_code == 0
        client.close()
        workload = [self.spawn(self.produce()), self.spawn(self.read_repeatedly())]
        for _ in range(self.random.randint(2, 4)):
            await asyncio.sleep(self.random.uniform(0.0, 4.0))
            self.count_cleanings()
            await self.crash_node()
            await self.start_node(may_crash=True)
        await asyncio.sleep(3.0)
        self.is_finished = True
        self.world.cancel_faults("node")
        await asyncio.gather(*workload)
        self.check_contents(await self.contents())
        self.count_cleanings()
        await self.stop_node()
        assert check_log_files(self.world.storage("node").files()) == []
        await self.start_node()
        self.check_contents(await self.contents())
        await self.stop_node()

    def count_cleanings(self) -> None:
        assert self.node is not None
        assert self.node.broker.log_cleaner is not None
        assert self.node.broker.log_cleaner.uncleanable == {}
        self.cleanings += self.node.broker.log_cleaner.metrics.runs

    async def produce(self) -> None:
        source, number = stream(self.world.seed, "producer"), 0
        while not self.is_finished:
            client = await self.connect_client()
            try:
                while not self.is_finished:
                    records = []
                    for _ in range(source.randint(1, 4)):
                        number += 1
                        key, value = source.choice(KEYS), None if source.random() < 0.2 else b"%d" % number
                        records.append(Record(timestamp=EPOCH_MS + number, key=key, value=value))
                        if value is not None:
                            self.sent[value] = key
                    response = await self.send(client, records, source.randrange(5))
                    for at, record in enumerate(records):
                        self.acked[response + at] = record._replace(offset=response + at)
                    await asyncio.sleep(source.uniform(0.0, 0.05))
            except Disconnected:
                await asyncio.sleep(0.1)

    async def send(self, client: SimulatedClient, records: list[Record], codec: int) -> int:
        try:
            response = await client.produce(TOPIC, 0, build_batch(records, codec=codec), acks=-1)
        except Disconnected:
            self.unknown_keys.update(dict.fromkeys(record.key for record in records if record.key is not None))
            raise
        assert response.error_code == 0, response
        return response.base_offset

    async def read_repeatedly(self) -> None:
        while not self.is_finished:
            self.check_known(await self.contents())
            await asyncio.sleep(0.3)

    async def contents(self) -> dict[int, Record]:
        """Read the log with small fetches, between which segments are replaced."""
        found: dict[int, Record] = {}
        offset = 0
        client = await self.connect_client()
        while True:
            try:
                response = await client.fetch(TOPIC, 0, offset, bytes_max=700)
            except Disconnected:
                await asyncio.sleep(0.1)
                client = await self.connect_client()
                continue
            assert response.error_code == 0, response
            for position, header in iterate_batches(response.records or b""):
                batch = bytes(memoryview(response.records or b"")[position : position + header.size])
                found |= {record.offset: record for record in decode_records(batch) if record.offset >= offset}
                offset = max(offset, header.last_offset + 1)
            if offset >= response.high_watermark:
                client.close()
                return found

    def check_known(self, found: dict[int, Record]) -> None:
        for offset, record in found.items():
            known = self.acked.get(offset)
            if self.keep == "page-cache" or known is None:
                assert known is None or (record.key, record.value) == (known.key, known.value), (record, known)
            if record.value is not None:
                assert self.sent[record.value] == record.key

    def check_contents(self, found: dict[int, Record]) -> None:
        self.check_known(found)
        for key in KEYS:
            promised = max(
                (record for record in self.acked.values() if record.key == key),
                key=lambda record: record.offset,
                default=None,
            )
            latest = max(
                (record for record in found.values() if record.key == key),
                key=lambda record: record.offset,
                default=None,
            )
            if promised is None:
                continue
            if latest is None:
                assert promised.value is None or key in self.unknown_keys, f"{promised} is lost"
            elif latest.offset < promised.offset:
                assert promised.value is None
                assert latest.value is None, f"{latest} is back"
            elif latest.offset > promised.offset:
                assert key in self.unknown_keys, (latest, promised)
            else:
                assert (latest.key, latest.value) == (promised.key, promised.value)


@pytest.mark.parametrize("keep", ["page-cache", "flushed"])
def test_compacted_topic_keeps_latest_record_per_key(sim_seed, keep):
    run_seed(sim_seed, keep=keep, scenario_type=CompactionScenario)


def test_scenario_runs_compaction():
    """Otherwise the test above would prove nothing."""
    scenarios: list[CompactionScenario] = []

    class Noted(CompactionScenario):
        async def run_scenario(self) -> None:
            scenarios.append(self)
            await super().run_scenario()

    for seed in range(100, 103):
        run_seed(seed, keep="page-cache", scenario_type=Noted)
    assert sum(scenario.cleanings for scenario in scenarios) > 3
