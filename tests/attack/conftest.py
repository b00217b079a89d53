"""A broker process to attack, and a witness client that the attack must not affect."""

import re
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator

import pytest

from bench.peers import OttlaProcess, free_port, resident_bytes
from ottla.wire.batches import Record, build_batch, decode_records, iterate_batches
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.compat.raw import RawConnection

WITNESSED = "witnessed"
PAUSE_SECONDS = 0.002


class TargetBroker:
    """A broker process with its metrics."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.metrics_port = free_port()
        self.process = OttlaProcess(settings={"ottla.metrics.listener": f"127.0.0.1:{self.metrics_port}", **settings})
        self.process.start()
        host, _, port = self.process.bootstrap.rpartition(":")
        self.address = (host, int(port))

    def connect(self, *, receive_buffer: int | None = None) -> RawConnection:
        return RawConnection(self.address, receive_buffer=receive_buffer)

    def create_topic(self, name: str, partitions: int = 1) -> None:
        with self.connect() as connection:
            topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
            assert connection.call(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7).topics[0].error_code == 0

    def metrics(self) -> dict[str, float]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=10) as response:
            lines = response.read().decode().splitlines()
        return {
            name: float(value)
            for name, _, value in (line.rpartition(" ") for line in lines if not line.startswith("#"))
        }

    def wait_for(self, name: str, value: float, *, at_most: bool = False) -> None:
        """Wait until a metric has this value; the event loop may need a moment."""
        deadline = time.monotonic() + 10
        while (found := self.metrics()[name]) != value and not (at_most and found < value):
            assert time.monotonic() < deadline, f"{name} is {found} instead of {value}"
            time.sleep(0.02)

    def resident_bytes(self) -> int:
        return resident_bytes(self.process.pid)

    def is_alive(self) -> bool:
        return self.process.process.poll() is None

    def errors(self) -> list[str]:
        """Return the errors in the broker's log."""
        return re.findall(r"^.* error .*$", self.process.output(), re.MULTILINE)


@pytest.fixture
def start_target() -> Iterator[Callable[..., TargetBroker]]:
    started: list[TargetBroker] = []

    def start(**settings: str) -> TargetBroker:
        started.append(
            TargetBroker({name.replace("__", "-").replace("_", "."): value for name, value in settings.items()})
        )
        return started[-1]

    yield start
    for target in started:
        target.process.close()


class WitnessClient:
    """A client that produces one record at a time, checks each offset, and reads all records at the end."""

    def __init__(self, target: TargetBroker) -> None:
        self._victim = target
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.count = 0
        self.waits: list[float] = []
        self.failure: BaseException | None = None

    def __enter__(self) -> "WitnessClient":
        self._victim.create_topic(WITNESSED)
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._stopping.set()
        self._thread.join()
        if raised == (None, None, None):
            self.check()

    def check(self) -> None:
        assert self._victim.is_alive(), self._victim.process.output()[-2000:]
        if self.failure is not None:
            raise self.failure
        assert self.count, "no request of the witness was handled"
        assert self._read() == [b"%d" % number for number in range(self.count)]

    def _run(self) -> None:
        try:
            with self._victim.connect() as connection:
                while not self._stopping.is_set():
                    began = time.perf_counter()
                    batch = bytes(build_batch([Record(value=b"%d" % self.count)]))
                    data = [
                        TopicProduceData(name=WITNESSED, partition_data=[PartitionProduceData(index=0, records=batch)])
                    ]
                    response = connection.call(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=data), 11)
                    result = response.responses[0].partition_responses[0]
                    assert (result.error_code, result.base_offset) == (0, self.count)
                    self.waits.append(time.perf_counter() - began)
                    self.count += 1
                    time.sleep(PAUSE_SECONDS)
        except BaseException as error:  # raised by `check`
            self.failure = error

    def _read(self) -> list[bytes | None]:
        values: list[bytes | None] = []
        with self._victim.connect() as connection:
            while len(values) < self.count:
                requested = FetchPartition(partition=0, fetch_offset=len(values), partition_max_bytes=1 << 20)
                topics = [FetchTopic(topic=WITNESSED, partitions=[requested])]
                request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, topics=topics)
                records = bytes(connection.call(request, 12).responses[0].partitions[0].records)
                found = [
                    record.value
                    for at, header in iterate_batches(records)
                    for record in decode_records(records[at : at + header.size])
                ]
                assert found, f"{self.count - len(values)} records are missing"
                values += found
        return values


@pytest.fixture
def witness_of() -> Callable[[TargetBroker], WitnessClient]:
    return WitnessClient


def responds(connection: RawConnection) -> bool:
    return connection.call(ApiVersionsRequest(), 0).error_code == 0
