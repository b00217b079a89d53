"""A node takes Kafka's server.properties, and says clearly what it cannot take."""

import pathlib
import re

import pytest

from ottla.node.config import ConfigError, NodeConfig, node_config, read_config_file
from ottla.node.listeners import ListenerConfig

# The settings that Apache Kafka 4 ships for one combined node.
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


def refused(**settings: str) -> str:
    with pytest.raises(ConfigError) as refusal:
        configured(**settings)
    return str(refusal.value)


def test_kafkas_shipped_file_is_taken_as_it_is(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text(SHIPPED)
    properties, places = read_config_file(str(path))
    config = node_config(properties, places=places, canonical_host=lambda: "machine.example")
    assert config.node_id == 1
    assert config.roles == ("broker", "controller")
    assert config.listeners == (ListenerConfig("PLAINTEXT", "", 9092, "localhost", 9092),)
    assert config.controller_listeners == (ListenerConfig("CONTROLLER", "", 9093, "localhost", 9093),)
    assert config.inter_broker_listener == "PLAINTEXT"
    assert (config.log_dirs, config.metadata_log_dir) == (("/tmp/kraft-combined-logs",), "/tmp/kraft-combined-logs")
    assert config.integer("log.segment.bytes") == 1 << 30
    assert config.static == properties | {"broker.id": "1"}
    assert (
        config.notes[0] == "CONTROLLER://:9093 is not opened: a single node has nothing to serve to other controllers"
    )


def test_nothing_set_is_one_combined_node() -> None:
    config = configured()
    assert (config.node_id, config.roles, config.cluster_id, config.rack) == (1, ("broker", "controller"), None, None)
    assert config.listeners == (ListenerConfig("PLAINTEXT", "", 9092, "machine.example", 9092),)
    assert config.log_dirs == ("/tmp/kafka-logs",)
    assert config.notes == ()


def test_relative_directories_begin_where_the_node_was_started() -> None:
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
def test_listeners(settings: dict[str, str], listener: ListenerConfig) -> None:
    assert configured(**settings).listeners == (listener,)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"listeners": "PLAINTEXT:9092"}, "listeners = 'PLAINTEXT:9092': 'PLAINTEXT:9092' must be NAME://host:port"),
        ({"listeners": "PLAINTEXT://::1:9092"}, "must be NAME://host:port"),
        ({"listeners": "PLAINTEXT://a:70000"}, "the port of PLAINTEXT must be from 0 to 65535"),
        ({"listeners": "PLAINTEXT://a:-1"}, "the port of PLAINTEXT must be from 0 to 65535"),
        ({"listeners": "PLAINTEXT://a:1,PLAINTEXT://a:2"}, "names the listener PLAINTEXT twice"),
        (
            {"listeners": "PLAINTEXT://a:1,C://b:1", "controller.listener.names": "C"},
            "PLAINTEXT and C cannot both have the port 1",
        ),
        (
            {"listeners": "PLAINTEXT://0.0.0.0:1"},
            "set advertised.listeners to one that clients can reach, or leave the host empty",
        ),
        (
            {"advertised.listeners": "PLAINTEXT://0.0.0.0:1"},
            "advertised.listeners = 'PLAINTEXT://0.0.0.0:1': PLAINTEXT would tell clients",
        ),
        ({"advertised.listeners": "OUT://a:1"}, "names OUT, which is none of the listeners PLAINTEXT"),
        ({"listeners": "SSL://a:1"}, "SSL is SSL: so far only PLAINTEXT listeners can be served"),
        ({"listeners": "SASL_SSL://a:1"}, "SASL_SSL is SASL_SSL: so far only PLAINTEXT listeners can be served"),
        (
            {"listeners": "INSIDE://a:1"},
            "listener.security.protocol.map: has no entry for the listener INSIDE; it has: PLAINTEXT, SSL,",
        ),
        (
            {"listener.security.protocol.map": "PLAINTEXT:TLS"},
            "'PLAINTEXT:TLS' must be NAME:PROTOCOL, where PROTOCOL is one of",
        ),
        ({"listeners": "C://a:1", "controller.listener.names": "C"}, "has none for clients"),
        (
            {"process.roles": "broker"},
            "must be broker,controller: so far a node is both, and cannot be without the role controller",
        ),
        ({"process.roles": "controller"}, "cannot be without the role broker"),
        ({"process.roles": "brocker"}, "process.roles = 'brocker': 'brocker' is not one of broker, controller"),
        ({"node.id": "-1"}, "node.id = '-1': must be at least 0"),
        ({"node.id": "1", "broker.id": "2"}, "broker.id = '2': must be the same as node.id, which is 1"),
        ({"controller.quorum.voters": "1@a:1,2@b:1"}, "controller.quorum.voters = '1@a:1,2@b:1': names 2 voters"),
        ({"controller.quorum.voters": "2@a:1"}, "must name this node, whose node.id is 1"),
        ({"controller.quorum.voters": "a:1"}, "must be a list of id@host:port"),
        ({"controller.quorum.bootstrap.servers": "a:1,b:1"}, "names 2 controllers"),
        (
            {"inter.broker.listener.name": "X"},
            "inter.broker.listener.name = 'X': must be one of the listeners PLAINTEXT",
        ),
        (
            {"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"},
            "security.inter.broker.protocol: cannot be set together with inter.broker.listener.name",
        ),
        ({"num.partition": "3"}, "num.partition: is not a config that Kafka 4.3 knows; did you mean num.partitions?"),
        ({"zookeeper.connect": "a"}, "zookeeper.connect: ZooKeeper is gone since Kafka 4.0; remove the line"),
        ({"leader.replication.throttled.rate": "5"}, "leader.replication.throttled.rate: is not a config"),
        ({"num.partitions": "many"}, "num.partitions = 'many': must be a 32-bit integer, at least 1"),
        ({"log.dirs": ""}, "log.dirs = '': must not be empty"),
    ],
)
def test_what_cannot_be_taken(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        node_config(settings, directory="/start", canonical_host=lambda: "machine.example")


def test_a_mistake_in_a_file_is_told_with_its_line(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("node.id=1\n\nnum.partition=3\n")
    properties, places = read_config_file(str(path))
    with pytest.raises(ConfigError) as refusal:
        node_config(properties, places=places)
    assert (
        str(refusal.value)
        == f"{path}:3: num.partition: is not a config that Kafka 4.3 knows; did you mean num.partitions?"
    )


def test_a_file_that_cannot_be_read(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file or directory"):
        read_config_file(str(tmp_path / "absent.properties"))
    (tmp_path / "broken.properties").write_text("a=\\u12")
    with pytest.raises(ConfigError, match=r"line 1: .* four hexadecimal digits"):
        read_config_file(str(tmp_path / "broken.properties"))


def test_what_has_no_effect_is_named_unless_it_is_the_default() -> None:
    config = configured(
        num_network_threads="3", num_io_threads="4", num_partitions="5", ssl_key_password="secret", rsm_config_x="1"
    )
    assert config.notes == ("set, but without effect so far: num.io.threads, rsm.config.x, ssl.key.password",)


def test_typed_values() -> None:
    config = configured(num_partitions="5", auto_create_topics_enable="False", broker_rack="r1")
    assert (config.integer("num.partitions"), config.flag("auto.create.topics.enable"), config.rack) == (5, False, "r1")
    assert (config.integer("socket.request.max.bytes"), config.flag("delete.topic.enable")) == (104857600, True)


def test_both_names_of_the_id_are_kept() -> None:
    assert refused(broker_id="x").startswith("broker.id = 'x': must be a 32-bit integer")
    config = configured(broker_id="7")
    assert (config.node_id, config.static["node.id"], config.static["broker.id"]) == (7, "7", "7")
