"""Clients of a simulation scenario: producers that retry, a session reader, and an administrator of topics."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from ottla.base.errors import ErrorCode
from ottla.sim.client import Disconnected, SimulatedClient, records_of
from ottla.sim.clock import EPOCH_MS
from ottla.sim.history import Partition, Send
from ottla.sim.rng import stream
from ottla.wire.batches import Record, build_batch
from ottla.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse

if TYPE_CHECKING:
    from tests.sim.sim_scenario import Scenario

CODECS = (0, 0, 0, 1, 2, 3, 4)
IN_FLIGHT_MAX = 5
BATCHES_REMEMBERED = 5
SENDS_MAX = 60


class Producer:
    """Sends each batch once, without idempotence: without a response, the batch may or may not be in the log."""

    is_idempotent = False

    def __init__(self, scenario: "Scenario", name: str, *, acks: int) -> None:
        self.scenario = scenario
        self.name = name
        self.acks = acks
        self.random = stream(scenario.world.seed, f"producer/{name}")
        self.sent = 0

    async def run(self) -> None:
        while not self.scenario.is_finished:
            client = await self.scenario.connect_client()
            try:
                while not self.scenario.is_finished:
                    await asyncio.gather(*(self.send(client) for _ in range(self.random.randint(1, IN_FLIGHT_MAX))))
                    await self.pause()
            except Disconnected:
                client.close()
                continue
            client.close()

    async def pause(self) -> None:
        """Pause between sends, longer after many sends, which bounds a run."""
        await asyncio.sleep(self.random.uniform(0.0, 0.3) + (1.0 if self.sent > SENDS_MAX else 0.0))

    async def send(self, client: SimulatedClient) -> None:
        partition = self.random.choice(self.scenario.partitions())
        send = self.scenario.history.on_send(self.name, partition, self.values(), is_idempotent=False)
        batch = self.batch(send)
        if self.acks == 0:
            client.send(client.produce_request(*partition, batch, acks=0), self.random.randint(7, 13))
            return
        crashes = self.scenario.crashes
        response = await client.produce(*partition, batch, acks=self.acks, version=self.random.randint(7, 13))
        self.scenario.expect_no_power_cut_since(crashes)
        if response.error_code == ErrorCode.KAFKA_STORAGE_ERROR and self.scenario.has_faults:
            self.scenario.history.on_failed(send)
            return
        assert response.error_code == 0, (partition, response.error_code, response.error_message)
        self.scenario.history.on_acked(send, response.base_offset)

    def values(self) -> list[bytes]:
        values = []
        for _ in range(self.random.choice((1, 1, 1, 2, 5, 20))):
            self.sent += 1
            values.append(f"{self.name}-{self.sent} ".encode() + b"." * self.random.choice((0, 0, 10, 100, 3000)))
        return values

    def batch(self, send: Send, **producer: int) -> bytearray:
        now_ms = int(self.scenario.world.loop.time() * 1000) + EPOCH_MS
        records = [
            Record(timestamp=now_ms + self.random.randint(-5000, 5000), value=value, key=b"key")
            for value in send.values
        ]
        return build_batch(records, codec=self.random.choice(CODECS), **producer)


class IdempotentProducer(Producer):
    """Retries batches without a response, in order: each must be in the log exactly once."""

    def __init__(self, scenario: "Scenario", name: str) -> None:
        super().__init__(scenario, name, acks=-1)
        self.pending: list[tuple[Send, bytearray, int]] = []
        self.acked: list[tuple[Send, bytearray, int]] = []  # of one partition; as many as a log remembers
        self.producer_id = -1
        self.producer_epoch = -1
        self.sequences: dict[Partition, int] = {}
        self.partition: Partition = ("", 0)
        self.crashes = 0  # number of crashes when the pending batches were created

    async def run(self) -> None:
        while not self.scenario.is_finished or self.pending:
            client = await self.scenario.connect_client()
            try:
                await self.work(client)
            except Disconnected:
                client.close()
                continue
            client.close()

    async def work(self, client: SimulatedClient) -> None:
        if self.producer_id < 0:
            response = await client.init_producer_id()
            assert response.error_code == 0, response.error_code
            self.producer_id, self.producer_epoch = response.producer_id, response.producer_epoch
        while not self.scenario.is_finished or self.pending:
            attempts = [self.attempt(client, *one) for one in self.duplicates()]
            if not self.pending:
                self.create_batches()
            if self.random.random() < 0.2:
                self.scenario.world.loop.call_later(
                    self.random.uniform(0.0, 0.005), client.abort
                )  # lose some or all responses
            attempts += [self.attempt(client, *one) for one in list(self.pending)]
            results = await asyncio.gather(*attempts, return_exceptions=True)
            failures = [result for result in results if isinstance(result, BaseException)]
            if failures:
                raise failures[0]
            if self.producer_id < 0:
                return
            await self.pause()

    def duplicates(self) -> Sequence[tuple[Send, bytearray, int]]:
        """Return an acknowledged batch to send again: one of the last five that the log remembers."""
        if not self.acked or self.random.random() < 0.5:
            return []
        if not self.pending and self.crashes == self.scenario.crashes:
            return [self.random.choice(self.acked)]
        return self.acked[-1:] if len(self.pending) < BATCHES_REMEMBERED else []

    def create_batches(self) -> None:
        """Create batches for one partition with consecutive sequence numbers."""
        partition = self.random.choice(self.scenario.partitions())
        if partition != self.partition:
            self.partition = partition
            self.acked.clear()
        if self.crashes != self.scenario.crashes:
            self.crashes = self.scenario.crashes
            del self.acked[:-1]
        for _ in range(self.random.randint(1, IN_FLIGHT_MAX)):
            sequence = self.sequences.get(partition, 0)
            send = self.scenario.history.on_send(
                f"{self.name}/{self.producer_id}", partition, self.values(), is_idempotent=True
            )
            batch = self.batch(
                send, producer_id=self.producer_id, producer_epoch=self.producer_epoch, base_sequence=sequence
            )
            self.sequences[partition] = sequence + len(send.values)
            self.pending.append((send, batch, self.random.randint(7, 13)))

    async def attempt(self, client: SimulatedClient, send: Send, batch: bytearray, version: int) -> None:
        crashes = self.scenario.crashes
        response = await client.produce(*send.partition, bytes(batch), acks=self.acks, version=version)
        self.scenario.expect_no_power_cut_since(crashes)
        is_behind_another = bool(self.pending) and self.pending[0][0] is not send
        if self.scenario.has_faults and response.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
            return  # retry
        if (
            self.scenario.has_faults
            and response.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            and is_behind_another
        ):
            return  # the batch before it was not written
        if response.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and self.may_be_unknown(send):
            self.reset()
            return
        assert response.error_code == 0, (
            send.partition,
            send.values[0][:20],
            response.error_code,
            response.error_message,
        )
        self.scenario.history.on_acked(send, response.base_offset)
        if any(one[0] is send for one in self.pending):
            self.pending = [one for one in self.pending if one[0] is not send]
            self.acked = [*self.acked, (send, batch, version)][-BATCHES_REMEMBERED:]

    def may_be_unknown(self, send: Send) -> bool:
        """Whether the log may not recognize the producer's batch.

        After power loss, producer state may be lost. After a process crash, a snapshot written at a segment roll has
        only the last batch of each producer, as in Kafka, so an earlier batch is not recognized as a duplicate. If the
        first batch of a producer could not be written, the log accepts the second as its first, as in Kafka.
        """
        was_snapshot_read = self.crashes < self.scenario.crashes and self.scenario.is_rolled[send.partition[0]]
        return self.scenario.keep == "flushed" or was_snapshot_read or self.scenario.has_faults

    def reset(self) -> None:
        self.pending.clear()
        self.acked.clear()
        self.sequences.clear()
        self.producer_id = -1


class SessionReader:
    """A consumer of all partitions in one fetch session, which sends a partition only if its offset changed."""

    def __init__(self, scenario: "Scenario", version: int) -> None:
        self.scenario = scenario
        self.version = version
        self.random = stream(scenario.world.seed, f"session/{version}")
        self.offsets: dict[Partition, int] = {}
        self.next_offsets: dict[Partition, int] = {}

    async def run(self) -> None:
        while not self.scenario.is_finished:
            client = await self.scenario.connect_client()
            self.offsets = {}
            self.next_offsets = dict.fromkeys(self.scenario.partitions(), 0) | self.next_offsets
            try:
                await self.follow(client)
            except Disconnected:
                client.close()
                continue
            client.close()

    async def follow(self, client: SimulatedClient) -> None:
        session_id = epoch = 0
        while not self.scenario.is_finished:
            changed = {
                partition: offset
                for partition, offset in self.next_offsets.items()
                if self.offsets.get(partition) != offset
            }
            request = FetchRequest(
                max_wait_ms=self.random.randint(0, 300),
                min_bytes=1,
                max_bytes=50_000,
                session_id=session_id,
                session_epoch=epoch,
                topics=self.topics(client, changed),
            )
            crashes = self.scenario.crashes
            known_before = {
                partition: self.scenario.history.high_watermark(partition) for partition in self.next_offsets
            }
            response = await client.call(request, FetchResponse, self.version)
            self.scenario.expect_no_power_cut_since(crashes)
            assert response.error_code == 0, response.error_code
            self.offsets |= changed
            if epoch == 0:
                session_id = response.session_id
            if session_id:
                assert response.session_id == session_id
                epoch += 1
            else:
                self.offsets.clear()  # no session was created: request all partitions again
            self.take(client, response, known_before)

    def topics(self, client: SimulatedClient, changed: dict[Partition, int]) -> list[FetchTopic]:
        return [
            FetchTopic(
                topic=topic,
                topic_id=client.topic_ids[topic],
                partitions=[
                    FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=20_000)
                    for (name, index), offset in changed.items()
                    if name == topic
                ],
            )
            for topic in dict.fromkeys(topic for topic, _ in changed)
        ]

    def take(self, client: SimulatedClient, response: FetchResponse, known_before: dict[Partition, int]) -> None:
        names = {topic_id: name for name, topic_id in client.topic_ids.items()}
        for topic in response.responses:
            name = names[topic.topic_id] if self.version >= 13 else topic.topic
            for part in topic.partitions:
                partition = (name, part.partition_index)
                if part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and self.scenario.keep == "flushed":
                    self.next_offsets[partition] = 0
                    continue
                if part.error_code == ErrorCode.KAFKA_STORAGE_ERROR and self.scenario.has_faults:
                    raise Disconnected("the only directory has failed: the node stops")
                assert part.error_code == 0, (partition, part.error_code)
                records = records_of(part.records, self.offsets.get(partition, self.next_offsets[partition]))
                self.scenario.history.on_fetched(
                    partition, records, part.high_watermark, known_before=known_before[partition]
                )
                if records:
                    self.next_offsets[partition] = records[-1].offset + 1


class Administrator:
    """Creates, grows and deletes topics. Acknowledged changes must persist, also after power loss."""

    def __init__(self, scenario: "Scenario", *, topics_max: int = 12) -> None:
        self.scenario = scenario
        self.random = stream(scenario.world.seed, "administrator")
        self.topics_max = topics_max
        self.partitions: dict[str, int] = {}  # of existing topics

    async def run(self) -> None:
        """Repeat every step until it is answered."""
        for number in range(self.topics_max):
            if self.scenario.is_finished:
                return
            name = f"made-{number}"
            count = self.random.randint(1, 3)
            await self.retry_until_answered(lambda client, name=name, count=count: self.create(client, name, count))
            self.partitions[name] = count
            await asyncio.sleep(self.random.uniform(0.0, 0.5))
            if self.random.random() < 0.4:
                count += self.random.randint(1, 2)
                await self.retry_until_answered(
                    lambda client, name=name, count=count: self.add_partitions(client, name, count)
                )
                self.partitions[name] = count
            if self.random.random() < 0.4:
                await self.retry_until_answered(lambda client, name=name: self.delete(client, name))
                del self.partitions[name]

    async def retry_until_answered(self, step: "Step") -> None:
        while True:
            client = await self.scenario.connect_client()
            try:
                await step(client)
            except Disconnected:
                client.close()
                continue
            client.close()
            return

    async def create(self, client: SimulatedClient, name: str, count: int) -> None:
        result = await client.create_topic(name, count)
        assert result.error_code in (0, ErrorCode.TOPIC_ALREADY_EXISTS), result

    async def add_partitions(self, client: SimulatedClient, name: str, count: int) -> None:
        topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
        response = await client.call(CreatePartitionsRequest(topics=[topic], timeout_ms=1000), CreatePartitionsResponse)
        assert response.results[0].error_code in (0, ErrorCode.INVALID_PARTITIONS), response  # may be a retry

    async def delete(self, client: SimulatedClient, name: str) -> None:
        version = self.random.randint(1, 5)
        response = await client.call(
            DeleteTopicsRequest(topic_names=[name], timeout_ms=1000), DeleteTopicsResponse, version
        )
        assert response.responses[0].error_code in (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), response

    async def check(self) -> None:
        """The node has exactly the expected topics."""
        client = await self.scenario.connect_client()
        response = await client.call(MetadataRequest(topics=None), MetadataResponse, self.random.randint(1, 13))
        found = {topic.name: len(topic.partitions) for topic in response.topics}
        assert dict(sorted(found.items())) == dict(
            sorted((self.partitions | self.scenario.topics | self.scenario.record_deleter.topics).items())
        )
        client.close()


Step = Callable[[SimulatedClient], Coroutine[Any, Any, None]]
