"""The broker under test, and topics on it.

By default each test process starts an Ottla broker. `OTTLA_COMPAT_BOOTSTRAP=host:port` selects a running broker
instead: with Apache Kafka, the tests verify their own expectations. `OTTLA_COMPAT_DATA` is that broker's data
directory.
"""

import itertools
import os
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from bench.peers import OttlaProcess
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.compat.clients.aiokafka_client import AiokafkaClient
from tests.compat.clients.base import Client
from tests.compat.clients.confluent_client import ConfluentClient
from tests.compat.clients.java_client import JavaClient
from tests.compat.clients.jvm import Jvm, missing
from tests.compat.clients.kafka_python_client import KafkaPythonClient
from tests.compat.clients.kcat_client import KcatClient
from tests.compat.raw import RawConnection

CLIENTS = ("confluent-kafka", "kafka-python", "aiokafka", "kcat", "java")


@dataclass(frozen=True, slots=True)
class Broker:
    """Address of the broker; its data directory and process if this test started it."""

    bootstrap: str
    data_dir: Path | None = None
    process: OttlaProcess | None = None

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.bootstrap.rpartition(":")
        return host, int(port)


class MakeTopic(Protocol):
    def __call__(self, partitions: int = 1, **configs: str) -> str:
        """Create a topic; underscores in config names stand for dots."""


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    given = os.environ.get("OTTLA_COMPAT_BOOTSTRAP")
    if given:
        data_dir = os.environ.get("OTTLA_COMPAT_DATA")
        yield Broker(given, Path(data_dir) if data_dir else None)
        return
    # The tests use old timestamps, so retention must not run.
    settings = {"group.initial.rebalance.delay.ms": "0", "log.initial.task.delay.ms": "86400000"}
    with OttlaProcess(settings=settings) as process:
        yield Broker(process.bootstrap, process.data_dir, process)


@pytest.fixture(autouse=True)
def require_live_broker(broker: Broker) -> None:
    """Fail at once if the broker ended, instead of after each test's timeout."""
    if broker.process is not None and broker.process.process.poll() is not None:
        pytest.fail(
            f"the broker ended with {broker.process.process.poll()}:\n{broker.process.output()[-3000:]}", pytrace=False
        )


@pytest.fixture(scope="session")
def api_keys(broker: Broker) -> frozenset[int]:
    """API keys of the broker; tests that need others are skipped."""
    with RawConnection(broker.address) as connection:
        response = connection.call(ApiVersionsRequest(), 0)
    return frozenset(entry.api_key for entry in response.api_keys)


@pytest.fixture(scope="session")
def jvm() -> Iterator[Jvm]:
    worker = Jvm()
    yield worker
    worker.stop()


@pytest.fixture(scope="session")
def java_tools(jvm: Jvm) -> Jvm:
    reason = missing()
    if reason:
        pytest.skip(reason)
    return jvm


@pytest.fixture(scope="session")
def get_client(jvm: Jvm) -> Callable[[str], Client]:
    known: tuple[Client, ...] = (
        ConfluentClient(),
        KafkaPythonClient(),
        AiokafkaClient(),
        KcatClient(),
        JavaClient(jvm),
    )
    by_name = {client.name: client for client in known}

    def find(name: str) -> Client:
        client = by_name[name]
        reason = client.missing()
        if reason:
            pytest.skip(reason)
        return client

    return find


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest, get_client: Callable[[str], Client]) -> Client:
    return get_client(request.param)


@pytest.fixture(scope="session")
def topic_names() -> Callable[[], str]:
    """Return unique topic names."""
    prefix, counter = f"compat-{secrets.token_hex(4)}", itertools.count()
    return lambda: f"{prefix}-{next(counter)}"


@pytest.fixture
def new_name(broker: Broker, topic_names: Callable[[], str]) -> Iterator[Callable[[], str]]:
    """Return names of topics that are deleted after the test."""
    created: list[str] = []

    def name() -> str:
        created.append(topic_names())
        return created[-1]

    yield name
    if created:
        delete_topics(broker.bootstrap, created)


@pytest.fixture
def make_topic(broker: Broker, new_name: Callable[[], str]) -> MakeTopic:
    def make(partitions: int = 1, **configs: str) -> str:
        name = new_name()
        create_topic(
            broker.bootstrap, name, partitions, {key.replace("_", "."): value for key, value in configs.items()}
        )
        return name

    return make


def create_topic(bootstrap: str, name: str, partitions: int, configs: dict[str, str]) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(name, partitions, 1, config=configs)]).values():
        future.result(30)
    wait_for_leader(bootstrap, name, partitions)


def wait_for_leader(bootstrap: str, name: str, partitions: int) -> None:
    """Wait until the leader is ready: before, records sent with acks=0 are lost silently."""
    host, _, port = bootstrap.rpartition(":")
    requested = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(partitions)]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=requested)])
    deadline = time.monotonic() + 30
    with RawConnection((host, int(port))) as connection:
        while any(partition.error_code for partition in connection.call(request, 7).topics[0].partitions):
            assert time.monotonic() < deadline, f"{name} has no leader yet"
            time.sleep(0.005)


def delete_topics(bootstrap: str, names: list[str]) -> None:
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": bootstrap})
    existing = [name for name in names if name in admin.list_topics(timeout=10).topics]
    if existing:
        for future in admin.delete_topics(existing).values():
            future.result(30)
