"""Producers that keep book of what was acknowledged, and the check of a log against their books."""

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
from tests.compat.raw import Closed, RawConnection, Silent

Address = tuple[str, int]
PRODUCE_VERSION, FETCH_VERSION = 11, 12
IN_FLIGHT_MAX = 5
READY_SECONDS_MAX = 30.0
RETRIABLE = frozenset({3, 6, 7})
"""Unknown topic, not leader, timed out: what a broker that has just started may say."""
START_MS = int(time.time() * 1000)
"""Of today: Apache Kafka forgot, at a restart, producers whose records said 2023, and remembered those whose records said now
(producer.id.expiration.ms counts by the records' timestamps)."""


def value_of(sender: int, number: int) -> bytes:
    """The value that this sender sends as its so-manieth: its name, and bytes that follow from it."""
    chosen = random.Random(sender * 1_000_003 + number)
    return b"%d:%d:" % (sender, number) + chosen.randbytes(chosen.choice([5, 200, 2000, 9000]))


def name_in(value: bytes) -> tuple[int, int]:
    sender, number, _ = value.split(b":", 2)
    return int(sender), int(number)


@dataclass
class Book:
    """Of one partition: what is acknowledged at which offset, and what was sent and never answered."""

    acked: dict[int, tuple[int, int]] = field(default_factory=dict)
    unknown: dict[tuple[int, int], None] = field(default_factory=dict)
    seen: dict[tuple[int, int], int] = field(default_factory=dict)
    checked_to: int = 0


@dataclass
class Sending:
    partition: int
    sequence: int
    numbers: range


class Sender:
    """One producer on one connection, with several requests in flight. It outlives the broker: `run` again after each start."""

    def __init__(
        self, name: int, topic: str, books: dict[int, Book], lock: threading.Lock, *, acks: int, idempotent: bool
    ) -> None:
        self.name = name
        self.acked_batches = 0
        self.failure: BaseException | None = None
        self._topic = topic
        self._books = books
        self._lock = lock
        self._acks = acks
        self._idempotent = idempotent
        self._producer_id = -1
        self._random = random.Random(name)
        self._next_number = 0
        self._next_sequence = dict.fromkeys(books, 0)
        self._waiting: deque[Sending] = deque()
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
                self._talk(connection, stop)
        except (Closed, Silent, ConnectionError):
            if not self._idempotent:  # nobody will ever know: they are not sent again
                self._give_up_waiting()
        except BaseException as error:
            self.failure = error

    def _talk(self, connection: RawConnection, stop: threading.Event) -> None:
        if self._idempotent and self._producer_id < 0:
            self._producer_id = new_producer_id(connection)
        again, self._waiting = self._waiting, deque()
        while again or not stop.is_set() or self._waiting:
            if again or (not stop.is_set() and len(self._waiting) < IN_FLIGHT_MAX):
                sending = again.popleft() if again else self._choose()
                self._waiting.append(sending)
                connection.send(self._request(sending), PRODUCE_VERSION)
                if len(self._waiting) < IN_FLIGHT_MAX and not stop.is_set():
                    continue
            while self._waiting and (len(self._waiting) >= IN_FLIGHT_MAX or stop.is_set() or again):
                answer = connection.receive(ProduceRequest, PRODUCE_VERSION).responses[0].partition_responses[0]
                if answer.error_code in RETRIABLE:
                    raise Closed  # the next start tries again
                assert answer.error_code == 0, (self.name, self._waiting[0], answer)
                self._note(self._waiting.popleft(), answer.base_offset)

    def _choose(self) -> Sending:
        partition = self._random.choice(list(self._books))
        count = self._random.choice([1, 1, 2, 5])
        sending = Sending(
            partition, self._next_sequence[partition], range(self._next_number, self._next_number + count)
        )
        self._next_number += count
        self._next_sequence[partition] += count
        with self._lock:
            for number in sending.numbers:
                self._books[partition].unknown[self.name, number] = None
        return sending

    def _request(self, sending: Sending) -> ProduceRequest:
        records = [
            Record(0, START_MS + number, b"%d" % number, value_of(self.name, number)) for number in sending.numbers
        ]
        marks = (
            {"producer_id": self._producer_id, "producer_epoch": 0, "base_sequence": sending.sequence}
            if self._idempotent
            else {}
        )
        batch = build_batch(records, codec=self.name % 5, **marks)
        data = [PartitionProduceData(index=sending.partition, records=bytes(batch))]
        return ProduceRequest(
            acks=self._acks, timeout_ms=10_000, topic_data=[TopicProduceData(name=self._topic, partition_data=data)]
        )

    def _note(self, sending: Sending, base_offset: int) -> None:
        with self._lock:
            book = self._books[sending.partition]
            for delta, number in enumerate(sending.numbers):
                book.unknown.pop((self.name, number), None)
                known = book.acked.setdefault(base_offset + delta, (self.name, number))
                assert known == (self.name, number), (
                    f"offset {base_offset + delta} was given to {known} and to {(self.name, number)}"
                )
        self.acked_batches += 1

    def _give_up_waiting(self) -> None:
        self._waiting.clear()


def new_producer_id(connection: RawConnection) -> int:
    """A broker that has just started may have no ids to give yet; an id of -1 would quietly make sends not idempotent."""
    deadline = time.monotonic() + READY_SECONDS_MAX
    while True:
        answer = connection.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 4)
        if answer.error_code == 0:
            assert answer.producer_id >= 0, answer
            return int(answer.producer_id)
        assert time.monotonic() < deadline, answer
        time.sleep(0.01)


def end_offset(connection: RawConnection, topic: str, partition: int) -> int:
    asked = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=partition, timestamp=-1)])
    answer = connection.ask(ListOffsetsRequest(replica_id=-1, topics=[asked]), 7).topics[0].partitions[0]
    assert answer.error_code == 0, answer
    return int(answer.offset)


def read(connection: RawConnection, topic: str, partition: int, offset: int, end: int) -> Iterator[Record]:
    """The records from an offset up to the end, each once, without a gap."""
    while offset < end:
        place = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = FetchRequest(max_wait_ms=100, min_bytes=1, topics=[FetchTopic(topic=topic, partitions=[place])])
        answer = connection.ask(request, FETCH_VERSION).responses[0].partitions[0]
        assert answer.error_code == 0, answer
        data = bytes(answer.records)
        before = offset
        for position, header in iterate_batches(data):
            for record in decode_records(data[position : position + header.size]):
                if record.offset >= offset:
                    assert record.offset == offset, f"a gap between {offset} and {record.offset}"
                    offset += 1
                    yield record
        assert offset > before, f"nothing at offset {before}, although the log ends at {end}"


def check(address: Address, topic: str, books: dict[int, Book], *, anew: bool = False) -> None:
    """Every acknowledged record is at its offset with its value; nothing is there twice, and nothing that nobody sent."""
    with RawConnection(address) as connection:
        for partition, book in books.items():
            end = end_offset(connection, topic, partition)
            if anew:
                book.seen.clear()
                book.checked_to = 0
            assert end > max(book.acked, default=-1), (
                f"partition {partition} ends at {end}, before what was acknowledged"
            )
            for record in read(connection, topic, partition, book.checked_to, end):
                assert record.value is not None
                name = name_in(record.value)
                assert record.value == value_of(*name), f"partition {partition} offset {record.offset} was changed"
                assert book.acked.get(record.offset, name) == name, (
                    partition,
                    record.offset,
                    book.acked[record.offset],
                    name,
                )
                is_known = name in book.unknown or record.offset in book.acked
                assert is_known, (
                    f"{name} is at {record.offset} of partition {partition}, and was acknowledged elsewhere"
                )
                assert name not in book.seen, (
                    f"{name} is at {book.seen[name]} and at {record.offset} of partition {partition}"
                )
                book.seen[name] = record.offset
            book.checked_to = end
