"""Several log directories used by Apache Kafka and Ottla in turn, and real disk faults. Needs Kafka's jars."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.peers import ApacheKafka, BrokerProcess, OttlaProcess, kafka_tool
from ottla.base.errors import ErrorCode
from ottla.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ottla.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from ottla.wire.schema import Message
from tests.compat.clients.jvm import missing
from tests.compat.raw import RawConnection

needs_kafka = pytest.mark.skipif(missing() is not None, reason=str(missing()))
QUICK = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "500"}
ERROR_WORDS = ("Exception", "mismatch", "isvalid: false", "Found ", "corrupt")


def two_directories(home: Path) -> dict[str, str]:
    return {"log.dirs": f"{home}/a,{home}/b", "metadata.log.dir": f"{home}/a"}


def create(bootstrap: str, *topics: NewTopic) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics(list(topics)).values():
        future.result(30)


def produce(bootstrap: str, topic: str, values: dict[str, str], partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True})
    for key, value in values.items():
        producer.produce(topic, value.encode(), key.encode(), partition=partition)
    assert producer.flush(60) == 0


def consume(bootstrap: str, topic: str, partition: int = 0) -> list[tuple[str, str]]:
    """Return all records of the partition."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False, "enable.partition.eof": True}
    )
    consumer.assign([TopicPartition(topic, partition, 0)])
    found: list[tuple[str, str]] = []
    while True:
        message = consumer.poll(30)
        assert message is not None, found
        if message.error() is not None:
            assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
            consumer.close()
            return found
        found.append((message.key().decode(), message.value().decode()))


def commit(bootstrap: str, topic: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers", "enable.auto.commit": False})
    deadline = time.monotonic() + 60
    while True:
        try:
            consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
            break
        except Exception:
            if time.monotonic() > deadline:
                raise
    consumer.close()


def committed(bootstrap: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers"})
    deadline = time.monotonic() + 60
    try:
        while True:
            try:
                return int(consumer.committed([TopicPartition(topic, 0)], 30)[0].offset)
            except Exception:
                if time.monotonic() > deadline:
                    raise
    finally:
        consumer.close()


def call(broker: BrokerProcess, request: Message, version: int) -> Any:
    with RawConnection(("127.0.0.1", broker.port)) as connection:
        return connection.call(request, version)


def directories(broker: BrokerProcess) -> dict[str, str]:
    """Return the directory name of each partition."""
    response = call(broker, DescribeLogDirsRequest(topics=None), 4)
    return {
        f"{topic.name}-{partition.partition_index}": os.path.basename(result.log_dir)
        for result in response.results
        for topic in result.topics
        for partition in topic.partitions
        if not partition.is_future_key
    }


def verify(home: Path) -> dict[str, object]:
    script = Path(OttlaProcess()._script)
    done = subprocess.run(
        [str(script), "log", "verify", "--json", str(home)], capture_output=True, text=True, check=False
    )
    result: dict[str, object] = json.loads(done.stdout)
    return result


@needs_kafka
def test_kafka_and_ottla_share_two_directories(tmp_path: Path) -> None:
    """Two directories, a cleaned compacted topic and a group: Ottla serves Kafka's data, and Kafka serves Ottla's."""
    settings = two_directories(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    cleaning = {"log.cleaner.backoff.ms": "200", "log.initial.task.delay.ms": "200"}
    with ApacheKafka(data_dir=tmp_path / "a", settings={**settings, **QUICK, **cleaning}, heap="512m") as kafka:
        create(
            kafka.bootstrap,
            NewTopic("plain", 4, 1),
            NewTopic(
                "table",
                1,
                1,
                config={
                    "cleanup.policy": "compact",
                    "segment.ms": "200",
                    "min.cleanable.dirty.ratio": "0.01",
                    "file.delete.delay.ms": "60000",
                },
            ),
        )
        for index in range(4):
            produce(kafka.bootstrap, "plain", {f"k{index}": f"v{index}"}, index)
        for turn in range(6):
            produce(kafka.bootstrap, "table", {f"k{number}": f"{turn}" for number in range(3)})
            time.sleep(0.4)
        commit(kafka.bootstrap, "plain", 1)
        where = directories(kafka)
        assert {where[f"plain-{index}"] for index in range(4)} == {"a", "b"}
        table = consume(kafka.bootstrap, "table")
        assert kafka.stop() in (0, 143)
    assert verify(tmp_path)["problems"] == []
    with OttlaProcess(data_dir=tmp_path / "a", settings=settings) as ottla:
        assert {name: home for name, home in directories(ottla).items() if name.startswith("plain")} == {
            name: home for name, home in where.items() if name.startswith("plain")
        }
        assert [consume(ottla.bootstrap, "plain", index) for index in range(4)] == [
            [(f"k{index}", f"v{index}")] for index in range(4)
        ]
        served = consume(ottla.bootstrap, "table")
        assert dict(served) == dict(table) == {f"k{number}": "5" for number in range(3)}
        assert committed(ottla.bootstrap, "plain") == 1
        produce(ottla.bootstrap, "plain", {"more": "more"}, 1)
        moved_from = directories(ottla)["plain-0"]
        target = str(tmp_path / ("b" if moved_from == "a" else "a"))
        response = call(
            ottla,
            AlterReplicaLogDirsRequest(
                dirs=[AlterReplicaLogDir(path=target, topics=[AlterReplicaLogDirTopic(name="plain", partitions=[0])])]
            ),
            2,
        )
        assert response.results[0].partitions[0].error_code == 0
        deadline = time.monotonic() + 30
        while directories(ottla)["plain-0"] == moved_from:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert consume(ottla.bootstrap, "plain", 0) == [("k0", "v0")]
        result = json.loads(
            kafka_tool(
                "org.apache.kafka.tools.LogDirsCommand",
                "--bootstrap-server",
                ottla.bootstrap,
                "--describe",
                "--topic-list",
                "plain",
            ).stdout.splitlines()[-1]
        )
        shown = {
            partition["partition"]: os.path.basename(directory["logDir"])
            for directory in result["brokers"][0]["logDirs"]
            for partition in directory["partitions"]
        }
        assert shown["plain-0"] == os.path.basename(target)
        assert ottla.stop() == 0
    assert verify(tmp_path)["problems"] == []
    with ApacheKafka(data_dir=tmp_path / "a", settings={**settings, **QUICK}, heap="512m") as kafka:
        assert [consume(kafka.bootstrap, "plain", index) for index in range(2)] == [
            [("k0", "v0")],
            [("k1", "v1"), ("more", "more")],
        ]
        assert directories(kafka)["plain-0"] == os.path.basename(target)
        assert dict(consume(kafka.bootstrap, "table")) == dict(table)
        assert committed(kafka.bootstrap, "plain") == 1
    shutil.rmtree(tmp_path)


@needs_kafka
def test_kafka_dump_log_reads_every_file(tmp_path: Path) -> None:
    """`kafka-dump-log` reads segments, indexes, producer snapshots and the metadata log without errors."""
    data = tmp_path / "data"
    settings = {"log.index.interval.bytes": "100", "metadata.log.max.record.bytes.between.snapshots": "1000"}
    with OttlaProcess(data_dir=data, settings=settings) as ottla:
        create(
            ottla.bootstrap,
            NewTopic("t", 1, 1, config={"segment.bytes": "1048576", "segment.ms": "500"}),
            *[NewTopic(f"other-{number}", 5, 1) for number in range(4)],
        )
        for _ in range(4):
            produce(ottla.bootstrap, "t", {f"k{number}": "x" * 500 for number in range(100)})
            time.sleep(0.3)
        commit(ottla.bootstrap, "t", 7)
        assert ottla.stop() == 0
    suffixes = (".log", ".index", ".timeindex", ".snapshot", ".txnindex", ".checkpoint")
    files = [path for path in sorted(data.rglob("*")) if path.suffix in suffixes]
    files = [
        path
        for path in files
        if not path.parent.name.startswith(("other-", "__consumer_offsets-")) or path.stat().st_size
    ]
    metadata = [
        path for path in files if path.parent.name == "__cluster_metadata-0" and path.suffix in (".log", ".checkpoint")
    ]
    assert {path.suffix for path in files} >= {".log", ".index", ".timeindex", ".snapshot", ".checkpoint"}
    assert any(path.suffix == ".checkpoint" for path in metadata)
    tool = "org.apache.kafka.tools.DumpLogSegments"
    others = [path for path in files if path not in metadata and path.suffix != ".checkpoint"]
    for flags, chosen in (
        (["--deep-iteration", "--print-data-log"], others),
        (["--cluster-metadata-decoder"], metadata),
        (["--verify-index-only"], [path for path in others if path.suffix in (".index", ".timeindex")]),
    ):
        result = kafka_tool(tool, *flags, "--files", ",".join(map(str, chosen)))
        lines = (result.stdout + result.stderr).splitlines()
        assert [line for line in lines if any(word in line for word in ERROR_WORDS)] == []
        assert sum(line.startswith("Dumping ") for line in lines) == len(chosen)
    assert verify(data)["problems"] == []
    shutil.rmtree(data)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A 2 MB tmpfs."""
    disk = tmp_path / "small"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"nothing can be mounted here: {mounted.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)


def try_produce(bootstrap: str, topic: str, partition: int) -> int | None:
    """Produce once. Returns the offset, or None if rejected."""
    outcomes: list[int | None] = []
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "retries": 0, "message.timeout.ms": 5000})
    producer.produce(
        topic,
        b"x" * 50_000,
        partition=partition,
        callback=lambda error, message: outcomes.append(None if error else message.offset()),
    )
    producer.flush(20)
    return outcomes[0]


def test_full_disk_rejects_writes_until_space_is_free(tmp_path: Path, small_disk: Path) -> None:
    """Only its partitions reject writes; once space is free, writes succeed without a restart."""
    data = tmp_path / "data"
    settings = {"log.dirs": f"{data},{small_disk}", "metadata.log.dir": str(data)}
    with OttlaProcess(data_dir=data, settings=settings) as ottla:
        create(ottla.bootstrap, NewTopic("t", 2, 1))
        small, large = (
            int(name.rpartition("-")[2])
            for name, _ in sorted(directories(ottla).items(), key=lambda item: item[1] != "small")
        )
        filler = small_disk / "filler"
        filler.write_bytes(bytes(1 << 20))
        count = 0
        while try_produce(ottla.bootstrap, "t", small) is not None:
            count += 1
            assert count < 100
        assert try_produce(ottla.bootstrap, "t", large) == 0
        results = call(ottla, DescribeLogDirsRequest(topics=None), 4).results
        assert [result.error_code for result in results] == [0, 0]
        filler.unlink()
        assert try_produce(ottla.bootstrap, "t", small) == count
        assert ottla.stop() == 0
    assert verify(small_disk)["problems"] == []


def test_read_only_disk_goes_offline(tmp_path: Path, small_disk: Path) -> None:
    """A disk becomes read-only: its partitions go offline, the node keeps running, and a restart restores them."""
    data = tmp_path / "data"
    settings = {"log.dirs": f"{data},{small_disk}", "metadata.log.dir": str(data)}
    with OttlaProcess(data_dir=data, settings=settings) as ottla:
        create(ottla.bootstrap, NewTopic("t", 2, 1))
        small, large = (
            int(name.rpartition("-")[2])
            for name, _ in sorted(directories(ottla).items(), key=lambda item: item[1] != "small")
        )
        assert try_produce(ottla.bootstrap, "t", small) == 0
        assert ottla.stop() == 0
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with OttlaProcess(data_dir=data, settings=settings) as ottla:
        results = call(ottla, DescribeLogDirsRequest(topics=None), 4).results
        assert [result.error_code for result in results] == [0, ErrorCode.KAFKA_STORAGE_ERROR]
        assert try_produce(ottla.bootstrap, "t", large) == 0
        assert try_produce(ottla.bootstrap, "t", small) is None
        assert ottla.stop() == 0
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    with OttlaProcess(data_dir=data, settings=settings) as ottla:
        assert (try_produce(ottla.bootstrap, "t", small), try_produce(ottla.bootstrap, "t", large)) == (1, 1)


def test_second_node_on_a_directory_fails(tmp_path: Path) -> None:
    """The second node fails with an explanation."""
    data, other = tmp_path / "data", tmp_path / "other"
    with OttlaProcess(data_dir=data):
        second = OttlaProcess(data_dir=other, settings={"log.dirs": f"{other},{data}", "metadata.log.dir": str(other)})
        done = subprocess.run(second.command(), capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode != 0
        assert f"{data} is in use by another node" in done.stderr
