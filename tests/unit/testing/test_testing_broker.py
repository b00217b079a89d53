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
from ottla.client import Admin, ConfigResource
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
    with Broker(configs={"num.partitions": "3", "auto.create.topics.enable": "false"}) as broker:
        broker.create_topic("a", partitions=2, configs={"retention.ms": "5"})
        consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap)
        assert consumer.topics() == {"a"}
        assert consumer.partitions_for_topic("a") == {0, 1}
        consumer.close()
        with pytest.raises(ApiError) as error:
            broker.create_topic("a")
        assert error.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
        with pytest.raises(ApiError) as error:
            broker.create_topic("b", configs={"retention.msec": "5"})
        assert error.value.code is ErrorCode.INVALID_CONFIG


def test_config_values_may_be_numbers_and_booleans() -> None:
    with Broker(configs={"num.partitions": 3, "auto.create.topics.enable": False}) as broker:
        broker.create_topic(
            "a", -1, configs={"min.cleanable.dirty.ratio": 0.25, "preallocate": True, "retention.ms": 5}
        )
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            assert len(admin.describe_topics(["a"])["a"].partitions) == 3
            topic = ConfigResource("topic", "a")
            admin.alter_configs({topic: {"retention.ms": 6, "segment.ms": 7}})
            admin.create_topic("b", configs={"preallocate": True})
            configs = admin.describe_configs([topic])[topic]
            names = ("min.cleanable.dirty.ratio", "preallocate", "retention.ms", "segment.ms")
            assert [configs[name].value for name in names] == ["0.25", "true", "6", "7"]
        with pytest.raises(TypeError, match=r"retention\.ms: a config value must be a string, a number or a boolean"):
            broker.create_topic("c", configs={"retention.ms": [1]})  # type: ignore[dict-item]


def test_configs_may_be_given_by_their_old_name() -> None:
    with Broker(config={"num.partitions": 2}) as broker:
        broker.create_topic("a", config={"retention.ms": 5})
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            topic = ConfigResource("topic", "a")
            assert admin.describe_configs([topic])[topic]["retention.ms"].value == "5"
    with pytest.raises(TypeError, match="pass only configs"):
        Broker(config={}, configs={})


def test_bootstrap_before_the_start_raises() -> None:
    for broker in (Broker(), AsyncBroker()):
        with pytest.raises(RuntimeError, match="no address yet; start it first"):
            _ = broker.bootstrap


def test_second_start_raises_and_changes_nothing() -> None:
    with Broker() as broker:
        with pytest.raises(RuntimeError, match="already running"):
            broker.start()
        assert is_serving(broker.bootstrap)


def test_killed_broker_leaves_no_pending_task() -> None:
    """asyncio prints "Task was destroyed but it is pending" about a task whose loop is closed."""
    program = (
        "import asyncio, gc; from ottla.testing import AsyncBroker, Broker\n"
        "broker = Broker().start(); broker.create_topic('t'); broker.kill(); gc.collect()\n"
        "async def kill():\n"
        "    broker = await AsyncBroker().start()\n"
        "    await broker.kill()\n"
        "    others = asyncio.all_tasks() - {asyncio.current_task()}\n"
        "    if others:\n"
        "        await asyncio.wait(others, timeout=10)\n"
        "    print(asyncio.all_tasks() - {asyncio.current_task()})\n"
        "asyncio.run(kill()); gc.collect()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert (done.stdout, done.stderr) == ("set()\n", "")


def test_two_brokers_at_the_same_time() -> None:
    with Broker() as one, Broker() as other:
        one.create_topic("t")
        other.create_topic("t")
        produce(one, b"one")
        produce(other, b"other")
        assert (consume(one, 1), consume(other, 1)) == ([b"one"], [b"other"])


def test_failed_start_raises() -> None:
    broker = Broker(configs={"num.partition": "3"})
    with pytest.raises(ConfigError, match=r"did you mean num\.partitions"):
        broker.start()
    with pytest.raises(RuntimeError, match="not running"):
        broker.create_topic("t")
    broker.stop()
    broker.kill()


def test_broker_that_is_never_stopped_stops_at_exit(tmp_path: pathlib.Path) -> None:
    """Its thread must not run during interpreter shutdown. A given directory is closed cleanly, others are deleted."""
    program = "import sys; from ottla.testing import Broker; print(Broker(data=sys.argv[1] or None).start().data)"
    for data in ("", str(tmp_path / "data")):
        done = subprocess.run(
            [sys.executable, "-c", program, data], capture_output=True, text=True, check=True, timeout=60
        )
        assert done.stderr == ""
        used = pathlib.Path(done.stdout.strip())
        assert used.exists() == bool(data)
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


def test_forked_child_leaves_the_broker_alone() -> None:
    """A child that exits neither stops its parent's broker nor deletes its data."""
    program = (
        "import atexit, os, socket; from ottla.testing import Broker\n"
        "with Broker() as broker:\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        atexit._run_exitfuncs()\n"
        "        os._exit(0)\n"
        "    os.waitpid(child, 0)\n"
        "    host, port = broker.bootstrap.split(':')\n"
        "    socket.create_connection((host, int(port))).close()\n"
        "    print(os.path.exists(broker.data))\n"
    )
    # Python 3.12 warns that a process with threads forks, which is the point of this test.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert (done.stdout, done.stderr) == ("True\n", "")


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
