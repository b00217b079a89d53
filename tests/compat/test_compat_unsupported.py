"""Features that Ottla does not have: clients show a fatal error at once, and the broker logs a line."""

import asyncio
import time
from collections.abc import Callable, Iterator

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import TransactionalIdAuthorizationFailed
from confluent_kafka import Consumer, KafkaException, Producer
from kafka import KafkaProducer
from kafka.errors import TransactionalIdAuthorizationFailedError

from bench.peers import OttlaProcess
from tests.compat.clients.jvm import Jvm

WAIT_SECONDS = 30.0
AT_ONCE_SECONDS = 10.0
"""Well below every client's timeout in these tests."""
TRANSACTIONS = "transactions are not supported; remove transactional.id (idempotent producers work)"
CONSUMER_PROTOCOL = "consumer groups of KIP-848 are not supported; use group.protocol=classic"


@pytest.fixture(scope="module")
def ottla() -> Iterator[OttlaProcess]:
    with OttlaProcess() as process:
        yield process


def confluent(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "tx", "client.id": "confluent"})
    with pytest.raises(KafkaException) as error:
        producer.init_transactions(WAIT_SECONDS)
    assert error.value.args[0].fatal()
    assert TRANSACTIONS in error.value.args[0].str()


def kafka_python(bootstrap: str) -> None:
    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        transactional_id="tx",
        client_id="kafka_python",
        max_block_ms=int(WAIT_SECONDS * 1000),
    )
    with pytest.raises(TransactionalIdAuthorizationFailedError):
        producer.init_transactions()
    producer.close(0)


def aiokafka(bootstrap: str) -> None:
    async def start() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id="tx", client_id="aiokafka")
        try:
            with pytest.raises(TransactionalIdAuthorizationFailed):
                await asyncio.wait_for(producer.start(), WAIT_SECONDS)
        finally:
            await producer.stop()

    asyncio.run(start())


@pytest.mark.parametrize("initialize", [confluent, kafka_python, aiokafka])
def test_transactional_producer_fails_at_once(ottla: OttlaProcess, initialize: Callable[[str], None]) -> None:
    started = time.monotonic()
    initialize(ottla.bootstrap)
    assert time.monotonic() - started < AT_ONCE_SECONDS
    logged = f"rejected client '{initialize.__name__}' at 127.0.0.1: {TRANSACTIONS}"
    assert ottla.output().count(logged) == 1


def test_transactional_java_producer_fails_at_once(ottla: OttlaProcess, java_tools: Jvm) -> None:
    result = java_tools.tool(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", "t", "--num-records", "1", "--record-size", "10", "--throughput", "-1"),
        *("--bootstrap-server", ottla.bootstrap, "--transactional-id", "tx"),
    )
    assert result.status != 0
    assert "TransactionalIdAuthorizationException" in result.out + result.err


def test_consumer_protocol_fails_at_once(ottla: OttlaProcess) -> None:
    """As with a Kafka cluster whose `group.version` is 0."""
    settings = {"bootstrap.servers": ottla.bootstrap, "group.id": "g", "client.id": "c", "group.protocol": "consumer"}
    consumer = Consumer(settings)
    consumer.subscribe(["t"])
    message = consumer.poll(WAIT_SECONDS)
    assert message is not None
    error = message.error()
    assert error is not None
    assert error.name() == "_FATAL"
    assert "API version not supported" in error.str()
    consumer.close()
    assert ottla.output().count(f"rejected client 'c' at 127.0.0.1: {CONSUMER_PROTOCOL}") == 1


def test_consumer_protocol_of_java_fails_at_once(ottla: OttlaProcess, java_tools: Jvm) -> None:
    """The tool logs UnsupportedVersionException and ends, long before its timeout."""
    started = time.monotonic()
    result = java_tools.tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", ottla.bootstrap, "--topic", "t", "--timeout-ms", str(int(WAIT_SECONDS * 1000))),
        *("--command-property", "group.protocol=consumer", "--group", "g"),
    )
    assert time.monotonic() - started < AT_ONCE_SECONDS
    assert "Processed a total of 0 messages" in result.err
    assert ottla.output().count(f"rejected client 'console-consumer' at 127.0.0.1: {CONSUMER_PROTOCOL}") == 1
