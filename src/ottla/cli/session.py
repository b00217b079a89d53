"""Client sessions: the brokers, client configs, timeout and output format that the shared options select."""

import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ottla.cli.client_configs import read_configs, read_profile
from ottla.cli.errors import CliError

if TYPE_CHECKING:
    from ottla.client import Admin, Producer
    from ottla.client.consumer import Consumer

BOOTSTRAP_VARIABLE = "OTTLA_BOOTSTRAP"
PROFILE_VARIABLE = "OTTLA_PROFILE"
DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
TIMEOUT_SECONDS = 15.0
CONNECT_SECONDS_MAX = 5.0


@dataclass(frozen=True, slots=True)
class Session:
    """Creates clients. `configs` come from a file or a profile; a command's own configs override them."""

    bootstrap: str
    configs: Mapping[str, str]
    timeout_seconds: float
    is_json: bool

    def within(self, deadline: float) -> "Session":
        """Return this session with the time that is left until a deadline in `time.monotonic` seconds."""
        return replace(self, timeout_seconds=max(0.1, deadline - time.monotonic()))

    def admin(self) -> "Admin":
        from ottla.client.admin import Admin
        from ottla.client.admin_core import ADMIN_OPTIONS

        return Admin(self._configs_for(ADMIN_OPTIONS, {"default.api.timeout.ms": self.timeout_seconds * 1000}))

    def producer(self, configs: Mapping[str, Any]) -> "Producer":
        from ottla.client.producer import Producer
        from ottla.client.producer_config import PRODUCER_OPTIONS, producer_settings

        timeout_ms = self.timeout_seconds * 1000
        config = self._configs_for(PRODUCER_OPTIONS, {"max.block.ms": timeout_ms, **configs})
        linger_ms = producer_settings(config, {}).linger_ms
        # The timeout includes all retries. Kafka's clients add linger.ms to the time of one request.
        request_ms = max(timeout_ms - linger_ms, timeout_ms / 2)
        timeouts = {"request.timeout.ms": request_ms, "delivery.timeout.ms": max(timeout_ms, linger_ms + request_ms)}
        return Producer({**timeouts, **config})

    def consumer(self, configs: Mapping[str, Any]) -> "Consumer":
        from ottla.client.consumer import Consumer
        from ottla.client.consumer_config import CONSUMER_OPTIONS

        defaults = {"default.api.timeout.ms": self.timeout_seconds * 1000, "allow.auto.create.topics": False}
        return Consumer(self._configs_for(CONSUMER_OPTIONS, {**defaults, **configs}))

    def _configs_for(
        self, options: Any, own: Mapping[str, Any], defaults: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Combine configs, dropping those of the file that belong to another type of client."""
        known = {option.name for option in options} if self.configs else frozenset()
        from_file = {name: value for name, value in self.configs.items() if name in known}
        return {"client.id": "ottla-cli", **(defaults or {}), **from_file, **own, "bootstrap.servers": self.bootstrap}


def open_session(
    *,
    bootstrap: str | None,
    client_config: Path | None,
    timeout: float,
    is_json: bool,
    profile: str | None = None,
    requires_broker: bool = True,
) -> Session:
    """Resolve the brokers and the client configs from options, variables, a profile or a file.

    Raises `CliError` if no broker is reachable.
    """
    if profile is not None and client_config is not None:
        raise CliError("--profile and --client-config cannot be combined: both set the client configs")
    configs = {}
    if client_config is not None:
        configs = read_configs(client_config)
    elif profile is not None or os.environ.get(PROFILE_VARIABLE):
        configs = read_profile(os.environ[PROFILE_VARIABLE] if profile is None else profile)
    variable = os.environ.get(BOOTSTRAP_VARIABLE)
    own = configs.get("bootstrap.servers")
    # A profile that an option names is more specific than a variable.
    servers = bootstrap or (own if profile is not None else None) or variable or own or DEFAULT_BOOTSTRAP
    if requires_broker:
        require_listener(servers, min(timeout, CONNECT_SECONDS_MAX))
    return Session(servers, configs, timeout, is_json)


def require_listener(servers: str, seconds: float) -> None:
    """Fail at once if no broker listens: a client would retry until its timeout. `seconds` limits all attempts."""
    from ottla.client.config import parse_addresses, read_list

    reasons = []
    deadline = time.monotonic() + seconds
    for host, port in parse_addresses(read_list("bootstrap.servers", servers)):
        try:
            socket.create_connection((host, port), timeout=max(0.1, deadline - time.monotonic())).close()
            return
        except OSError as error:
            reasons.append(f"{host}:{port} ({error.strerror or error})".lower())
    raise CliError(
        f"cannot connect to a broker at {', '.join(reasons)}",
        "Start one with `ottla start`, or set its address with --bootstrap HOST:PORT or OTTLA_BOOTSTRAP.",
    )
