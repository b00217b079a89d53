"""A small client for the simulator's workloads: one connection, requests in flight at once, each call at a version of its own choosing."""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from struct import Struct
from typing import TypeVar

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.base.ports import Buffer, Connection
from ottla.sim.network import SimulatedNetwork
from ottla.wire.batches import Record, decode_records, iterate_batches
from ottla.wire.framing import FrameReader, ReceiveBufferPool
from ottla.wire.headers import skip_tags
from ottla.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ottla.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.wire.schema import Message, decode, encode

R = TypeVar("R", bound=Message)

_API_VERSIONS = 18
_FRAME_BYTES_MAX = 100 << 20
_header = Struct(">hhi").pack
_size = Struct(">h").pack
_correlation = Struct(">i").unpack_from


class Disconnected(Exception):
    """The connection ended before the answer came."""


class SimulatedClient:
    """`topic_ids` are those of the topics that this client created; others may be added to it."""

    def __init__(self, network: SimulatedNetwork, host: str, port: int, *, client_id: str = "sim") -> None:
        self._network = network
        self._host = host
        self._port = port
        self._client_id = client_id.encode()
        self._reader: FrameReader | None = None
        self._connection: Connection | None = None
        self._waiting: deque[tuple[int, bool, asyncio.Future[memoryview]]] = deque()
        self._correlation_id = 0
        self._lost: asyncio.Future[None] | None = None
        self.topic_ids: dict[str, Uuid] = {}

    async def connect(self) -> None:
        """OSError where nobody listens."""
        self._lost = asyncio.get_running_loop().create_future()
        await self._network.connect(self._host, self._port, self)

    # What the network calls

    def connection_made(self, connection: Connection) -> None:
        self._connection = connection
        self._reader = FrameReader(ReceiveBufferPool(), _FRAME_BYTES_MAX, self._on_frame)

    def get_buffer(self, size_hint: int) -> memoryview:
        assert self._reader is not None
        return self._reader.get_buffer(size_hint)

    def buffer_updated(self, size: int) -> None:
        assert self._reader is not None
        self._reader.received(size)

    def pause_writing(self) -> None:
        """A workload waits for its answers, which bounds what it writes."""

    def resume_writing(self) -> None:
        """See `pause_writing`."""

    def connection_lost(self, error: Exception | None) -> None:
        self._connection = None
        if self._reader is not None:
            self._reader.release()
            self._reader = None
        waiting, self._waiting = self._waiting, deque()
        for _, _, future in waiting:
            if not future.done():
                future.set_exception(Disconnected(str(error)))
        if self._lost is not None and not self._lost.done():
            self._lost.set_result(None)

    def _on_frame(self, buffer: bytearray, view: memoryview, start: int, end: int) -> bool:
        expected, is_flexible, future = self._waiting.popleft()
        correlation_id = _correlation(buffer, start)[0]
        assert correlation_id == expected, f"answer {correlation_id} came where {expected} was due"
        position = skip_tags(buffer, start + 4, end) if is_flexible else start + 4
        if not future.done():
            future.set_result(memoryview(bytes(view[position:end])))
        return True

    # Sending

    def send_bytes(self, data: Buffer) -> None:
        """Bytes as they are, for those who mean ill: an answer to them is not expected."""
        if self._connection is not None:
            self._connection.write([data])

    def frame(self, request: Message, version: int) -> bytes:
        """A whole request, as `call` sends it."""
        flexible = version >= request.FLEXIBLE_FROM
        body = encode(request, version)
        head = _header(request.API_KEY, version, self._correlation_id) + _size(len(self._client_id)) + self._client_id
        if flexible:
            head += b"\0"
        return (len(head) + len(body)).to_bytes(4, "big") + head + body

    async def call(self, request: Message, response: type[R], version: int | None = None) -> R:
        """Send a request and wait for its answer; `Disconnected` where none comes."""
        if version is None:
            version = request.MAX_VERSION
        if self._connection is None:
            raise Disconnected("not connected")
        self._correlation_id += 1
        future: asyncio.Future[memoryview] = asyncio.get_running_loop().create_future()
        is_flexible = version >= response.FLEXIBLE_FROM and request.API_KEY != _API_VERSIONS
        self._waiting.append((self._correlation_id, is_flexible, future))
        self._connection.write([self.frame(request, version)])
        body = await future
        message, end = decode(response, version, body)
        assert end == len(body), f"{len(body) - end} bytes follow the {response.__name__}"
        return message

    def send(self, request: Message, version: int | None = None) -> None:
        """Send a request that has no answer (acks=0)."""
        self._correlation_id += 1
        self.send_bytes(self.frame(request, request.MAX_VERSION if version is None else version))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def abort(self) -> None:
        if self._connection is not None:
            self._connection.abort()

    async def closed(self) -> None:
        """Until the connection has ended, by whomever."""
        if self._lost is not None:
            await self._lost

    # What workloads do

    async def create_topic(
        self, name: str, partitions: int, configs: Mapping[str, str] | None = None
    ) -> CreatableTopicResult:
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
        )
        result = (await self.call(CreateTopicsRequest(topics=[topic]), CreateTopicsResponse)).topics[0]
        self.topic_ids[name] = result.topic_id
        return result

    async def init_producer_id(self) -> InitProducerIdResponse:
        return await self.call(InitProducerIdRequest(transactional_id=None), InitProducerIdResponse)

    async def produce(
        self, topic: str, partition: int, batch: Buffer, *, acks: int, version: int | None = None
    ) -> PartitionProduceResponse:
        answer = await self.call(self.produce_request(topic, partition, batch, acks=acks), ProduceResponse, version)
        return answer.responses[0].partition_responses[0]

    def produce_request(self, topic: str, partition: int, batch: Buffer, *, acks: int) -> ProduceRequest:
        data = TopicProduceData(
            name=topic,
            topic_id=self.topic_ids.get(topic, ZERO_UUID),
            partition_data=[PartitionProduceData(index=partition, records=batch)],
        )
        return ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[data])

    async def fetch(
        self,
        topic: str,
        partition: int,
        offset: int,
        *,
        wait_ms: int = 0,
        bytes_max: int = 1 << 20,
        version: int | None = None,
    ) -> PartitionData:
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=bytes_max,
            topics=[
                FetchTopic(
                    topic=topic,
                    topic_id=self.topic_ids.get(topic, ZERO_UUID),
                    partitions=[
                        FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=bytes_max)
                    ],
                )
            ],
        )
        answer = await self.call(request, FetchResponse, version)
        assert answer.error_code == 0, answer.error_code
        if not answer.responses:
            return PartitionData(partition_index=partition, high_watermark=-1)
        return answer.responses[0].partitions[0]

    async def list_offsets(
        self, topic: str, partition: int, timestamp: int, *, version: int | None = None
    ) -> ListOffsetsPartitionResponse:
        asked = ListOffsetsTopic(
            name=topic, partitions=[ListOffsetsPartition(partition_index=partition, timestamp=timestamp)]
        )
        answer = await self.call(ListOffsetsRequest(replica_id=-1, topics=[asked]), ListOffsetsResponse, version)
        return answer.topics[0].partitions[0]


def records_of(data: Buffer | None, from_offset: int) -> Sequence[Record]:
    """The records of fetched bytes, from an offset on: a fetch gives whole batches, whose first records may lie before it."""
    found: list[Record] = []
    if data is not None:
        for position, header in iterate_batches(data):
            found += decode_records(memoryview(data)[position : position + header.size])
    return [record for record in found if record.offset >= from_offset]
