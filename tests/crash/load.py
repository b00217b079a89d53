"""Producers that record what was acknowledged, and the check of a log against these ledgers."""

import random
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from ottla.wire.batches import Record, build_batch, decode_records, iterate_batches
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.compat.raw import ConnectionClosed, RawConnection, ResponseTimeout

Address = tuple[str, int]
PRODUCE_VERSION, FETCH_VERSION = 11, 12
IN_FLIGHT_MAX = 5
READY_SECONDS_MAX = 30.0
RETRIABLE = frozenset({3, 6, 7})
"""Unknown topic, not leader, timed out: possible errors after a broker start."""
START_MS = int(time.time() * 1000)
"""Current time: on a restart, Apache Kafka expires producers by producer.id.expiration.ms and record timestamps."""


def value_of(sender: int, number: int) -> bytes:
    """Return the sender's value with this number: both names, and bytes derived from them."""
    chosen = random.Random(sender * 1_000_003 + number)
    return b"%d:%d:" % (sender, number) + chosen.randbytes(chosen.choice([5, 200, 2000, 9000]))


def name_in(value: bytes) -> tuple[int, int]:
    sender, number, _ = value.split(b":", 2)
    return int(sender), int(number)


@dataclass
class Ledger:
    """Acknowledged records of one partition by offset, and records sent without a response."""

    acked: dict[int, tuple[int, int]] = field(default_factory=dict)
    unknown: dict[tuple[int, int], None] = field(default_factory=dict)
    seen: dict[tuple[int, int], int] = field(default_factory=dict)
    checked_to: int = 0


@dataclass
class InFlightBatch:
    partition: int
    sequence: int
    numbers: range


class Sender:
    """A producer with one connection and several requests in flight. Call `start` again after each broker start."""

    def __init__(
        self, name: int, topic: str, ledgers: dict[int, Ledger], lock: threading.Lock, *, acks: int, idempotent: bool
    ) -> None:
        self.name = name
        self.acked_batches = 0
        self.failure: BaseException | None = None
        self._topic = topic
        self._ledgers = ledgers
        self._lock = lock
        self._acks = acks
        self._idempotent = idempotent
        self._producer_id = -1
        self._random = random.Random(name)
        self._next_number = 0
        self._next_sequence = dict.fromkeys(ledgers, 0)
        self._in_flight: deque[InFlightBatch] = deque()
        self._to_retry: deque[InFlightBatch] = deque()
        """Batches of an idempotent producer without a response, to be sent again after a reconnect."""
        self._thread: threading.Thread | None = None

    def start(self, address: Address, stop: threading.Event) -> None:
        self._thread = threading.Thread(target=self._run, args=(address, stop), daemon=True)
        self._thread.start()

    def join(self) -> None:
        assert self._thread is not None
        self._thread.join(30)
        assert not self._thread.is_alive()
        if self.failure is not None:
            raise self.failure

    def _run(self, address: Address, stop: threading.Event) -> None:
        try:
            with RawConnection(address) as connection:
                self._exchange(connection, stop)
        except (ConnectionClosed, ResponseTimeout, ConnectionError):
            if not self._idempotent:  # their outcome stays unknown: they are not retried
                self._in_flight.clear()
        except BaseException as error:
            self.failure = error

    def _exchange(self, connection: RawConnection, stop: threading.Event) -> None:
        if self._idempotent and self._producer_id < 0:
            self._producer_id = new_producer_id(connection)
        retries = self._to_retry
        retries.extendleft(reversed(self._in_flight))  # before those that the last connection did not get to
        self._in_flight.clear()
        while retries or not stop.is_set() or self._in_flight:
            if retries or (not stop.is_set() and len(self._in_flight) < IN_FLIGHT_MAX):
                batch_sent = retries.popleft() if retries else self._choose()
                self._in_flight.append(batch_sent)
                connection.send(self._request(batch_sent), PRODUCE_VERSION)
                if len(self._in_flight) < IN_FLIGHT_MAX and not stop.is_set():
                    continue
            while self._in_flight and (len(self._in_flight) >= IN_FLIGHT_MAX or stop.is_set() or retries):
                response = connection.receive(ProduceRequest, PRODUCE_VERSION).responses[0].partition_responses[0]
                if response.error_code in RETRIABLE:
                    raise ConnectionClosed  # retried after the next start
                assert response.error_code == 0, (self.name, self._in_flight[0], response)
                self._record(self._in_flight.popleft(), response.base_offset)

    def _choose(self) -> InFlightBatch:
        partition = self._random.choice(list(self._ledgers))
        count = self._random.choice([1, 1, 2, 5])
        batch_sent = InFlightBatch(
            partition, self._next_sequence[partition], range(self._next_number, self._next_number + count)
        )
        self._next_number += count
        self._next_sequence[partition] += count
        with self._lock:
            for number in batch_sent.numbers:
                self._ledgers[partition].unknown[self.name, number] = None
        return batch_sent

    def _request(self, batch_sent: InFlightBatch) -> ProduceRequest:
        records = [
            Record(0, START_MS + number, b"%d" % number, value_of(self.name, number)) for number in batch_sent.numbers
        ]
        producer_fields = (
            {"producer_id": self._producer_id, "producer_epoch": 0, "base_sequence": batch_sent.sequence}
            if self._idempotent
            else {}
        )
        batch = build_batch(records, codec=self.name % 5, **producer_fields)
        data = [PartitionProduceData(index=batch_sent.partition, records=bytes(batch))]
        return ProduceRequest(
            acks=self._acks, timeout_ms=10_000, topic_data=[TopicProduceData(name=self._topic, partition_data=data)]
        )

    def _record(self, batch_sent: InFlightBatch, base_offset: int) -> None:
        with self._lock:
            ledger = self._ledgers[batch_sent.partition]
            for delta, number in enumerate(batch_sent.numbers):
                ledger.unknown.pop((self.name, number), None)
                known = ledger.acked.setdefault(base_offset + delta, (self.name, number))
                assert known == (self.name, number), (
                    f"offset {base_offset + delta} was assigned to {known} and to {(self.name, number)}"
                )
        self.acked_batches += 1


def new_producer_id(connection: RawConnection) -> int:
    """Get a producer id, with retries after a broker start. An id of -1 would silently disable idempotence."""
    deadline = time.monotonic() + READY_SECONDS_MAX
    while True:
        response = connection.call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 4)
        if response.error_code == 0:
            assert response.producer_id >= 0, response
            return int(response.producer_id)
        assert time.monotonic() < deadline, response
        time.sleep(0.01)


def end_offset(connection: RawConnection, topic: str, partition: int) -> int:
    topic_request = ListOffsetsTopic(
        name=topic, partitions=[ListOffsetsPartition(partition_index=partition, timestamp=-1)]
    )
    response = connection.call(ListOffsetsRequest(replica_id=-1, topics=[topic_request]), 7).topics[0].partitions[0]
    assert response.error_code == 0, response
    return int(response.offset)


def read(connection: RawConnection, topic: str, partition: int, offset: int, end: int) -> Iterator[Record]:
    """Yield the records from an offset up to the end, and check that there is no gap."""
    while offset < end:
        fetch_partition = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=100, min_bytes=1, topics=[FetchTopic(topic=topic, partitions=[fetch_partition])]
        )
        response = connection.call(request, FETCH_VERSION).responses[0].partitions[0]
        assert response.error_code == 0, response
        data = bytes(response.records)
        before = offset
        for position, header in iterate_batches(data):
            for record in decode_records(data[position : position + header.size]):
                if record.offset >= offset:
                    assert record.offset == offset, f"a gap between {offset} and {record.offset}"
                    offset += 1
                    yield record
        assert offset > before, f"no record at offset {before}, although the log end offset is {end}"


def check(address: Address, topic: str, ledgers: dict[int, Ledger], *, from_start: bool = False) -> None:
    """Every acknowledged record is at its offset with its value; no record is duplicated or unknown."""
    with RawConnection(address) as connection:
        for partition, ledger in ledgers.items():
            end = end_offset(connection, topic, partition)
            if from_start:
                ledger.seen.clear()
                ledger.checked_to = 0
            assert end > max(ledger.acked, default=-1), (
                f"partition {partition} ends at {end}, before acknowledged records"
            )
            for record in read(connection, topic, partition, ledger.checked_to, end):
                assert record.value is not None
                name = name_in(record.value)
                assert record.value == value_of(*name), f"partition {partition} offset {record.offset} was changed"
                assert ledger.acked.get(record.offset, name) == name, (
                    partition,
                    record.offset,
                    ledger.acked[record.offset],
                    name,
                )
                is_known = name in ledger.unknown or record.offset in ledger.acked
                assert is_known, (
                    f"{name} is at {record.offset} of partition {partition}, and was acknowledged elsewhere"
                )
                assert name not in ledger.seen, (
                    f"{name} is at {ledger.seen[name]} and at {record.offset} of partition {partition}"
                )
                ledger.seen[name] = record.offset
            ledger.checked_to = end
