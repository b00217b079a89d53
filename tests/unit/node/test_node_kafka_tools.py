"""Kafka's own tools read the directories that a node writes. Needs Kafka's jars."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from bench.peers import kafka_tool
from ottla.base.ids import random_uuid, uuid_text
from ottla.controller.controller import Controller
from ottla.controller.requests import RegisterBroker, RegisterController, UnfenceBroker
from ottla.controller.settings import ControllerSettings
from ottla.io.clock import RealClock
from ottla.io.disk import RealDisk
from ottla.io.rng import RealRng
from ottla.io.workers import ThreadWorkers
from ottla.log.config import LogConfig
from ottla.metadata.features import supported_features
from ottla.metadata.image import ClusterImage, Endpoint
from ottla.node.storage import Storage, prepare_storage
from ottla.runtime.metadata_log import MetadataLog
from ottla.runtime.snapshots import list_snapshots
from ottla.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tests.compat.clients.jvm import missing

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


class NodeDirectory:
    """A directory as written by a node: formatted, bootstrapped, registered, with a topic and a snapshot, stopped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.storage: Storage
        self.image: ClusterImage
        asyncio.run(self._write())

    async def _write(self) -> None:
        disk, clock, rng = RealDisk(), RealClock(), RealRng()
        workers = ThreadWorkers(asyncio.get_running_loop(), 2)
        self.storage = prepare_storage(disk, rng, [str(self.path)], str(self.path), 1, None, now_ms=clock.now_ms())
        log = MetadataLog.open(
            disk,
            clock,
            workers,
            self.storage.metadata_log_path,
            node_id=1,
            clean=False,
            config=LogConfig(),
            on_failed=print,
            snapshot_bytes_max=1,
        )
        controller = Controller(log.load(self.storage.cluster_id), ControllerSettings(1), rng)
        log.follow(lambda offset, records: None, lambda: controller.image)

        async def commit(records: Any) -> None:
            if records:
                first = log.end_offset
                committed = log.append(records)
                for number, record in enumerate(records):
                    controller.replay(first + number, record)
                await committed

        await commit(controller.activate(log.end_offset, self.storage.read_bootstrap_records(disk)).records)
        incarnation = random_uuid(rng)
        points = (Endpoint("PLAINTEXT", "127.0.0.1", 9092, 0),)
        directories = (self.storage.directories[0].directory_id,)
        await commit(controller.decide(RegisterController(1, incarnation, points, supported_features()), 0).records)
        registration = RegisterBroker(
            1, self.storage.cluster_id, incarnation, points, directories, supported_features()
        )
        registered = controller.decide(registration, 0)
        await commit(registered.records)
        await commit(controller.decide(UnfenceBroker(1, registered.response.epoch), 0).records)
        topic = CreatableTopic("a", 2, 1, configs=[CreatableTopicConfig("retention.ms", "1000")])
        await commit(controller.decide(CreateTopicsRequest([topic]), 0).records)
        await log.close()
        self.image = controller.image
        self.storage.mark_clean(disk, registered.response.epoch)
        self.storage.release()
        workers.close()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> NodeDirectory:
    return NodeDirectory(tmp_path_factory.mktemp("written"))


def test_storage_tool_accepts_the_directory(written: NodeDirectory, tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text(
        f"process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:9093\nlog.dirs={written.path}\n"
        "listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093\ncontroller.listener.names=CONTROLLER\n"
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
    )
    output = kafka_tool("kafka.tools.StorageTool", "info", "-c", str(config)).stdout
    directory_id = uuid_text(written.storage.directories[0].directory_id)
    assert f"{{cluster.id={written.storage.cluster_id}, directory.id={directory_id}, node.id=1, version=1}}" in output
    assert "problem" not in output


def dump(*files: Path) -> dict[str, list[str]]:
    """Return kafka-dump-log's output for the records of each file; every batch must be valid."""
    output = kafka_tool(
        "org.apache.kafka.tools.DumpLogSegments",
        "--cluster-metadata-decoder",
        "--files",
        ",".join(str(file) for file in files),
    ).stdout
    assert "isvalid: false" not in output
    assert "Exception" not in output
    found: dict[str, list[str]] = {}
    for line in output.splitlines():
        if line.startswith("Dumping "):
            lines = found[Path(line.removeprefix("Dumping ")).name] = []
        elif line.startswith("| "):
            lines.append(re.sub(r"^.*?headerKeys: \[\] ", "", line))
    return found


def test_dump_tool_reads_log_and_snapshots(written: NodeDirectory) -> None:
    """All records as Kafka prints them: the log starts with a LeaderChange, snapshots have header and footer."""
    log_path = written.path / "__cluster_metadata-0"
    newest = list_snapshots(RealDisk(), str(log_path))[-1].file_name
    segments = sorted(log_path.glob("*.log"))
    found = dump(written.path / "bootstrap.checkpoint", *segments, log_path / newest)
    features = [
        'payload: {"type":"FEATURE_LEVEL_RECORD","version":0,"data":{"name":"metadata.version","featureLevel":30}}',
        'payload: {"type":"FEATURE_LEVEL_RECORD","version":0,'
        '"data":{"name":"eligible.leader.replicas.version","featureLevel":1}}',
    ]
    assert found["bootstrap.checkpoint"] == [
        'SnapshotHeader {"version":0,"lastContainedLogTimestamp":0}',
        *features,
        'SnapshotFooter {"version":0}',
    ]
    records = [line for segment in segments for line in found[segment.name]]
    assert (
        records[0]
        == 'LeaderChange: {"version":0,"leaderId":1,"voters":[{"voterId":1}],"grantingVoters":[{"voterId":1}]}'
    )
    written_types = [json.loads(line.removeprefix("payload: "))["type"] for line in records[1:]]
    assert written_types == [
        "BEGIN_TRANSACTION_RECORD",
        "FEATURE_LEVEL_RECORD",
        "FEATURE_LEVEL_RECORD",
        "CONFIG_RECORD",
        "END_TRANSACTION_RECORD",
        "REGISTER_CONTROLLER_RECORD",
        "REGISTER_BROKER_RECORD",
        "BROKER_REGISTRATION_CHANGE_RECORD",
        "BROKER_REGISTRATION_CHANGE_RECORD",
        "TOPIC_RECORD",
        "CONFIG_RECORD",
        "PARTITION_RECORD",
        "PARTITION_RECORD",
    ]
    partition = json.loads(records[-1].removeprefix("payload: "))
    topic_id = uuid_text(written.image.topics_by_name["a"].topic_id)
    assert partition == {
        "type": "PARTITION_RECORD",
        "version": 2,
        "data": {
            "partitionId": 1,
            "topicId": topic_id,
            "replicas": [1],
            "isr": [1],
            "removingReplicas": [],
            "addingReplicas": [],
            "leader": 1,
            "leaderEpoch": 0,
            "partitionEpoch": 0,
            "directories": [uuid_text(written.storage.directories[0].directory_id)],
        },
    }
    snapshot = found[newest]
    assert snapshot[0].startswith("SnapshotHeader")
    assert snapshot[1:3] == features
    assert snapshot[-1] == 'SnapshotFooter {"version":0}'
