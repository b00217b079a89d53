"""Kafka's command line tools, with the broker and with its files."""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.compat.clients.confluent_client import ConfluentClient
from tests.compat.clients.jvm import Jvm, ToolResult
from tests.compat.conftest import Broker, MakeTopic
from tests.compat.record import START_MS, Sent, noise

TOOLS = "org.apache.kafka.tools."
FIND_COORDINATOR = 10

Run = Callable[..., ToolResult]


@pytest.fixture
def run(broker: Broker, java_tools: Jvm) -> Run:
    def run_tool(name: str, *args: str, stdin: bytes = b"", status: int = 0) -> ToolResult:
        where = ("--bootstrap-server", broker.bootstrap)  # after a subcommand's name, but before it in a few tools
        ordered = (*where, *args) if name.endswith(("FeatureCommand", "MetadataQuorumCommand")) else (*args, *where)
        done = java_tools.tool(name, *ordered, stdin=stdin)
        assert done.status == status, f"{name} {args} ended with {done.status}:\n{done.out}{done.err}"
        return done

    return run_tool


def need(api_keys: frozenset[int], key: int, what: str) -> None:
    if key not in api_keys:
        pytest.skip(f"the broker has no {what} (API {key})")


def test_kafka_topics(broker: Broker, run: Run, new_name: Callable[[], str]) -> None:
    """Create, list, describe, add partitions, delete; and errors."""
    tool, topic = TOOLS + "TopicCommand", new_name()
    assert (
        f"Created topic {topic}."
        in run(tool, "--create", "--topic", topic, "--partitions", "2", "--config", "retention.ms=1000000").out
    )
    assert topic in run(tool, "--create", "--topic", topic, status=1).out
    run(tool, "--create", "--topic", topic, "--if-not-exists")
    assert topic in run(tool, "--list").lines()

    head, *partitions = run(tool, "--describe", "--topic", topic).lines()
    shape = (
        rf"Topic: {topic}\tTopicId: [\w-]{{22}}\tPartitionCount: 2\tReplicationFactor: 1\t"
        r"Configs: (min.insync.replicas=1,)?(.*)"
    )
    assert re.fullmatch(shape, head)[2] == "retention.ms=1000000"  # type: ignore[index]
    node = re.search(r"Leader: (\d+)", partitions[0])[1]  # type: ignore[index]
    assert [line.split("\tElr")[0].strip() for line in partitions] == [
        f"Topic: {topic}\tPartition: {i}\tLeader: {node}\tReplicas: {node}\tIsr: {node}" for i in range(2)
    ]

    run(tool, "--alter", "--topic", topic, "--partitions", "5")
    assert "PartitionCount: 5" in run(tool, "--describe", "--topic", topic).out
    assert run(tool, "--alter", "--topic", topic, "--partitions", "3", status=1).out.startswith(
        "Error while executing topic command"
    )
    run(tool, "--delete", "--topic", topic)
    assert topic not in run(tool, "--list").lines()
    assert "does not exist" in run(tool, "--describe", "--topic", topic, status=1).out


def test_kafka_get_offsets(broker: Broker, run: Run, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    times = [5, 1, 9, 9, 3]
    ConfluentClient().produce(
        broker.bootstrap, topic, [Sent(0, b"k", b"v%d" % i, (), START_MS + time) for i, time in enumerate(times)]
    )

    def offsets(*args: str) -> list[str]:
        return [
            line.removeprefix(f"{topic}:") for line in run(TOOLS + "GetOffsetShell", "--topic", topic, *args).lines()
        ]

    assert offsets() == offsets("--time", "latest") == offsets("--time", "-1") == ["0:5", "1:0"]
    assert offsets("--time", "earliest") == offsets("--time", "-2") == ["0:0", "1:0"]
    assert offsets("--time", "max-timestamp") == offsets("--time", "-3") == ["0:2"]
    assert offsets("--time", str(START_MS + 6)) == ["0:2"]
    assert offsets("--time", str(START_MS)) == ["0:0"]
    assert offsets("--time", str(START_MS + 10)) == []
    assert offsets("--partitions", "1") == ["1:0"]


def test_console_producer_and_consumer(run: Run, make_topic: MakeTopic) -> None:
    """With a partition and an offset the console consumer needs no group."""
    topic = make_topic(1)
    words = ["parse.key=true", "parse.headers=true", "null.marker=NULL"]
    options = [word for setting in words for word in ("--reader-property", setting)]
    lines = b"h1:a,h2:b\tk1\tv1\nh1:x,h1:y\tk2\tNULL\nh:1\tNULL\tv3\n"
    run(TOOLS + "ConsoleProducer", "--topic", topic, *options, stdin=lines)
    printed = [
        word
        for name in ("key", "offset", "headers", "partition")
        for word in ("--formatter-property", f"print.{name}=true")
    ]
    position = ["--topic", topic, "--partition", "0", "--timeout-ms", "15000"]
    consumer = TOOLS + "consumer.ConsoleConsumer"
    assert run(consumer, *position, "--offset", "earliest", "--max-messages", "3", *printed).lines() == [
        "Partition:0\tOffset:0\th1:a,h2:b\tk1\tv1",
        "Partition:0\tOffset:1\th1:x,h1:y\tk2\tnull",
        "Partition:0\tOffset:2\th:1\tnull\tv3",
    ]
    assert run(consumer, *position, "--offset", "2", "--max-messages", "1").lines() == ["v3"]


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_producer_perf_test(run: Run, make_topic: MakeTopic, codec: str) -> None:
    topic = make_topic(3)
    size = ["--num-records", "20000", "--record-size", "100", "--throughput", "-1"]
    done = run(
        TOOLS + "ProducerPerformance",
        "--topic",
        topic,
        *size,
        "--command-property",
        "acks=all",
        f"compression.type={codec}",
    )
    assert done.lines()[-1].startswith("20000 records sent")
    end_offsets = [int(line.rsplit(":", 1)[1]) for line in run(TOOLS + "GetOffsetShell", "--topic", topic).lines()]
    assert sum(end_offsets) == 20_000


def test_consumer_perf_test(run: Run, make_topic: MakeTopic, api_keys: frozenset[int]) -> None:
    need(api_keys, FIND_COORDINATOR, "groups")
    topic = make_topic(1)
    run(
        TOOLS + "ProducerPerformance",
        "--topic",
        topic,
        "--num-records",
        "1000",
        "--record-size",
        "100",
        "--throughput",
        "-1",
    )
    done = run(TOOLS + "ConsumerPerformance", "--topic", topic, "--num-records", "1000", "--timeout", "15000")
    assert done.lines()[-1].split(", ")[4] == "1000"


def test_kafka_configs_describe(run: Run, make_topic: MakeTopic) -> None:
    """The topic's own configs with synonyms, and all configs with defaults."""
    topic = make_topic(1, retention_ms="1000000", cleanup_policy="compact")
    tool = "kafka.admin.ConfigCommand"
    own = run(tool, "--describe", "--topic", topic).lines()
    assert own[0].strip() == f"Dynamic configs for topic {topic} are:"
    assert sorted(line.strip() for line in own[1:]) == [
        "cleanup.policy=compact sensitive=false "
        "synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact, DEFAULT_CONFIG:log.cleanup.policy=delete}",
        "retention.ms=1000000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=1000000}",
    ]
    everything = run(tool, "--describe", "--topic", topic, "--all").out
    assert (
        "segment.bytes=1073741824 sensitive=false synonyms={DEFAULT_CONFIG:log.segment.bytes=1073741824}" in everything
    )
    assert "max.message.bytes=1048588 sensitive=false synonyms={DEFAULT_CONFIG:message.max.bytes=1048588}" in everything


def test_kafka_configs_describe_broker(run: Run, api_keys: frozenset[int]) -> None:
    node = re.search(r"\(id: (\d+) ", run(TOOLS + "BrokerApiVersionsCommand").out)[1]  # type: ignore[index]
    everything = run("kafka.admin.ConfigCommand", "--describe", "--broker", node, "--all").out
    assert f"All configs for broker {node} are:" in everything
    assert re.search(r"num.partitions=1 sensitive=false synonyms=\{.*DEFAULT_CONFIG:num.partitions=1\}", everything)


def test_broker_api_versions(broker: Broker, run: Run) -> None:
    out = run(TOOLS + "BrokerApiVersionsCommand").out
    assert re.match(rf"{re.escape(broker.bootstrap)} \(id: \d+ rack: null isFenced: false\) -> \(", out)
    for key, name, low, high in [
        (0, "Produce", 0, 13),
        (1, "Fetch", 4, 18),
        (2, "ListOffsets", 1, 11),
        (3, "Metadata", 0, 13),
        (18, "ApiVersions", 0, 4),
        (19, "CreateTopics", 2, 7),
        (20, "DeleteTopics", 1, 6),
        (22, "InitProducerId", 0, 5),
        (32, "DescribeConfigs", 1, 4),
        (37, "CreatePartitions", 0, 3),
        (60, "DescribeCluster", 0, 2),
        (21, "DeleteRecords", 0, 2),
        (23, "OffsetForLeaderEpoch", 2, 4),
        (33, "AlterConfigs", 0, 2),
        (35, "DescribeLogDirs", 1, 5),
        (43, "ElectLeaders", 0, 2),
        (44, "IncrementalAlterConfigs", 0, 1),
        (55, "DescribeQuorum", 0, 2),
        (57, "UpdateFeatures", 0, 2),
        (61, "DescribeProducers", 0, None),
        (74, "ListConfigResources", 0, 1),
        (75, "DescribeTopicPartitions", 0, None),
    ]:
        versions = f"{low} [usable: {low}]" if high is None else f"{low} to {high} [usable: {high}]"
        assert f"{name}({key}): {versions}" in out


def test_kafka_cluster(broker: Broker, run: Run) -> None:
    assert re.fullmatch(r"Cluster ID: [\w-]{22}", run(TOOLS + "ClusterTool", "cluster-id").out.strip())
    head, line = run(TOOLS + "ClusterTool", "list-endpoints").lines()
    host, port = broker.address
    assert head.split() == ["ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE"]
    assert line.split()[1:] == [host, str(port), "null", "unfenced", "broker"]


def test_kafka_features(run: Run) -> None:
    features = {line.split()[1]: line for line in run(TOOLS + "FeatureCommand", "describe").lines()}
    assert "FinalizedVersionLevel: 4.3-IV0" in features["metadata.version"]


def test_kafka_features_upgrade(run: Run) -> None:
    """To the current level, to an unsupported level, and a downgrade as a dry run."""
    tool, feature = TOOLS + "FeatureCommand", "eligible.leader.replicas.version"
    assert f"{feature} was upgraded to 1." in run(tool, "upgrade", "--feature", f"{feature}=1").out
    assert f"Could not upgrade {feature} to 2." in run(tool, "upgrade", "--feature", f"{feature}=2", status=1).out
    assert f"{feature} can be downgraded to 0." in run(tool, "downgrade", "--feature", f"{feature}=0", "--dry-run").out


def test_kafka_metadata_quorum(run: Run) -> None:
    """One voter, which is the leader and has no lag."""
    status = dict(line.split(":", 1) for line in run(TOOLS + "MetadataQuorumCommand", "describe", "--status").lines())
    node = status["LeaderId"].strip()
    assert int(status["LeaderEpoch"]) > 0
    assert int(status["HighWatermark"]) > 0
    assert (status["MaxFollowerLag"].strip(), status["CurrentObservers"].strip()) == ("0", "[]")
    assert f'"id": {node}' in status["CurrentVoters"]
    head, *rows = run(TOOLS + "MetadataQuorumCommand", "describe", "--replication").lines()
    assert head.split()[:4] == ["NodeId", "DirectoryId", "LogEndOffset", "Lag"]
    assert [(row.split()[0], row.split()[3], row.split()[-1]) for row in rows] == [(node, "0", "Leader")]


def test_kafka_log_dirs(broker: Broker, run: Run, make_topic: MakeTopic) -> None:
    """Sizes equal the files' sizes."""
    topic = make_topic(2)

    def sizes() -> dict[str, int]:
        described = json.loads(run(TOOLS + "LogDirsCommand", "--describe", "--topic-list", topic).lines()[-1])
        (directory,) = described["brokers"][0]["logDirs"]
        assert (directory["error"], broker.data_dir) in ((None, Path(directory["logDir"])), (None, None))
        return {partition["partition"]: partition["size"] for partition in directory["partitions"]}

    assert sizes() == {f"{topic}-0": 0, f"{topic}-1": 0}
    ConfluentClient().produce(
        broker.bootstrap, topic, [Sent(0, b"k", noise(1000, i), (), START_MS + i) for i in range(9)]
    )
    found = sizes()
    assert found[f"{topic}-1"] == 0
    assert found[f"{topic}-0"] > 9000
    if broker.data_dir is not None:
        assert found[f"{topic}-0"] == sum(
            path.stat().st_size for path in (broker.data_dir / f"{topic}-0").glob("*.log")
        )


def test_kafka_topics_describes_page_by_page(run: Run, make_topic: MakeTopic) -> None:
    topics = sorted(make_topic(3) for _ in range(2))
    lines = run(
        TOOLS + "TopicCommand", "--describe", "--topic", "|".join(topics), "--partition-size-limit-per-response", "2"
    ).lines()
    described = [
        (found[1], int(found[2]))
        for line in lines
        if (found := re.search(r"Topic: (\S+)\s+Partition: (\d+)\s+Leader: \d+", line))
    ]
    assert sorted(described) == [(topic, index) for topic in topics for index in range(3)]


def test_kafka_configs_alter(broker: Broker, run: Run, make_topic: MakeTopic) -> None:
    """A set config takes effect immediately, is described, and can be deleted."""
    topic, tool = make_topic(1), "kafka.admin.ConfigCommand"
    run(tool, "--alter", "--topic", topic, "--add-config", "max.message.bytes=500,cleanup.policy=[compact,delete]")
    assert sorted(line.split()[0] for line in run(tool, "--describe", "--topic", topic).lines()[1:]) == [
        "cleanup.policy=compact,delete",
        "max.message.bytes=500",
    ]
    with pytest.raises(Exception, match=r"MSG_SIZE_TOO_LARGE|Message size too large"):
        ConfluentClient().produce(broker.bootstrap, topic, [Sent(0, b"k", noise(1000), (), START_MS)])
    run(tool, "--alter", "--topic", topic, "--delete-config", "max.message.bytes,cleanup.policy")
    assert run(tool, "--describe", "--topic", topic).lines()[1:] == []
    ConfluentClient().produce(broker.bootstrap, topic, [Sent(0, b"k", noise(1000), (), START_MS)])
    wrong = run(tool, "--alter", "--topic", topic, "--add-config", "no.such.config=1", status=1)
    assert "InvalidConfigurationException" in wrong.out + wrong.err


def test_kafka_configs_alter_broker(run: Run) -> None:
    """For one broker and for all."""
    tool, name = "kafka.admin.ConfigCommand", "log.message.timestamp.after.max.ms"
    node = re.search(r"\(id: (\d+) ", run(TOOLS + "BrokerApiVersionsCommand").out)[1]  # type: ignore[index]
    for which in (("--broker", node), ("--broker-defaults",)):
        run(tool, "--alter", *which, "--add-config", f"{name}=7777777")
        assert f"{name}=7777777" in run(tool, "--describe", *which).out
        run(tool, "--alter", *which, "--delete-config", name)
        assert name not in run(tool, "--describe", *which).out


def test_kafka_delete_records(broker: Broker, run: Run, make_topic: MakeTopic, tmp_path: Path) -> None:
    topic = make_topic(2)
    ConfluentClient().produce(broker.bootstrap, topic, [Sent(0, b"k", b"v%d" % i, (), START_MS + i) for i in range(9)])

    def delete(*offsets_to_delete: tuple[int, int]) -> list[str]:
        deletions = [{"topic": topic, "partition": index, "offset": offset} for index, offset in offsets_to_delete]
        (tmp_path / "offsets.json").write_text(json.dumps({"partitions": deletions, "version": 1}))
        return sorted(
            run(TOOLS + "DeleteRecordsCommand", "--offset-json-file", str(tmp_path / "offsets.json")).lines()[2:]
        )

    assert delete((0, 4), (1, -1)) == [
        f"partition: {topic}-0\tlow_watermark: 4",
        f"partition: {topic}-1\tlow_watermark: 0",
    ]
    assert run(TOOLS + "GetOffsetShell", "--topic", topic, "--time", "earliest").lines() == [
        f"{topic}:0:4",
        f"{topic}:1:0",
    ]
    assert "OffsetOutOfRange" in delete((0, 10))[0]
    assert delete((0, -1)) == [f"partition: {topic}-0\tlow_watermark: 9"]


def test_kafka_leader_election(run: Run, make_topic: MakeTopic) -> None:
    """One replica, which is already the leader."""
    topic = make_topic(1)
    out = run(TOOLS + "LeaderElectionCommand", "--election-type", "preferred", "--topic", topic, "--partition", "0").out
    assert "Valid replica already elected for partitions" in out


def test_kafka_acls_without_an_authorizer(run: Run) -> None:
    done = run(TOOLS + "AclCommand", "--list", status=1)
    assert "SecurityDisabledException" in done.out + done.err


@pytest.fixture
def data_dir(broker: Broker) -> Path:
    if broker.data_dir is None:
        pytest.skip("the data directory of this broker is unknown (set OTTLA_COMPAT_DATA)")
    return broker.data_dir


def dump(java_tools: Jvm, *args: str) -> str:
    done = java_tools.tool(TOOLS + "DumpLogSegments", *args)
    assert done.status == 0, done.out + done.err
    assert "isvalid: false" not in done.out
    for complaint in (
        "Mismatches in",
        "Found timestamp mismatch",
        "Found out of order",
        "Non-consecutive",
        "bytes in corrupt",
    ):
        assert complaint.lower() not in done.out.lower(), done.out
    return done.out


def test_kafka_dump_log_reads_a_partition(
    broker: Broker, java_tools: Jvm, make_topic: MakeTopic, data_dir: Path
) -> None:
    """Records of several segments, and consistent indexes."""
    topic = make_topic(1, segment_bytes="1048576", index_interval_bytes="1000")
    records = [Sent(0, b"key-%d" % i, noise(20_000, i), (("h", b"1"),), START_MS + i) for i in range(120)]
    for start in range(0, 120, 3):
        ConfluentClient().produce(broker.bootstrap, topic, records[start : start + 3])
    directory = data_dir / f"{topic}-0"
    logs = sorted(directory.glob("*.log"))
    assert len(logs) > 1
    out = dump(java_tools, "--print-data-log", "--files", ",".join(map(str, logs)))
    line = (
        r"^\| offset: (\d+) CreateTime: (\d+) keySize: \d+ valueSize: 20000 sequence: -1 headerKeys: \[h\] key: (\S+)"
    )
    assert re.findall(line, out, re.MULTILINE) == [(str(i), str(START_MS + i), f"key-{i}") for i in range(120)]
    finished_logs = logs[:-1]  # the active segment's indexes may be in memory or preallocated
    indexes = [log.with_suffix(suffix) for log in finished_logs for suffix in (".index", ".timeindex")]
    deadline = time.monotonic() + 10  # a closed segment's indexes are written with a delay
    while not all(index.exists() for index in indexes) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert re.search(
        r"^offset: \d+ position: \d+$", dump(java_tools, "--files", ",".join(map(str, indexes))), re.MULTILINE
    )
    assert dump(java_tools, "--index-sanity-check", "--files", ",".join(map(str, indexes))).count(
        "passed sanity check"
    ) == len(indexes)


def test_kafka_dump_log_reads_the_metadata_log(
    broker: Broker, java_tools: Jvm, make_topic: MakeTopic, data_dir: Path
) -> None:
    topic = make_topic(2)
    log = data_dir / "__cluster_metadata-0" / f"{0:020d}.log"
    out = dump(java_tools, "--cluster-metadata-decoder", "--files", str(log))
    assert re.search(rf'"type":"TOPIC_RECORD","version":\d+,"data":{{"name":"{topic}"', out)
    types = set(re.findall(r'"type":"(\w+)"', out))
    assert {"FEATURE_LEVEL_RECORD", "REGISTER_BROKER_RECORD", "TOPIC_RECORD", "PARTITION_RECORD"} <= types


def test_kafka_storage_info(broker: Broker, java_tools: Jvm, tmp_path: Path, data_dir: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:9093\ncontroller.listener.names=CONTROLLER\n"
        f"listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093\nlog.dirs={data_dir}\n"
    )
    done = java_tools.tool("kafka.tools.StorageTool", "info", "--config", str(config))
    assert done.status == 0, done.out + done.err
    assert re.search(
        r"Found metadata: \{cluster.id=[\w-]{22}, directory.id=[\w-]{22}, node.id=\d+, version=1\}", done.out
    )
