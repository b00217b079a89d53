"""Runs the Sender: connections, requests, timers, and compression of large requests in a worker."""

import asyncio
from collections import deque
from functools import partial
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.base.ids import ZERO_UUID, Uuid
from ottla.client.accumulator import RecordAccumulator
from ottla.client.batch import ProducerBatch
from ottla.client.cluster_client import ANY_NODE, ClusterClient
from ottla.client.cluster_metadata import ClusterMetadata, Node
from ottla.client.errors import ClientError, DisconnectedError, raise_for
from ottla.client.producer_config import ProducerSettings
from ottla.client.sender import OUTAGE_ATTEMPTS_MIN, PendingProduce, Sender
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData

INLINE_COMPRESSION_BYTES_MAX = 32 << 10
"""Larger requests are compressed by a worker."""
TOPIC_NAME_MAX_VERSION = 12
"""Later versions identify topics by id."""
PRODUCER_ID = "the producer id"
NO_TRANSACTION_TIMEOUT_MS = 2**31 - 1


class SenderDriver:
    """Belongs to the loop of its ClusterClient. Call `poll` only in that loop."""

    def __init__(self, core: ClusterClient, settings: ProducerSettings, accumulator: RecordAccumulator) -> None:
        self._core = core
        self._settings = settings
        self._accumulator = accumulator
        self.sender = Sender(settings, accumulator, core.cluster, core.retry_backoff)
        self.sender.outages = core.outages
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0.0
        self._connecting: dict[int, asyncio.Task[None]] = {}
        self._producer_id_task: asyncio.Task[None] | None = None
        self._outbox: dict[int, deque[tuple[PendingProduce, asyncio.Future[Any] | None]]] = {}
        self._is_stopped = False
        core.update_callbacks.append(self._on_cluster)

    def _on_cluster(self, cluster: ClusterMetadata) -> None:
        for name in list(self._accumulator.routes):
            info = cluster.topic(name)
            if info is None:
                self._accumulator.remove_topic(name)
            else:
                self._accumulator.update_topic(info)
        self.poll()

    def poll(self) -> None:
        """Send all batches that can be sent, and start what the others wait for."""
        if self._is_stopped:
            return
        sender = self.sender
        while True:
            ready = sender.poll(self._core.now_ms(), self._can_send)
            for pending in ready:
                self._prepare(pending)
            if not ready:
                break
        if sender.needs_metadata:
            sender.needs_metadata = False
            self._core.request_update()
        if sender.needs_identity and self._producer_id_task is None:
            sender.needs_identity = False
            self._producer_id_task = self._core.loop.create_task(self._init_producer_id())
        self._arm()

    def _arm(self) -> None:
        next_ms = self.sender.next_ms
        if next_ms is None:
            return
        if self._timer is not None:
            if self._timer_ms <= next_ms:
                return
            self._timer.cancel()
        self._timer_ms = next_ms
        self._timer = self._core.loop.call_at(next_ms / 1000, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self.poll()

    def _can_send(self, node: int) -> bool:
        connection = self._core.ready_connection(node)
        if connection is None:
            if node not in self._connecting:
                self._connecting[node] = self._core.loop.create_task(self._connect(node))
            return False
        if connection.throttled_until_ms > self._core.now_ms():
            self._core.loop.call_at(connection.throttled_until_ms / 1000, self.poll)
            return False
        if connection.is_write_paused and self._settings.acks == 0:
            connection.on_drained = self.poll  # without responses, the socket limits what is in flight
            return False
        return True

    async def _connect(self, node: int) -> None:
        try:
            await self._core.get_connection(node)
        except ClientError:
            self._core.request_update()  # the leader may have moved; batches wait until they expire
            await asyncio.sleep(self._core.retry_backoff.delay_ms(1) / 1000)
        finally:
            del self._connecting[node]
        self.poll()

    async def _init_producer_id(self) -> None:
        """Request a producer id, retrying without limit: batches wait for it until they expire."""
        tries = 0
        try:
            while True:
                try:
                    request = InitProducerIdRequest(
                        transactional_id=None, transaction_timeout_ms=NO_TRANSACTION_TIMEOUT_MS
                    )
                    response = await self._core.call(ANY_NODE, request, InitProducerIdResponse)
                    raise_for(response.error_code, about=PRODUCER_ID)
                    self.sender.identity = (response.producer_id, response.producer_epoch)
                    self._core.outages.end(PRODUCER_ID)
                    break
                except ClientError as error:
                    if not error.is_retriable:
                        self.sender.fail_all(error)
                        break
                    tries += 1
                    if tries >= OUTAGE_ATTEMPTS_MIN and error.code != ErrorCode.NETWORK_EXCEPTION:
                        self._core.outages.begin(PRODUCER_ID, error)
                    await asyncio.sleep(self._core.retry_backoff.delay_ms(tries) / 1000)
        finally:
            self._producer_id_task = None
        self.poll()

    # Requests

    def _prepare(self, pending: PendingProduce) -> None:
        """Compress the batches, then send.

        A broker's requests stay in order: later ones wait for a compression in a worker.
        """
        codec = self._settings.codec
        uncompressed = [batch for _, batch in pending.batches if not batch.codec] if codec else []
        outbox = self._outbox.setdefault(pending.node, deque())
        if sum(len(batch.buffer) for batch in uncompressed) > INLINE_COMPRESSION_BYTES_MAX:
            work = self._core.ports.workers.run(partial(self._compress, uncompressed))
            outbox.append((pending, work))
            work.add_done_callback(lambda done: self._flush(pending.node))
            return
        self._compress(uncompressed)
        if outbox:
            outbox.append((pending, None))
        else:
            self._send(pending)

    def _compress(self, batches: list[ProducerBatch]) -> None:
        for batch in batches:
            before = len(batch.buffer)
            batch.compress(self._settings.codec, self._settings.compression_level)
            self._accumulator.update_compression_ratio(batch.topic, before, len(batch.buffer))

    def _flush(self, node: int) -> None:
        outbox = self._outbox[node]
        while outbox and (outbox[0][1] is None or outbox[0][1].done()):
            pending, work = outbox.popleft()
            if work is not None:
                work.result()
            self._send(pending)

    def _send(self, pending: PendingProduce) -> None:
        for _, batch in pending.batches:
            if not batch.is_sealed and not batch.is_done:
                batch.seal()
        connection = self._core.ready_connection(pending.node)
        sender = self.sender
        if connection is None:
            sender.on_request_failed(pending, _connection_lost(pending.node), self._core.now_ms())
            self._core.loop.call_soon(self.poll)
            return
        request, names = self._request(pending)
        version_max = TOPIC_NAME_MAX_VERSION if ZERO_UUID in names else None
        try:
            if self._settings.acks == 0:
                connection.send_without_response(request, version_max=version_max)
                sender.on_sent(pending)
                sender.on_sent_without_acks(pending)
                self._core.loop.call_soon(self.poll)
                return
            future = connection.call(
                request, ProduceResponse, timeout_ms=self._settings.request_timeout_ms, version_max=version_max
            )
        except ClientError as error:
            sender.on_request_failed(pending, error, self._core.now_ms())
            self._core.loop.call_soon(self.poll)
            return
        sender.on_sent(pending)
        future.add_done_callback(partial(self._on_response, pending, names))

    def _request(self, pending: PendingProduce) -> tuple[ProduceRequest, dict[Uuid, str]]:
        """Return the request, and the topic names by id."""
        topics: dict[str, TopicProduceData] = {}
        names: dict[Uuid, str] = {}
        for queue, batch in pending.batches:
            if batch.is_done:
                continue  # expired while waiting for a worker
            topic = topics.get(queue.topic)
            if topic is None:
                info = self._core.cluster.topic(queue.topic)
                topic_id = ZERO_UUID if info is None else info.id
                names[topic_id] = queue.topic
                topic = topics[queue.topic] = TopicProduceData(name=queue.topic, topic_id=topic_id)
            topic.partition_data.append(PartitionProduceData(index=queue.partition, records=batch.buffer))
        timeout_ms = int(self._settings.request_timeout_ms)
        return ProduceRequest(acks=self._settings.acks, timeout_ms=timeout_ms, topic_data=list(topics.values())), names

    def _on_response(
        self, pending: PendingProduce, names: dict[Uuid, str], future: "asyncio.Future[ProduceResponse]"
    ) -> None:
        now_ms = self._core.now_ms()
        sender = self.sender
        error = future.exception()
        if error is not None:
            if not isinstance(error, ClientError):
                raise error
            sender.on_request_failed(pending, error, now_ms)
            self._core.request_update()
            self.poll()
            return
        response = future.result()
        nodes = [Node(node.node_id, node.host, node.port, node.rack) for node in response.node_endpoints]
        found = {
            (topic.name or names.get(topic.topic_id, ""), partition.index): partition
            for topic in response.responses
            for partition in topic.partition_responses
        }
        sender.on_response(pending)
        for queue, batch in pending.batches:
            result = found.get((queue.topic, queue.partition))
            if result is None:
                sender.on_partition_response(queue, batch, -1, "missing in the broker's response.", -1, -1, {}, now_ms)
                continue
            leader = result.current_leader
            if leader.leader_id >= 0 and result.error_code:
                self._core.cluster.set_leader(
                    queue.topic, queue.partition, leader.leader_id, leader.leader_epoch, nodes
                )
            bad = {each.batch_index: each.batch_index_error_message for each in result.record_errors}
            sender.on_partition_response(
                queue,
                batch,
                result.error_code,
                result.error_message,
                result.base_offset,
                result.log_append_time_ms,
                bad,
                now_ms,
            )
        self.poll()

    def stop(self) -> None:
        """Stop sending."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
        tasks = [*self._connecting.values()]
        if self._producer_id_task is not None:
            tasks.append(self._producer_id_task)
        for task in tasks:
            task.cancel()


def _connection_lost(node: int) -> ClientError:
    return DisconnectedError(f"The connection to broker {node} was lost.")
