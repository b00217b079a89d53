"""`ottla.testing`: brokers start fast, keep their port, and delete their data."""

import os
import pathlib
import socket
import struct
import subprocess
import sys
import time

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from ottla.base.errors import ApiError, ErrorCode
from ottla.node.config import ConfigError
from ottla.testing import AsyncBroker, Broker

pytest_plugins = ["pytester"]


def is_serving(bootstrap: str) -> bool:
    """Return whether a broker responds to ApiVersions at this address."""
    host, _, port = bootstrap.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=5) as connection:
            connection.sendall(struct.pack(">ihhih", 10, 18, 0, 7, -1))
            head = connection.recv(8)
    except ConnectionError:
        return False
    return head[4:] == struct.pack(">i", 7)


def produce(broker: Broker, *values: bytes) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    for value in values:
        producer.send("t", value, partition=0).get(10)
    producer.close()


def consume(broker: Broker, count: int) -> list[bytes]:
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=10_000
    )
    consumer.assign([TopicPartition("t", 0)])
    values = [next(consumer).value for _ in range(count)]
    consumer.close()
    return values


def test_broker_serves_and_deletes_its_data() -> None:
    with Broker() as broker:
        data = broker.data
        assert is_serving(broker.bootstrap)
        assert os.path.exists(os.path.join(data, "meta.properties"))
    assert not is_serving(broker.bootstrap)
    assert not os.path.exists(data)


def test_produce_and_consume() -> None:
    with Broker() as broker:
        broker.create_topic("t")
        produce(broker, b"1", b"2")
        assert consume(broker, 2) == [b"1", b"2"]


def test_restart_keeps_port_and_data() -> None:
    with Broker() as broker:
        broker.create_topic("t")
        bootstrap = broker.bootstrap
        produce(broker, b"1")
        broker.restart()
        assert broker.bootstrap == bootstrap
        produce(broker, b"2")
        assert consume(broker, 2) == [b"1", b"2"]


def test_killed_broker_keeps_acknowledged_records() -> None:
    with Broker() as broker:
        broker.create_topic("t")
        produce(broker, b"1")
        broker.kill()
        assert not is_serving(broker.bootstrap)
        assert not os.path.exists(os.path.join(broker.data, ".kafka_cleanshutdown"))
        broker.restart()
        produce(broker, b"2")
        assert consume(broker, 2) == [b"1", b"2"]
        broker.stop()
        assert os.path.exists(os.path.join(broker.data, ".kafka_cleanshutdown"))


def test_data_directory_is_kept_if_given(tmp_path: pathlib.Path) -> None:
    for _ in range(2):
        with Broker(data=tmp_path / "data") as broker:
            assert broker.data == str(tmp_path / "data")
    assert (tmp_path / "data" / "meta.properties").exists()


def test_configs_and_create_topic() -> None:
    with Broker(config={"num.partitions": "3", "auto.create.topics.enable": "false"}) as broker:
        broker.create_topic("a", partitions=2, config={"retention.ms": "5"})
        consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap)
        assert consumer.topics() == {"a"}
        assert consumer.partitions_for_topic("a") == {0, 1}
        consumer.close()
        with pytest.raises(ApiError) as error:
            broker.create_topic("a")
        assert error.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
        with pytest.raises(ApiError) as error:
            broker.create_topic("b", config={"retention.msec": "5"})
        assert error.value.code is ErrorCode.INVALID_CONFIG


def test_two_brokers_at_the_same_time() -> None:
    with Broker() as one, Broker() as other:
        one.create_topic("t")
        other.create_topic("t")
        produce(one, b"one")
        produce(other, b"other")
        assert (consume(one, 1), consume(other, 1)) == ([b"one"], [b"other"])


def test_failed_start_raises() -> None:
    broker = Broker(config={"num.partition": "3"})
    with pytest.raises(ConfigError, match=r"did you mean num\.partitions"):
        broker.start()
    with pytest.raises(RuntimeError, match="not running"):
        broker.create_topic("t")
    broker.stop()
    broker.kill()


def test_data_is_deleted_at_exit_without_stop() -> None:
    """A broker that is never stopped deletes its data when the process exits."""
    program = "from ottla.testing import Broker; broker = Broker().start(); print(broker.data)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert not os.path.exists(done.stdout.strip())


async def test_async_broker() -> None:
    async with AsyncBroker() as broker:
        data = broker.data
        await broker.create_topic("t")
        with pytest.raises(RuntimeError, match="already running"):
            await broker.start()
        bootstrap = broker.bootstrap
        await broker.restart()
        assert broker.bootstrap == bootstrap
        await broker.kill()
        await broker.restart()
        with pytest.raises(ApiError):
            await broker.create_topic("t")
    assert not pathlib.Path(data).exists()  # noqa: ASYNC240


def test_start_takes_less_than_100_ms() -> None:
    """Best of three in a new process, since other tests share the machine."""
    program = (
        "import time; from ottla.testing import Broker\n"
        "for _ in range(3):\n"
        "    start = time.perf_counter()\n"
        "    with Broker(): print(time.perf_counter() - start)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert min(map(float, done.stdout.split())) < 0.1


def test_pytest_fixtures(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import socket

        def reach(bootstrap):
            host, port = bootstrap.split(":")
            socket.create_connection((host, int(port))).close()

        def test_fresh(ottla_broker):
            reach(ottla_broker.bootstrap)

        def test_shared(ottla_session_broker, ottla_broker):
            reach(ottla_session_broker.bootstrap)
            assert ottla_session_broker.bootstrap != ottla_broker.bootstrap
        """
    )
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=2)


def test_plugin_imports_nothing_else() -> None:
    """pytest loads the plugin in every run, so it must not import anything else."""
    program = "import sys, ottla.testing.pytest_plugin; print(sorted(m for m in sys.modules if m.startswith('ottla')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "['ottla', 'ottla.testing', 'ottla.testing.pytest_plugin']\n"


def test_stop_is_fast() -> None:
    with Broker() as broker:
        start = time.perf_counter()
        broker.stop()
        assert time.perf_counter() - start < 5
