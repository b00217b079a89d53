"""An accumulator and a sender with simulated time and metadata, for producer tests."""

from contextlib import nullcontext

from ottla.client.accumulator import RecordAccumulator
from ottla.client.backoff import Backoff
from ottla.client.cluster_metadata import ClusterMetadata
from ottla.client.producer_config import producer_settings
from ottla.client.send_future import SendFuture
from ottla.client.sender import Sender
from ottla.wire.batches import decode_records, read_header
from ottla.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

TOPIC_ID = b"t" * 16


class FixedClock:
    def now_ms(self):
        return 1_700_000_000_000


class FirstRng:
    """Always chooses the first."""

    def below(self, limit):
        return 0

    def random_bytes(self, size):
        return bytes(size)


class ProducerHarness:
    """Time moves only when a test sets `now_ms`. The partitions of topic `t` have leaders 1, 2, 1, 2 and so on."""

    def __init__(self, partitions=1, **configs):
        self.now_ms = 0.0
        self.wakes = 0
        self.settings = producer_settings({"bootstrap.servers": "a:1"}, {"retry_backoff_ms": 0, **configs})
        self.cluster = ClusterMetadata()
        self.cluster.update(metadata(partitions))
        self.accumulator = RecordAccumulator(
            self.settings, FixedClock(), FirstRng(), nullcontext(), lambda: self.now_ms, self._wake, SendFuture
        )
        self.accumulator.update_topic(self.cluster.topic("t"))
        backoff = Backoff(FirstRng(), self.settings.config["retry.backoff.ms"], 1000)
        self.sender = Sender(self.settings, self.accumulator, self.cluster, backoff)
        if self.settings.is_idempotent:
            self.sender.identity = (7, 0)

    def _wake(self):
        self.wakes += 1

    def send(self, value=b"v", key=None, partition=None, timestamp=None, headers=None):
        return self.accumulator.try_send("t", value, key, partition, timestamp, headers)

    def send_batch(self, *values, partition=0):
        """Send records in one batch."""
        futures = [self.send(value, partition=partition) for value in values]
        self.accumulator.routes["t"].queues[partition].open = None
        return futures

    def poll(self, can_send=lambda node: True):
        """Return all requests that can be sent now, with sealed batches."""
        found = []
        while ready := self.sender.poll(self.now_ms, can_send):
            for pending in ready:
                for _, batch in pending.batches:
                    batch.seal()
                self.sender.on_sent(pending)
            found += ready
        return found

    def respond(self, pending, code=0, base_offset=0, message=None, record_errors=None):
        """Give all partitions of a request the same result."""
        self.sender.on_response(pending)
        for queue, batch in pending.batches:
            self.sender.on_partition_response(
                queue, batch, code, message, base_offset, -1, record_errors or {}, self.now_ms
            )


def metadata(partitions, *, leader=None):
    brokers = [MetadataResponseBroker(1, "a", 1), MetadataResponseBroker(2, "b", 2)]
    parts = [
        MetadataResponsePartition(0, index, leader if leader is not None else 1 + index % 2, 0, [1], [1])
        for index in range(partitions)
    ]
    return MetadataResponse(
        brokers=brokers, cluster_id="c", controller_id=1, topics=[MetadataResponseTopic(0, "t", TOPIC_ID, False, parts)]
    )


def sequences(ready):
    """Return epoch, first sequence and values of each batch, in send order."""
    shown = []
    for pending in ready:
        for _, batch in pending.batches:
            header = read_header(batch.buffer)
            shown.append(
                (header.producer_epoch, header.base_sequence, [record.value for record in decode_records(batch.buffer)])
            )
    return shown
