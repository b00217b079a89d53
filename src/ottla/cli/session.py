"""A connection as the shared options describe it: which brokers, with which configs, and how answers are shown."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ottla.cli.errors import CliError, nearest

if TYPE_CHECKING:
    from ottla.client import Admin, Producer
    from ottla.client.consumer import Consumer

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
TIMEOUT_SECONDS = 15.0
CONNECT_SECONDS_MAX = 5.0


@dataclass(frozen=True, slots=True)
class Session:
    """`configs` are those of the file; whoever makes a client adds its own, which win."""

    bootstrap: str
    configs: Mapping[str, str]
    timeout_seconds: float
    is_json: bool

    def admin(self) -> "Admin":
        from ottla.client.admin import Admin
        from ottla.client.admin_core import ADMIN_OPTIONS

        return Admin(self._configs_for(ADMIN_OPTIONS, {"default.api.timeout.ms": self.timeout_seconds * 1000}))

    def producer(self, configs: Mapping[str, Any]) -> "Producer":
        from ottla.client.producer import Producer
        from ottla.client.producer_config import PRODUCER_OPTIONS

        timeout_ms = self.timeout_seconds * 1000
        # A record is given up after some tries, however much has been put off for it to become a batch.
        patience = {
            "request.timeout.ms": timeout_ms,
            "delivery.timeout.ms": 4 * timeout_ms + configs.get("linger.ms", 0),
        }
        return Producer(self._configs_for(PRODUCER_OPTIONS, {"max.block.ms": timeout_ms, **configs}, patience))

    def consumer(self, configs: Mapping[str, Any]) -> "Consumer":
        from ottla.client.consumer import Consumer
        from ottla.client.consumer_config import CONSUMER_OPTIONS

        defaults = {"default.api.timeout.ms": self.timeout_seconds * 1000, "allow.auto.create.topics": False}
        return Consumer(self._configs_for(CONSUMER_OPTIONS, {**defaults, **configs}))

    def _configs_for(
        self, options: Any, own: Mapping[str, Any], defaults: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """A file may serve several kinds of clients: what belongs to another kind is left out."""
        known = {option.name for option in options} if self.configs else frozenset()
        taken = {name: value for name, value in self.configs.items() if name in known}
        return {"client.id": "ottla-cli", **(defaults or {}), **taken, **own, "bootstrap.servers": self.bootstrap}


def open_session(*, bootstrap: str | None, client_config: Path | None, timeout: float, is_json: bool) -> Session:
    """The options, then the file, then the default; CliError where nobody listens there."""
    configs = {} if client_config is None else _read_file(client_config)
    servers = bootstrap or configs.get("bootstrap.servers") or DEFAULT_BOOTSTRAP
    _require_listener(servers, min(timeout, CONNECT_SECONDS_MAX))
    return Session(servers, configs, timeout, is_json)


def _read_file(path: Path) -> dict[str, str]:
    """Names that no client knows are refused; serializers and interceptors are Java's classes, and have no meaning here."""
    from ottla.client.admin_core import ADMIN_OPTIONS
    from ottla.client.config import IGNORED_CONFIGS, SECURITY_PREFIXES
    from ottla.client.consumer_config import CONSUMER_OPTIONS
    from ottla.client.producer_config import PRODUCER_OPTIONS
    from ottla.node.properties import PropertiesError, decode_properties, read_properties

    try:
        read = {key: value for key, value, _ in read_properties(decode_properties(path.read_bytes()))}
    except PropertiesError as error:
        raise CliError(f"{path}: {error}") from error
    known = {option.name for option in (*ADMIN_OPTIONS, *PRODUCER_OPTIONS, *CONSUMER_OPTIONS)}
    for name in read:
        if name.startswith(SECURITY_PREFIXES):
            raise CliError(f"{path}: {name}: connections are PLAINTEXT only so far, without TLS or SASL")
        if name not in known and name not in IGNORED_CONFIGS:
            meant = nearest(name, known)
            raise CliError(f"{path}: no client has a config {name!r}", f"Did you mean {meant}?" if meant else "")
    java_only = ("key.serializer", "value.serializer", "key.deserializer", "value.deserializer", "interceptor.classes")
    return {name: value for name, value in read.items() if name in known and name not in java_only}


def _require_listener(servers: str, seconds: float) -> None:
    """Clients try for as long as they may; a person at a prompt wants to know at once that nothing runs there."""
    from ottla.client.config import parse_addresses, read_list

    reasons = []
    for host, port in parse_addresses(read_list("bootstrap.servers", servers)):
        try:
            socket.create_connection((host, port), timeout=seconds).close()
            return
        except OSError as error:
            reasons.append(f"{host}:{port} ({error.strerror or error})".lower())
    raise CliError(
        f"no broker answers at {', '.join(reasons)}",
        "Start one with `ottla start`, or say where it is with --bootstrap HOST:PORT or OTTLA_BOOTSTRAP.",
    )
