"""Node configuration accepts Kafka's server.properties and rejects invalid configs with clear messages."""

import pathlib
import re

import pytest

from ottla.node.config import ConfigError, NodeConfig, node_config, read_config_file
from ottla.node.listeners import ListenerConfig

# The settings that Apache Kafka 4 ships for a combined node.
SHIPPED = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def configured(**settings: str) -> NodeConfig:
    properties = {name.replace("_", "."): value for name, value in settings.items()}
    return node_config(properties, directory="/start", canonical_host=lambda: "machine.example")


def rejection(**settings: str) -> str:
    with pytest.raises(ConfigError) as caught:
        configured(**settings)
    return str(caught.value)


def test_node_config_accepts_kafkas_shipped_file(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text(SHIPPED)
    properties, sources = read_config_file(str(path))
    config = node_config(properties, sources=sources, canonical_host=lambda: "machine.example")
    assert config.node_id == 1
    assert config.roles == ("broker", "controller")
    assert config.listeners == (ListenerConfig("PLAINTEXT", "", 9092, "localhost", 9092),)
    assert config.controller_listeners == (ListenerConfig("CONTROLLER", "", 9093, "localhost", 9093),)
    assert config.inter_broker_listener == "PLAINTEXT"
    assert (config.log_dirs, config.metadata_log_dir) == (("/tmp/kraft-combined-logs",), "/tmp/kraft-combined-logs")
    assert config.integer("log.segment.bytes") == 1 << 30
    assert config.static == properties | {"broker.id": "1"}
    assert config.notes[0] == "CONTROLLER://:9093 is not opened: a single-node cluster needs no controller listener"


def test_node_config_defaults_to_a_combined_node() -> None:
    config = configured()
    assert (config.node_id, config.roles, config.cluster_id, config.rack) == (1, ("broker", "controller"), None, None)
    assert config.listeners == (ListenerConfig("PLAINTEXT", "", 9092, "machine.example", 9092),)
    assert config.log_dirs == ("/tmp/kafka-logs",)
    assert config.notes == ()


def test_relative_directories_are_resolved_against_the_working_directory() -> None:
    config = configured(log_dirs="a,/b", metadata_log_dir="m")
    assert (config.log_dirs, config.metadata_log_dir) == (("/start/a", "/b"), "/start/m")
    assert configured(log_dir="a").log_dirs == ("/start/a",)
    assert configured(log_dirs="a", log_dir="b").log_dirs == ("/start/a",)


@pytest.mark.parametrize(
    ("settings", "listener"),
    [
        ({"listeners": "PLAINTEXT://127.0.0.1:1"}, ListenerConfig("PLAINTEXT", "127.0.0.1", 1, "127.0.0.1", 1)),
        ({"listeners": "plaintext://:1"}, ListenerConfig("PLAINTEXT", "", 1, "machine.example", 1)),
        ({"listeners": "PLAINTEXT://[::1]:1"}, ListenerConfig("PLAINTEXT", "::1", 1, "::1", 1)),
        ({"listeners": "PLAINTEXT://a:0"}, ListenerConfig("PLAINTEXT", "a", 0, "a", 0)),
        (
            {"listeners": "PLAINTEXT://0.0.0.0:1", "advertised.listeners": "PLAINTEXT://outside:2"},
            ListenerConfig("PLAINTEXT", "0.0.0.0", 1, "outside", 2),
        ),
        (
            {"listeners": "INSIDE://h:1", "listener.security.protocol.map": "INSIDE:PLAINTEXT"},
            ListenerConfig("INSIDE", "h", 1, "h", 1),
        ),
    ],
)
def test_node_config_parses_listeners(settings: dict[str, str], listener: ListenerConfig) -> None:
    assert configured(**settings).listeners == (listener,)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"listeners": "PLAINTEXT:9092"}, "listeners = 'PLAINTEXT:9092': 'PLAINTEXT:9092' must be NAME://host:port"),
        ({"listeners": "PLAINTEXT://::1:9092"}, "must be NAME://host:port"),
        ({"listeners": "PLAINTEXT://a:70000"}, "the port of listener PLAINTEXT must be from 0 to 65535"),
        ({"listeners": "PLAINTEXT://a:-1"}, "the port of listener PLAINTEXT must be from 0 to 65535"),
        ({"listeners": "PLAINTEXT://a:1,PLAINTEXT://a:2"}, "duplicate listener PLAINTEXT"),
        (
            {"listeners": "PLAINTEXT://a:1,C://b:1", "controller.listener.names": "C"},
            "listeners PLAINTEXT and C have the same port 1",
        ),
        (
            {"listeners": "PLAINTEXT://0.0.0.0:1"},
            "set advertised.listeners to an address that clients can reach, or leave the host empty",
        ),
        (
            {"advertised.listeners": "PLAINTEXT://0.0.0.0:1"},
            "advertised.listeners = 'PLAINTEXT://0.0.0.0:1': clients cannot connect to 0.0.0.0, the advertised",
        ),
        ({"advertised.listeners": "OUT://a:1"}, "unknown listener OUT; the listeners are PLAINTEXT"),
        ({"listeners": "SSL://a:1"}, "listener SSL is SSL; only PLAINTEXT listeners are supported"),
        ({"listeners": "SASL_SSL://a:1"}, "listener SASL_SSL is SASL_SSL; only PLAINTEXT listeners are supported"),
        (
            {"listeners": "INSIDE://a:1"},
            "listener.security.protocol.map: missing entry for listener INSIDE; it has: PLAINTEXT, SSL,",
        ),
        (
            {"listener.security.protocol.map": "PLAINTEXT:TLS"},
            "'PLAINTEXT:TLS' must be NAME:PROTOCOL, where PROTOCOL is one of",
        ),
        ({"listeners": "C://a:1", "controller.listener.names": "C"}, "no listener for clients"),
        (
            {"process.roles": "broker"},
            "must be broker,controller; a node without the role controller is not supported",
        ),
        ({"process.roles": "controller"}, "a node without the role broker is not supported"),
        ({"process.roles": "brocker"}, "process.roles = 'brocker': 'brocker' is not one of broker, controller"),
        ({"node.id": "-1"}, "node.id = '-1': must be at least 0"),
        ({"node.id": "1", "broker.id": "2"}, "broker.id = '2': must equal node.id, which is 1"),
        ({"controller.quorum.voters": "1@a:1,2@b:1"}, "controller.quorum.voters = '1@a:1,2@b:1': has 2 voters"),
        ({"controller.quorum.voters": "2@a:1"}, "must contain this node (node.id 1)"),
        ({"controller.quorum.voters": "a:1"}, "must be a list of id@host:port"),
        ({"controller.quorum.bootstrap.servers": "a:1,b:1"}, "has 2 controllers"),
        (
            {"inter.broker.listener.name": "X"},
            "inter.broker.listener.name = 'X': must be one of the listeners: PLAINTEXT",
        ),
        (
            {"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"},
            "security.inter.broker.protocol: cannot be set together with inter.broker.listener.name",
        ),
        ({"num.partition": "3"}, "num.partition: unknown config; did you mean num.partitions?"),
        (
            {"zookeeper.connect": "a"},
            "zookeeper.connect: removed in Kafka 4.0, which does not use ZooKeeper; delete the line",
        ),
        ({"leader.replication.throttled.rate": "5"}, "leader.replication.throttled.rate: unknown config"),
        ({"num.partitions": "many"}, "num.partitions = 'many': must be a 32-bit integer, at least 1"),
        ({"log.dirs": ""}, "log.dirs = '': must not be empty"),
    ],
)
def test_node_config_rejects_invalid_configs(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        node_config(settings, directory="/start", canonical_host=lambda: "machine.example")


def test_config_error_contains_the_file_and_line(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("node.id=1\n\nnum.partition=3\n")
    properties, sources = read_config_file(str(path))
    with pytest.raises(ConfigError) as caught:
        node_config(properties, sources=sources)
    assert str(caught.value) == f"{path}:3: num.partition: unknown config; did you mean num.partitions?"


def test_config_error_for_an_unreadable_file(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file or directory"):
        read_config_file(str(tmp_path / "absent.properties"))
    (tmp_path / "broken.properties").write_text("a=\\u12")
    with pytest.raises(ConfigError, match=r"line 1: .* four hexadecimal digits"):
        read_config_file(str(tmp_path / "broken.properties"))


def test_notes_list_configs_without_effect_unless_they_have_their_default() -> None:
    config = configured(
        num_network_threads="3", num_io_threads="4", num_partitions="5", ssl_key_password="secret", rsm_config_x="1"
    )
    assert config.notes == ("configs that have no effect: num.io.threads, rsm.config.x, ssl.key.password",)


def test_node_config_returns_typed_values() -> None:
    config = configured(num_partitions="5", auto_create_topics_enable="False", broker_rack="r1")
    assert (config.integer("num.partitions"), config.flag("auto.create.topics.enable"), config.rack) == (5, False, "r1")
    assert (config.integer("socket.request.max.bytes"), config.flag("delete.topic.enable")) == (104857600, True)


def test_broker_id_and_node_id_are_both_set() -> None:
    assert rejection(broker_id="x").startswith("broker.id = 'x': must be a 32-bit integer")
    config = configured(broker_id="7")
    assert (config.node_id, config.static["node.id"], config.static["broker.id"]) == (7, "7", "7")
