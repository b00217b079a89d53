"""Kafka's own command line tools, against the broker and on its files."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.compat.clients.confluent_client import ConfluentClient
from tests.compat.clients.jvm import Jvm, ToolResult
from tests.compat.conftest import Broker, MakeTopic
from tests.compat.record import START_MS, Sent, noise

TOOLS = "org.apache.kafka.tools."
DESCRIBE_LOG_DIRS, DESCRIBE_QUORUM, FIND_COORDINATOR, LIST_CONFIG_RESOURCES = 35, 55, 10, 74

Run = Callable[..., ToolResult]


@pytest.fixture
def run(broker: Broker, java_tools: Jvm) -> Run:
    def run_tool(name: str, *args: str, stdin: bytes = b"", status: int = 0) -> ToolResult:
        where = ("--bootstrap-server", broker.bootstrap)  # behind a subcommand's name, and before one in a few tools
        ordered = (*where, *args) if name.endswith(("FeatureCommand", "MetadataQuorumCommand")) else (*args, *where)
        done = java_tools.tool(name, *ordered, stdin=stdin)
        assert done.status == status, f"{name} {args} ended with {done.status}:\n{done.out}{done.err}"
        return done

    return run_tool


def need(api_keys: frozenset[int], key: int, what: str) -> None:
    if key not in api_keys:
        pytest.skip(f"the broker has no {what} (API {key})")


def test_kafka_topics(broker: Broker, run: Run, new_name: Callable[[], str]) -> None:
    """Create, list, describe, add partitions, delete; and the errors in between."""
    tool, topic = TOOLS + "TopicCommand", new_name()
    assert f"Created topic {topic}." in run(tool, "--create", "--topic", topic, "--partitions", "2", "--config", "retention.ms=1000000").out
    assert topic in run(tool, "--create", "--topic", topic, status=1).out
    run(tool, "--create", "--topic", topic, "--if-not-exists")
    assert topic in run(tool, "--list").lines()

    head, *partitions = run(tool, "--describe", "--topic", topic).lines()
    shape = rf"Topic: {topic}\tTopicId: [\w-]{{22}}\tPartitionCount: 2\tReplicationFactor: 1\tConfigs: (min.insync.replicas=1,)?(.*)"
    assert re.fullmatch(shape, head)[2] == "retention.ms=1000000"  # type: ignore[index]
    node = re.search(r"Leader: (\d+)", partitions[0])[1]  # type: ignore[index]
    assert [line.split("\tElr")[0].strip() for line in partitions] == [
        f"Topic: {topic}\tPartition: {i}\tLeader: {node}\tReplicas: {node}\tIsr: {node}" for i in range(2)
    ]

    run(tool, "--alter", "--topic", topic, "--partitions", "5")
    assert "PartitionCount: 5" in run(tool, "--describe", "--topic", topic).out
    assert run(tool, "--alter", "--topic", topic, "--partitions", "3", status=1).out.startswith("Error while executing topic command")
    run(tool, "--delete", "--topic", topic)
    assert topic not in run(tool, "--list").lines()
    assert "does not exist" in run(tool, "--describe", "--topic", topic, status=1).out


def test_kafka_get_offsets(broker: Broker, run: Run, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    times = [5, 1, 9, 9, 3]
    ConfluentClient().produce(broker.bootstrap, topic, [Sent(0, b"k", b"v%d" % i, (), START_MS + time) for i, time in enumerate(times)])

    def offsets(*args: str) -> list[str]:
        return [line.removeprefix(f"{topic}:") for line in run(TOOLS + "GetOffsetShell", "--topic", topic, *args).lines()]

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
    printed = [word for name in ("key", "offset", "headers", "partition") for word in ("--formatter-property", f"print.{name}=true")]
    place = ["--topic", topic, "--partition", "0", "--timeout-ms", "15000"]
    consumer = TOOLS + "consumer.ConsoleConsumer"
    assert run(consumer, *place, "--offset", "earliest", "--max-messages", "3", *printed).lines() == [
        "Partition:0\tOffset:0\th1:a,h2:b\tk1\tv1",
        "Partition:0\tOffset:1\th1:x,h1:y\tk2\tnull",
        "Partition:0\tOffset:2\th:1\tnull\tv3",
    ]
    assert run(consumer, *place, "--offset", "2", "--max-messages", "1").lines() == ["v3"]


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_producer_perf_test(run: Run, make_topic: MakeTopic, codec: str) -> None:
    topic = make_topic(3)
    size = ["--num-records", "20000", "--record-size", "100", "--throughput", "-1"]
    done = run(TOOLS + "ProducerPerformance", "--topic", topic, *size, "--command-property", "acks=all", f"compression.type={codec}")
    assert done.lines()[-1].startswith("20000 records sent")
    held = [int(line.rsplit(":", 1)[1]) for line in run(TOOLS + "GetOffsetShell", "--topic", topic).lines()]
    assert sum(held) == 20_000


def test_consumer_perf_test(run: Run, make_topic: MakeTopic, api_keys: frozenset[int]) -> None:
    need(api_keys, FIND_COORDINATOR, "groups")
    topic = make_topic(1)
    run(TOOLS + "ProducerPerformance", "--topic", topic, "--num-records", "1000", "--record-size", "100", "--throughput", "-1")
    done = run(TOOLS + "ConsumerPerformance", "--topic", topic, "--num-records", "1000", "--timeout", "15000")
    assert done.lines()[-1].split(", ")[4] == "1000"


def test_kafka_configs_describe(run: Run, make_topic: MakeTopic) -> None:
    """The topic's own config with its synonyms, and all of them with their defaults."""
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
    assert "segment.bytes=1073741824 sensitive=false synonyms={DEFAULT_CONFIG:log.segment.bytes=1073741824}" in everything
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
        (0, "Produce", 0, 13), (1, "Fetch", 4, 18), (2, "ListOffsets", 1, 11), (3, "Metadata", 0, 13), (18, "ApiVersions", 0, 4),
        (19, "CreateTopics", 2, 7), (20, "DeleteTopics", 1, 6), (22, "InitProducerId", 0, 5), (32, "DescribeConfigs", 1, 4),
        (37, "CreatePartitions", 0, 3), (60, "DescribeCluster", 0, 2),
    ]:
        assert f"{name}({key}): {low} to {high} [usable: {high}]" in out


def test_kafka_cluster(broker: Broker, run: Run) -> None:
    assert re.fullmatch(r"Cluster ID: [\w-]{22}", run(TOOLS + "ClusterTool", "cluster-id").out.strip())
    head, line = run(TOOLS + "ClusterTool", "list-endpoints").lines()
    host, port = broker.address
    assert head.split() == ["ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE"]
    assert line.split()[1:] == [host, str(port), "null", "unfenced", "broker"]


def test_kafka_features(run: Run) -> None:
    features = {line.split()[1]: line for line in run(TOOLS + "FeatureCommand", "describe").lines()}
    assert "FinalizedVersionLevel: 4.3-IV0" in features["metadata.version"]


def test_kafka_metadata_quorum(run: Run, api_keys: frozenset[int]) -> None:
    need(api_keys, DESCRIBE_QUORUM, "DescribeQuorum")
    out = run(TOOLS + "MetadataQuorumCommand", "describe", "--status").out
    assert re.search(r"^LeaderId:\s+\d+$", out, re.MULTILINE)


def test_kafka_log_dirs(run: Run, api_keys: frozenset[int], make_topic: MakeTopic) -> None:
    need(api_keys, DESCRIBE_LOG_DIRS, "DescribeLogDirs")
    topic = make_topic(1)
    assert f'"partition":"{topic}-0","size":0' in run(TOOLS + "LogDirsCommand", "--describe", "--topic-list", topic).out


@pytest.fixture
def data_dir(broker: Broker) -> Path:
    if broker.data_dir is None:
        pytest.skip("the files of a broker that runs elsewhere are not here (OTTLA_COMPAT_DATA)")
    return broker.data_dir


def dump(java_tools: Jvm, *args: str) -> str:
    done = java_tools.tool(TOOLS + "DumpLogSegments", *args)
    assert done.status == 0, done.out + done.err
    assert "isvalid: false" not in done.out
    for complaint in ("Mismatches in", "Found timestamp mismatch", "Found out of order", "Non-consecutive", "bytes in corrupt"):
        assert complaint.lower() not in done.out.lower(), done.out
    return done.out


def test_kafka_dump_log_reads_a_partition(broker: Broker, java_tools: Jvm, make_topic: MakeTopic, data_dir: Path) -> None:
    """The records of several segments, and every index agrees with its log."""
    topic = make_topic(1, segment_bytes="1048576", index_interval_bytes="1000")
    records = [Sent(0, b"key-%d" % i, noise(20_000, i), (("h", b"1"),), START_MS + i) for i in range(120)]
    for start in range(0, 120, 3):
        ConfluentClient().produce(broker.bootstrap, topic, records[start : start + 3])
    directory = data_dir / f"{topic}-0"
    logs = sorted(directory.glob("*.log"))
    assert len(logs) > 1
    out = dump(java_tools, "--print-data-log", "--files", ",".join(map(str, logs)))
    line = r"^\| offset: (\d+) CreateTime: (\d+) keySize: \d+ valueSize: 20000 sequence: -1 headerKeys: \[h\] key: (\S+)"
    assert re.findall(line, out, re.MULTILINE) == [(str(i), str(START_MS + i), f"key-{i}") for i in range(120)]
    finished_logs = logs[:-1]  # the active segment's indexes may be in memory, or allocated beyond their last entry
    indexes = [log.with_suffix(suffix) for log in finished_logs for suffix in (".index", ".timeindex")]
    assert re.search(r"^offset: \d+ position: \d+$", dump(java_tools, "--files", ",".join(map(str, indexes))), re.MULTILINE)
    assert dump(java_tools, "--index-sanity-check", "--files", ",".join(map(str, indexes))).count("passed sanity check") == len(indexes)


def test_kafka_dump_log_reads_the_metadata_log(broker: Broker, java_tools: Jvm, make_topic: MakeTopic, data_dir: Path) -> None:
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
    assert re.search(r"Found metadata: \{cluster.id=[\w-]{22}, directory.id=[\w-]{22}, node.id=\d+, version=1\}", done.out)
