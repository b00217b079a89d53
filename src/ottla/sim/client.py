"""A minimal client for simulation scenarios: one connection, pipelined requests, any API version per call."""

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
    """The connection was lost before the response arrived."""


class SimulatedClient:
    """A client of one broker. `topic_ids` has the topics that this client created; callers may add others."""

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
        """Connect. Raises OSError if nothing listens on the port."""
        self._lost = asyncio.get_running_loop().create_future()
        await self._network.connect(self._host, self._port, self)

    # Receiver callbacks

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
        """Scenarios wait for responses, which bounds what is written."""

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
        assert correlation_id == expected, f"response {correlation_id}, expected {expected}"
        position = skip_tags(buffer, start + 4, end) if is_flexible else start + 4
        if not future.done():
            future.set_result(memoryview(bytes(view[position:end])))
        return True

    # Requests

    def send_bytes(self, data: Buffer) -> None:
        """Send raw bytes, for malformed requests. No response is expected."""
        if self._connection is not None:
            self._connection.write([data])

    def frame(self, request: Message, version: int) -> bytes:
        """Return the complete frame of a request, as `call` sends it."""
        flexible = version >= request.FLEXIBLE_FROM
        body = encode(request, version)
        head = _header(request.API_KEY, version, self._correlation_id) + _size(len(self._client_id)) + self._client_id
        if flexible:
            head += b"\0"
        return (len(head) + len(body)).to_bytes(4, "big") + head + body

    async def call(self, request: Message, response: type[R], version: int | None = None) -> R:
        """Send a request and wait for its response. Raises `Disconnected` if none arrives."""
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
        assert end == len(body), f"{len(body) - end} bytes after the {response.__name__}"
        return message

    def send(self, request: Message, version: int | None = None) -> None:
        """Send a request without a response (acks=0)."""
        self._correlation_id += 1
        self.send_bytes(self.frame(request, request.MAX_VERSION if version is None else version))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def abort(self) -> None:
        if self._connection is not None:
            self._connection.abort()

    async def wait_closed(self) -> None:
        """Wait until the connection is closed, by either side."""
        if self._lost is not None:
            await self._lost

    # Calls of scenarios

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
        response = await self.call(self.produce_request(topic, partition, batch, acks=acks), ProduceResponse, version)
        return response.responses[0].partition_responses[0]

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
        response = await self.call(request, FetchResponse, version)
        assert response.error_code == 0, response.error_code
        if not response.responses:
            return PartitionData(partition_index=partition, high_watermark=-1)
        return response.responses[0].partitions[0]

    async def list_offsets(
        self, topic: str, partition: int, timestamp: int, *, version: int | None = None
    ) -> ListOffsetsPartitionResponse:
        requested = ListOffsetsTopic(
            name=topic, partitions=[ListOffsetsPartition(partition_index=partition, timestamp=timestamp)]
        )
        response = await self.call(ListOffsetsRequest(replica_id=-1, topics=[requested]), ListOffsetsResponse, version)
        return response.topics[0].partitions[0]


def records_of(data: Buffer | None, from_offset: int) -> Sequence[Record]:
    """Return the records from an offset on.

    A fetch returns complete batches, so the first may start before the offset.
    """
    found: list[Record] = []
    if data is not None:
        for position, header in iterate_batches(data):
            found += decode_records(memoryview(data)[position : position + header.size])
    return [record for record in found if record.offset >= from_offset]
