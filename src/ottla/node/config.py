"""Node configuration: Kafka's `server.properties` and single settings, validated and typed before the node starts."""

import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ottla.metadata.configs import (
    BROKER_CONFIGS,
    ConfigValue,
    InvalidConfig,
    broker_definition,
    broker_value,
    nearest,
    parse,
)
from ottla.metadata.configs.constraints import validate_broker_constraints
from ottla.metadata.configs.support import unsupported_names
from ottla.node.listeners import ListenerConfig, read_address, read_listeners
from ottla.node.properties import PropertiesError, decode_properties, read_properties
from ottla.server.connection_quotas import read_overrides

_ROLES = ("broker", "controller")
_PLUGIN_PREFIXES = {
    "remote.log.storage.manager.impl.prefix": "rsm.config.",
    "remote.log.metadata.manager.impl.prefix": "rlmm.config.",
}
_REMOVED = {
    "zookeeper.connect": "removed in Kafka 4.0, which does not use ZooKeeper; delete the line",
    "inter.broker.protocol.version": "removed in Kafka 4.0, where versions are cluster features; delete the line",
    "log.message.format.version": "removed in Kafka 4.0, which has one message format; delete the line",
    "log.message.timestamp.difference.max.ms": "removed in Kafka 4.0; use log.message.timestamp.before.max.ms and "
    "log.message.timestamp.after.max.ms",
    "log.message.downconversion.enable": "removed in Kafka 4.0, which has one message format; delete the line",
}


class ConfigError(Exception):
    """An invalid configuration. The message names the config and what is allowed."""

    def __init__(self, name: str, reason: str, value: str | None = None, source: str | None = None) -> None:
        super().__init__(name, reason, value, source)
        self.name = name
        self.reason = reason
        self.value = value
        self.source = source
        """The file and line that the config was read from."""

    def __str__(self) -> str:
        source = f"{self.source}: " if self.source else ""
        value = "" if self.value is None else f" = {self.value!r}"
        return f"{source}{self.name}{value}: {self.reason}"


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """Configuration of a combined node. Directories are absolute."""

    node_id: int
    roles: tuple[str, ...]
    listeners: tuple[ListenerConfig, ...]
    """Listeners for clients and brokers."""
    controller_listeners: tuple[ListenerConfig, ...]
    inter_broker_listener: str
    log_dirs: tuple[str, ...]
    metadata_log_dir: str
    cluster_id: str | None
    """The cluster that the data must belong to; None accepts the one on disk, or creates one."""
    rack: str | None
    metrics_address: tuple[str, int] | None
    """Address of the metrics endpoint, if it is enabled."""
    static: Mapping[str, str]
    """Every config that was set, as text."""
    notes: tuple[str, ...] = field(default=())
    """Notes to show at startup."""

    def value(self, name: str) -> ConfigValue:
        """Return the typed value of a broker config, or its default."""
        return broker_value(name, self.static)

    def integer(self, name: str) -> int:
        value = self.value(name)
        assert isinstance(value, int), name
        return value

    def flag(self, name: str) -> bool:
        value = self.value(name)
        assert isinstance(value, bool), name
        return value


def read_config_file(path: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return a file's configs, and the file and line of each. Raises ConfigError if the file cannot be read."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise ConfigError(path, f"cannot be read: {error.strerror}") from error
    try:
        properties = read_properties(decode_properties(data))
    except PropertiesError as error:
        raise ConfigError(path, str(error)) from error
    return {found.key: found.value for found in properties}, {found.key: f"{path}:{found.line}" for found in properties}


def node_config(
    properties: Mapping[str, str],
    *,
    sources: Mapping[str, str] | None = None,
    cluster_id: str | None = None,
    directory: str | None = None,
    canonical_host: Callable[[], str] = socket.getfqdn,
) -> NodeConfig:
    """Validate and type a node's configs. `sources` has their files and lines; paths are relative to `directory`."""
    try:
        return _validate(dict(properties), cluster_id, directory or os.getcwd(), canonical_host)
    except (ConfigError, InvalidConfig) as error:
        raise ConfigError(error.name, error.reason, error.value, (sources or {}).get(error.name)) from error


def _validate(
    static: dict[str, str], cluster_id: str | None, directory: str, canonical_host: Callable[[], str]
) -> NodeConfig:
    for name, text in static.items():
        _check_one(name, text, static)
    validate_broker_constraints(static)
    node_id = _node_id(static)
    roles = _roles(static)
    _check_quorum(node_id, static)
    clients, controllers = read_listeners(static, canonical_host)
    log_dirs = tuple(os.path.join(directory, path) for path in _log_dirs(static))
    metrics = static.get("ottla.metrics.listener", "").strip()
    _check_overrides(static)
    metadata_log_dir = static.get("metadata.log.dir", "").strip()
    notes = []
    if controllers:
        addresses = ", ".join(str(listener) for listener in controllers)
        notes.append(f"{addresses} is not opened: a single-node cluster needs no controller listener")
    ignored = unsupported_names(static)
    if ignored:
        notes.append(f"configs that have no effect: {', '.join(ignored)}")
    return NodeConfig(
        node_id=node_id,
        roles=roles,
        listeners=clients,
        controller_listeners=controllers,
        inter_broker_listener=_inter_broker_listener(static, clients),
        log_dirs=log_dirs,
        metadata_log_dir=os.path.join(directory, metadata_log_dir) if metadata_log_dir else log_dirs[0],
        cluster_id=cluster_id,
        rack=static.get("broker.rack", "").strip() or None,
        metrics_address=read_address("ottla.metrics.listener", metrics) if metrics else None,
        static=static,
        notes=tuple(notes),
    )


def _check_one(name: str, text: str, static: Mapping[str, str]) -> None:
    definition = broker_definition(name)
    if definition is not None and not (definition.internal and definition.dynamic):
        parse(definition, text)
        return
    if any(name.startswith(static.get(config, prefix)) for config, prefix in _PLUGIN_PREFIXES.items()):
        return
    if name in _REMOVED:
        raise ConfigError(name, _REMOVED[name])
    suggestion = nearest(name, BROKER_CONFIGS)
    raise ConfigError(name, "unknown config" + (f"; did you mean {suggestion}?" if suggestion else ""))


def _check_overrides(static: Mapping[str, str]) -> None:
    name = "max.connections.per.ip.overrides"
    try:
        read_overrides(static.get(name, ""))
    except ValueError as error:
        raise ConfigError(name, str(error), static[name]) from error


def _node_id(static: dict[str, str]) -> int:
    """Return the node id. Set `broker.id`, the old name of `node.id`, to the same value, as Kafka does."""
    texts = {name: static[name].strip() for name in ("node.id", "broker.id") if name in static}
    if len(set(texts.values())) > 1:
        raise ConfigError("broker.id", f"must equal node.id, which is {texts['node.id']}", texts["broker.id"])
    text = next(iter(texts.values()), "1")
    for name in ("node.id", "broker.id"):
        static.setdefault(name, text)
    node_id = parse(BROKER_CONFIGS["node.id"], text)
    assert isinstance(node_id, int)
    return node_id


def _roles(static: dict[str, str]) -> tuple[str, ...]:
    text = static.setdefault("process.roles", "broker,controller")
    roles = parse(BROKER_CONFIGS["process.roles"], text)
    assert isinstance(roles, tuple)
    missing = [role for role in _ROLES if role not in roles]
    if missing:
        reason = f"must be broker,controller; a node without the role {missing[0]} is not supported"
        raise ConfigError("process.roles", reason, text)
    return roles


def _check_quorum(node_id: int, static: Mapping[str, str]) -> None:
    voters = broker_value("controller.quorum.voters", static)
    servers = broker_value("controller.quorum.bootstrap.servers", static)
    assert isinstance(voters, tuple)
    assert isinstance(servers, tuple)
    if len(voters) > 1:
        reason = (
            f"has {len(voters)} voters, but only single-node quorums are supported; "
            f"set it to {node_id}@host:port or remove it"
        )
        raise ConfigError("controller.quorum.voters", reason, static["controller.quorum.voters"])
    if voters and int(voters[0].partition("@")[0]) != node_id:
        reason = f"must contain this node (node.id {node_id}); only single-node quorums are supported"
        raise ConfigError("controller.quorum.voters", reason, static["controller.quorum.voters"])
    if len(servers) > 1:
        reason = (
            f"has {len(servers)} controllers, but only single-node quorums are supported; "
            "set it to one host:port or remove it"
        )
        raise ConfigError("controller.quorum.bootstrap.servers", reason, static["controller.quorum.bootstrap.servers"])


def _log_dirs(static: Mapping[str, str]) -> tuple[str, ...]:
    paths = broker_value("log.dirs", static)
    if paths is None:
        paths = broker_value("log.dir", static)
    assert isinstance(paths, tuple)
    return paths


def _inter_broker_listener(static: Mapping[str, str], clients: tuple[ListenerConfig, ...]) -> str:
    text = static.get("inter.broker.listener.name", "").strip()
    if text and "security.inter.broker.protocol" in static:
        raise ConfigError("security.inter.broker.protocol", "cannot be set together with inter.broker.listener.name")
    name = (text or static.get("security.inter.broker.protocol", "PLAINTEXT")).strip().upper()
    names = [listener.name for listener in clients]
    if name in names:
        return name
    if text:
        raise ConfigError("inter.broker.listener.name", f"must be one of the listeners: {', '.join(names)}", text)
    # A single-node cluster has no inter-broker connections: any listener will do.
    return names[0]
