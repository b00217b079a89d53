"""The CLI behaves the same with Ottla and Apache Kafka (set OTTLA_COMPAT_BOOTSTRAP to a running one)."""

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla.cli.main import main
from ottla.client import TopicPartition
from ottla.client.consumer import Consumer
from tests.compat.conftest import Broker, MakeTopic

Ottla = Callable[..., Any]


@pytest.fixture
def ottla(broker: Broker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ottla:
    """Run a command and return its output, parsed as JSON (a list if there are several documents)."""
    monkeypatch.setenv("OTTLA_BOOTSTRAP", broker.bootstrap)

    def run(*arguments: str, given: bytes = b"", lines: bool = False, code: int = 0) -> Any:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        capsys.readouterr()
        ended = main(list(arguments))
        written = capsys.readouterr()
        assert ended == code, written.err
        if code:
            return written.err
        if lines:
            return [json.loads(line) for line in written.out.splitlines()]
        return json.loads(written.out) if "--json" in arguments and written.out else written.out

    return run


@pytest.fixture
def group(broker: Broker, new_name: Callable[[], str]) -> Iterator[str]:
    name = new_name()
    yield name
    listed = [each.group for each in _groups(broker)]
    if name in listed:
        main(["group", "delete", name, "--yes", "--bootstrap", broker.bootstrap])


def _groups(broker: Broker) -> list[Any]:
    from ottla.client import Admin

    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        return list(admin.list_groups().values())


def test_topic_lifecycle(ottla: Ottla, new_name: Callable[[], str]) -> None:
    name = new_name()
    (created,) = ottla("topic", "create", name, "-p", "2", "-c", "retention.ms=100000", "--json")
    assert (created["name"], created["partitions"], created["replication_factor"]) == (name, 2, 1)
    assert created["configs"]["retention.ms"] == "100000"
    assert {"name": name, "partitions": 2, "replication_factor": 1, "is_internal": False} in ottla(
        "topic", "list", "--json"
    )
    ottla("produce", name, "-k", "k", "-v", "v", "-p", "1")
    assert "Pass --yes" in ottla("topic", "alter", name, "-p", "3", code=1)
    assert ottla("topic", "alter", name, "-p", "3", "--unset", "retention.ms", "--yes", "--json") == {
        "name": name, "partitions": 3, "configs": {"retention.ms": None},
    }  # fmt: skip
    (result,) = ottla("topic", "describe", name, "--json")
    assert (result["id"], result["configs"], result["is_internal"]) == (created["id"], {}, False)
    assert [(each["partition"], each["earliest"], each["latest"]) for each in result["partitions"]] == [
        (0, 0, 0),
        (1, 0, 1),
        (2, 0, 0),
    ]
    assert "TOPIC_ALREADY_EXISTS" in ottla("topic", "create", name, code=1)
    assert "has no config 'retention.mss'" in ottla("topic", "alter", name, "-c", "retention.mss=1", code=1)
    assert "INVALID_CONFIG" in ottla("topic", "alter", name, "-c", "retention.ms=x", code=1)
    assert f"Did you mean {name}?" in ottla("topic", "describe", f"{name}x", code=1)
    assert ottla("topic", "delete", name, "--yes", "--json") == [name]


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_records_round_trip(ottla: Ottla, make_topic: MakeTopic, codec: str) -> None:
    source, target = make_topic(), make_topic()
    ottla(
        "produce",
        source,
        "--keys",
        "-H",
        "h=1",
        "--timestamp",
        "2026-01-31T12:00:00Z",
        "--compression",
        codec,
        given=b"a\t1\nb\t\xff\n",
    )
    ottla("produce", source, "--null", "", given=b"\n")
    written = ottla("consume", source, "--json", lines=True)
    assert [(each["offset"], each["key"], each.get("value"), each.get("value_base64")) for each in written] == [
        (0, "a", "1", None), (1, "b", None, "/w=="), (2, None, None, None),
    ]  # fmt: skip
    assert [(each["timestamp"], each["headers"]) for each in written[:2]] == [
        (1_769_860_800_000, [{"key": "h", "value": "1"}])
    ] * 2
    ottla("produce", target, "--json", given="\n".join(map(json.dumps, written)).encode())
    assert ottla("consume", target, "--json", lines=True) == [{**each, "topic": target} for each in written]
    assert [each["offset"] for each in ottla("consume", source, "--from", "1", "--json", lines=True)] == [1, 2]
    assert [each["offset"] for each in ottla("consume", source, "--from=-1", "--json", lines=True)] == [2]
    assert [each["offset"] for each in ottla("consume", source, "--from", "1h", "--json", lines=True)] == [2]
    assert len(ottla("consume", source, "--max", "1", "--json", lines=True)) == 1


def test_group_lifecycle(ottla: Ottla, broker: Broker, make_topic: MakeTopic, group: str) -> None:
    topic = make_topic(partitions=2)
    for partition in ("0", "1"):
        ottla("produce", topic, "-p", partition, given=b"1\n2\n3\n")
    assert ottla("consume", topic, "--group", group) in ("1\n2\n3\n" * 2, "1\n1\n2\n2\n3\n3\n")
    ottla("produce", topic, "-p", "0", "-v", "4")
    lags = ottla("group", "lag", group, "--json")["partitions"]
    assert [(each["partition"], each["committed"], each["end"], each["lag"]) for each in lags] == [
        (0, 3, 4, 1),
        (1, 3, 3, 0),
    ]
    result = ottla("group", "reset-offsets", group, "--topic", f"{topic}:0", "--shift-by", "-2", "--execute", "--json")
    assert result == {
        "group": group,
        "is_executed": True,
        "partitions": [{"topic": topic, "partition": 0, "old": 3, "new": 1}],
    }
    assert ottla("group", "lag", group, "--json")["total"] == 3
    with Consumer(bootstrap_servers=broker.bootstrap, group_id=group) as consumer:
        consumer.subscribe([topic])
        while len(consumer.assignment) < 2:
            consumer.poll(0.1)
        (described,) = ottla("group", "describe", group, "--json")
        assert (described["state"], described["protocol"]) == ("Stable", "range")
        assert described["members"][0]["partitions"] == [
            {"topic": topic, "partition": 0},
            {"topic": topic, "partition": 1},
        ]
        owners = {each["member_id"] for each in ottla("group", "lag", group, "--json")["partitions"]}
        assert owners == {described["members"][0]["member_id"]}
        assert "Stop its consumers" in ottla(
            "group", "reset-offsets", group, "--all-topics", "--to-earliest", "--execute", code=1
        )
        assert "NON_EMPTY_GROUP" in ottla("group", "delete", group, "--yes", code=1)
    assert group in [each["group"] for each in ottla("group", "list", "--state", "Empty", "--json")]
    assert ottla("group", "delete", group, "--yes", "--json") == [group]
    assert f"group '{group}' does not exist" in ottla("group", "describe", group, code=1)


def test_consumer_protocol_group_is_listed(
    ottla: Ottla, broker: Broker, api_keys: frozenset[int], make_topic: MakeTopic, group: str
) -> None:
    """Its members are not supported yet; state, offsets and lag are."""
    if 69 not in api_keys:  # Ottla lists 68, but rejects each of its requests
        pytest.skip("the broker has no such groups")
    import confluent_kafka

    topic = make_topic()
    ottla("produce", topic, given=b"1\n2\n3\n")
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    record = None
    while record is None:
        record = consumer.poll(1)
    consumer.commit(message=record, asynchronous=False)
    assert f"{group}  Stable, type consumer: describing its members is not supported yet\n" == ottla(
        "group", "describe", group
    )
    assert ottla("group", "describe", group, "--json")[0]["members"] is None
    assert ottla("group", "lag", group, "--json")["total"] == 2
    assert "Stop its consumers" in ottla(
        "group", "reset-offsets", group, "--all-topics", "--to-earliest", "--execute", code=1
    )
    consumer.close()
    assert (
        ottla("group", "reset-offsets", group, "--all-topics", "--to-earliest", "--execute", "--json")["partitions"][0][
            "new"
        ]
        == 0
    )


def test_reset_creates_a_group(ottla: Ottla, make_topic: MakeTopic, group: str) -> None:
    topic = make_topic()
    ottla("produce", topic, given=b"1\n2\n3\n")
    ottla("group", "reset-offsets", group, "--topic", topic, "--to-offset", "2", "--execute")
    assert ottla("consume", topic, "--group", group) == "3\n"


def test_config_commands(ottla: Ottla, make_topic: MakeTopic, new_name: Callable[[], str]) -> None:
    topic = make_topic()
    ottla("config", "set", "topic", topic, "cleanup.policy=compact")
    ottla("config", "set", "topic", topic, "cleanup.policy+=delete")
    (entry,) = ottla("config", "describe", "topic", topic, "cleanup.policy", "--doc", "--json")
    assert (entry["value"], entry["source"], entry["is_read_only"]) == ("compact,delete", "dynamic_topic", False)
    assert entry["documentation"]
    assert [each["source"] for each in entry["synonyms"]] == ["dynamic_topic", "default"]
    ottla("config", "unset", "topic", topic, "cleanup.policy")
    assert ottla("config", "describe", "topic", topic, "cleanup.policy", "--json")[0]["source"] == "default"
    name = new_name()
    for kind, config, value, source in (
        ("client-metrics", "interval.ms", "5000", "client_metrics"),
        ("group", "consumer.session.timeout.ms", "50000", "group"),
    ):
        ottla("config", "set", kind, name, f"{config}={value}")
        (entry,) = ottla("config", "describe", kind, name, config, "--json")
        assert (entry["value"], entry["source"]) == (value, source)
        ottla("config", "unset", kind, name, config)
        assert ottla("config", "describe", kind, name, config, "--json")[0]["source"] == "default"
    assert ottla("config", "describe", "broker", "1", "num.partitions", "--json")[0]["name"] == "num.partitions"
    assert "broker '77' does not exist" in ottla("config", "describe", "broker", "77", code=1)


def test_cluster_describe(ottla: Ottla) -> None:
    result = ottla("cluster", "describe", "--json")
    assert (result["controller"], [each["id"] for each in result["brokers"]]) == (1, [1])
    assert (result["quorum"]["leader"], [each["id"] for each in result["quorum"]["voters"]]) == (1, [1])
    assert {each["name"]: each["level"] for each in result["features"]}["metadata.version"] == 30


def test_perf_commands(ottla: Ottla, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)
    assert ottla("perf", "produce", topic, "-n", "1000", "-s", "10", "--json")["records"] == 1000
    assert ottla("perf", "consume", topic, "--json")["bytes"] == 10_000
    assert ottla("perf", "latency", topic, "-n", "3", "--json")["latency_ms"]["max"] > 0


def test_lag_watch(broker: Broker, make_topic: MakeTopic, group: str) -> None:
    """Prints one line per check until Ctrl-C."""
    from ottla.client import Admin, Producer

    topic = make_topic()
    with Admin(bootstrap_servers=broker.bootstrap) as admin, Producer(bootstrap_servers=broker.bootstrap) as producer:
        producer.send(topic, b"1").result(10)
        admin.alter_group_offsets(group, {TopicPartition(topic, 0): 0})
        arguments = [sys.executable, "-m", "ottla", "group", "lag", group, "--follow", "--json", "--interval", "0.1"]
        with subprocess.Popen(
            arguments, env={**os.environ, "OTTLA_BOOTSTRAP": broker.bootstrap}, stdout=subprocess.PIPE
        ) as following:
            assert following.stdout is not None
            assert json.loads(following.stdout.readline())["total"] == 1
            producer.send(topic, b"2").result(10)
            while json.loads(following.stdout.readline())["total"] != 2:
                pass
            following.send_signal(signal.SIGINT)
            following.stdout.read()
            assert following.wait(30) == 130
