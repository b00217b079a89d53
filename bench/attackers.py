"""Attacks on a node: connections that are slow, idle, numerous or never read, mutated requests, decompression bombs,
and other requests that cost memory.

Each attack takes a second at most; several run at a time. Responses, errors and closed connections are all acceptable:
failures are detected by the load beside it (see `attack`).
"""

import contextlib
import random
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from bench.frames import batch_of, frame, produce, string
from ottla.server.dispatch import served_apis
from ottla.wire.batches import RECORDS_AT, Record, build_batch, write_checksum
from ottla.wire.compression import compress
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.wire.schema import Message, decode, encode
from tests.fuzz.mutations import Requests, messages, mutate

MB = 1 << 20
THREADS = 4
PAUSE_SECONDS_MAX = 0.06
HELD_SECONDS = 0.5
RESPONSE_SECONDS_MAX = 5.0
MUTATED_TOPIC = "mutated"
BAD_NAMES = ("..", ".", "a/b", "../../x", "a\0b", "", "x" * 250, "x" * 30_000, "é", "__cluster_metadata", "-" * 249)


@dataclass(slots=True)
class AttackTarget:
    """The attacked node, and the inputs of the attacks."""

    port: int
    topic: str
    topic_id: bytes
    source: random.Random
    bombs: list[bytes]
    counts: Counter[str] = field(default_factory=Counter)

    def connect(self, *, receive_buffer: int | None = None) -> socket.socket:
        connection = socket.socket()
        if receive_buffer is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.settimeout(RESPONSE_SECONDS_MAX)
        connection.connect(("127.0.0.1", self.port))
        return connection

    def send(self, *requests: bytes) -> None:
        """Send requests one after another, and wait for each response or the end of the connection."""
        with self.connect() as connection:
            for request in requests:
                connection.sendall(request)
                if not receive_one(connection):
                    return

    def name(self) -> str:
        return f"attack-{self.source.getrandbits(40):x}"


def receive_one(connection: socket.socket) -> bytes:
    """Receive one response without its size; empty if the connection has ended."""
    size: int = struct.unpack(">i", receive(connection, 4) or bytes(4))[0]
    return receive(connection, size)


def receive(connection: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(min(size - len(parts), MB))
        if not part:
            return b""
        parts += part
    return bytes(parts)


def request(message: Message, version: int) -> bytes:
    cls = type(message)
    return frame(cls.API_KEY, version, encode(message, version), flexible=version >= cls.FLEXIBLE_FROM)


# Connections


def slow_writer(target: AttackTarget) -> None:
    data = produce(target.topic_id, batch_of([target.source.randbytes(200)]))
    with target.connect() as connection:
        for start in range(0, len(data), 20):
            connection.sendall(data[start : start + 20])
            time.sleep(0.02)
            if target.source.random() < 0.05:
                return


def slow_reader(target: AttackTarget) -> None:
    """Send requests without reading the responses."""
    data = target.source.choice((request(MetadataRequest(topics=None), 12), fetch_of(target, range(100))))
    with target.connect(receive_buffer=4096) as connection:
        connection.settimeout(HELD_SECONDS)
        with contextlib.suppress(TimeoutError):
            for _ in range(500):
                connection.sendall(data * 20)


def half_open(target: AttackTarget) -> None:
    """Announce large requests, and send at most their start."""
    held = [target.connect() for _ in range(20)]
    for connection in held:
        size = target.source.choice((100 * MB, 5 * MB, 70_000, 100 * MB - 1))
        connection.sendall(
            struct.pack(">ihhi", size, target.source.choice((0, 1, 3)), 9, 1)
            + bytes(target.source.choice((0, 100, 60_000)))
        )
    time.sleep(HELD_SECONDS)
    close(held, reset=target.source.random() < 0.5)


def flood_of_connections(target: AttackTarget) -> None:
    held = []
    for number in range(150):
        held.append(target.connect())
        held[-1].sendall((b"", b"\0\0", struct.pack(">ihh", 50, 18, 0))[number % 3])
    close(held, reset=target.source.random() < 0.5)


def close(connections: Iterable[socket.socket], *, reset: bool) -> None:
    for connection in connections:
        if reset:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()


# Bytes


def spoilt_requests(target: AttackTarget) -> None:
    """Send mutated requests of all APIs, for a topic that they may delete."""
    apis, served = served_apis(), messages("Request")
    target.send(create_topics_request([MUTATED_TOPIC], 2))
    with target.connect() as connection:
        connection.sendall(request(MetadataRequest(topics=[MetadataRequestTopic(name=MUTATED_TOPIC)]), 12))
        response, _ = decode(MetadataResponse, 12, receive_one(connection), 5)
    requests = Requests(target.source, [(MUTATED_TOPIC, response.topics[0].topic_id)])
    for _ in range(10):
        stream = b""
        for number in range(target.source.randint(1, 4)):
            key = target.source.choice([key for key in served if key in apis])
            version = target.source.randint(apis[key].min_version, apis[key].max_version)
            stream += mutate(requests.request(served[key], version, number), target.source)
        with target.connect() as connection:
            connection.settimeout(0.02)
            connection.sendall(stream)
            with contextlib.suppress(TimeoutError):
                while connection.recv(MB):
                    continue


def counts_without_items(target: AttackTarget) -> None:
    """Send short requests with huge lengths of arrays, strings and tags."""
    for count in (b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff\x07", b"\x80\x80\x80\x80\x80\x80"):
        for key, version in ((3, 12), (3, 1), (19, 7), (2, 6), (1, 12), (0, 9), (32, 4)):
            is_flexible = version >= served_apis()[key].flexible_from
            with contextlib.suppress(OSError):
                target.send(frame(key, version, count * 3 + bytes(20), flexible=is_flexible))


def many_tags(target: AttackTarget) -> None:
    tags = b"\xff\xff\x3f" + b"\x05\0" * 100_000
    target.send(frame(3, 12, b"\1\0\0" + tags, flexible=True))
    message = struct.pack(">hhi", 18, 3, 1) + string("x") + tags
    target.send(struct.pack(">i", len(message)) + message)


def create_topics_request(names: Iterable[str], partitions: int) -> bytes:
    topics = [CreatableTopic(name=name, num_partitions=partitions, replication_factor=1) for name in names]
    return request(CreateTopicsRequest(topics=topics, timeout_ms=5000), 7)


def bad_names(target: AttackTarget) -> None:
    topics = [MetadataRequestTopic(name=name) for name in BAD_NAMES]
    target.send(
        create_topics_request(BAD_NAMES, 1), request(MetadataRequest(topics=topics, allow_auto_topic_creation=True), 12)
    )


# Size


def large_messages(target: AttackTarget) -> None:
    count = target.source.choice((5_000, 40_000, 60_000))
    names = [MetadataRequestTopic(name=f"n{number}") for number in range(count)]
    offsets = ListOffsetsTopic(
        name=target.topic, partitions=[ListOffsetsPartition(partition_index=index) for index in range(count)]
    )
    configs = [
        DescribeConfigsResource(resource_type=2, resource_name=f"n{number}", configuration_keys=None)
        for number in range(count)
    ]
    target.send(
        target.source.choice(
            (
                request(MetadataRequest(topics=names, allow_auto_topic_creation=False), 12),
                request(ListOffsetsRequest(replica_id=-1, topics=[offsets]), 6),
                request(DescribeConfigsRequest(resources=configs), 4),
                request(DescribeConfigsRequest(resources=[DescribeConfigsResource(4, "0", None)] * 300), 4),
            )
        )
    )


def many_partitions(target: AttackTarget) -> None:
    target.send(fetch_of(target, range(target.source.choice((3_000, 20_000, 60_000)))))
    parts = b"".join(struct.pack(">i", index) + b"\1" + b"\0" for index in range(5_000))
    body = b"\0" + struct.pack(">hi", 1, 1000) + b"\2" + target.topic_id + b"\x89\x27" + parts + b"\0\0"
    target.send(frame(0, 13, body, flexible=True))


def bombs(target: AttackTarget) -> None:
    """Produce decompression bombs: kilobytes that become megabytes, or batches with up to five million records."""
    for bomb in target.source.sample(target.bombs, 2):
        target.send(produce(target.topic_id, bomb))
    search = ListOffsetsPartition(partition_index=0, timestamp=int(time.time() * 1000))
    target.send(
        request(ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=target.topic, partitions=[search])]), 6)
    )


def make_bombs() -> list[bytes]:
    now_ms = int(time.time() * 1000)
    payloads = [
        bytes(build_batch([Record(timestamp=now_ms, value=bytes(size))], codec=codec))
        for codec in (1, 2, 3, 4)
        for size in (200_000, 3 * MB, 20 * MB, 140 * MB)
    ]
    payloads += [
        tiny_records(count, codec, now_ms + late_ms)
        for count in (50_000, 500_000, 5_000_000)
        for codec in (1, 4)
        for late_ms in (0, 10**10)
    ]
    return [bomb for bomb in payloads if len(bomb) < MB]


def tiny_records(count: int, codec: int, timestamp: int) -> bytes:
    batch = build_batch([Record(timestamp=timestamp)], codec=codec)[:RECORDS_AT] + compress(
        codec, b"\x0c\0\0\0\1\1\0" * count
    )
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">i", batch, 23, count - 1)
    struct.pack_into(">i", batch, 57, count)
    write_checksum(batch)
    return bytes(batch)


# State


def producer_ids(target: AttackTarget) -> None:
    """Produce one record each with many producer ids."""
    target.send(*([request(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 4)] * 20))
    now_ms = int(time.time() * 1000)
    target.send(
        *(
            produce(
                target.topic_id,
                bytes(
                    build_batch(
                        [Record(timestamp=now_ms, value=b"x")],
                        producer_id=target.source.getrandbits(40),
                        producer_epoch=0,
                        base_sequence=0,
                    )
                ),
            )
            for _ in range(100)
        )
    )


def fetch_of(target: AttackTarget, indexes: Iterable[int], *, session_epoch: int = -1) -> bytes:
    partitions = [FetchPartition(partition=index, partition_max_bytes=1000) for index in indexes]
    topics = [FetchTopic(topic=target.topic, partitions=partitions)]
    return request(
        FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=MB, session_epoch=session_epoch, topics=topics), 12
    )


def fetch_sessions(target: AttackTarget) -> None:
    for _ in range(30):
        target.send(fetch_of(target, range(target.source.choice((1, 100, 1500))), session_epoch=0))


def topics_by_asking(target: AttackTarget) -> None:
    topics = [MetadataRequestTopic(name=target.name()) for _ in range(50)]
    target.send(request(MetadataRequest(topics=topics, allow_auto_topic_creation=True), 12))


def topics_that_come_and_go(target: AttackTarget) -> None:
    names = [target.name() for _ in range(3)]
    deletions = [DeleteTopicState(name=name) for name in names]
    target.send(
        create_topics_request(names, 4),
        request(MetadataRequest(topics=None), 12),
        request(DeleteTopicsRequest(topics=deletions, timeout_ms=5000), 6),
    )


# Their names are keys in bench/results/attack.json.
ATTACKS: tuple[Callable[[AttackTarget], None], ...] = (
    slow_writer, slow_reader, half_open, flood_of_connections, spoilt_requests, counts_without_items, many_tags,
    bad_names, large_messages, many_partitions, bombs, producer_ids, fetch_sessions, topics_by_asking,
    topics_that_come_and_go,
)  # fmt: skip


def run_one(target: AttackTarget, attack: Callable[[AttackTarget], None]) -> None:
    with contextlib.suppress(OSError):  # the node may close any connection
        attack(target)
    target.counts[attack.__name__] += 1


def attack_once_each(port: int, topic: str, topic_id: bytes, seed: int) -> dict[str, float]:
    """Run each attack once, so that the node loads its modules. Return the seconds that each took."""
    target = AttackTarget(port, topic, topic_id, random.Random(seed), make_bombs())
    durations = {}
    for attack in ATTACKS:
        started = time.monotonic()
        run_one(target, attack)
        durations[attack.__name__] = time.monotonic() - started
    return durations


def attack_for(port: int, topic: str, topic_id: bytes, seed: int, seconds: float) -> dict[str, int]:
    """Run several attacks at a time, in random order, with pauses. Return the number of each."""
    payloads = make_bombs()
    end = time.monotonic() + seconds
    targets = [
        AttackTarget(port, topic, topic_id, random.Random(f"{seed} {number}"), payloads) for number in range(THREADS)
    ]

    def run(target: AttackTarget) -> None:
        while time.monotonic() < end:
            run_one(target, target.source.choice(ATTACKS))
            time.sleep(target.source.uniform(0, PAUSE_SECONDS_MAX))

    threads = [threading.Thread(target=run, args=(target,)) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    total: Counter[str] = Counter()
    for target in targets:
        total += target.counts
    return dict(sorted(total.items()))
