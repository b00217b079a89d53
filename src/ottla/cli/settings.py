"""Configs of a node to start: from a properties file, overridden by --set, overridden by the other options."""

import argparse
import os
from collections.abc import Callable, Mapping

from ottla.cli.errors import is_text
from ottla.metadata.configs.values import split_list
from ottla.node.config import read_config_file
from ottla.node.listeners import bracketed, listener_addresses

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 9092
DEFAULT_DATA = "ottla-data"
_WILDCARD_HOSTS = ("", "0.0.0.0", "::", "*")


class UsageError(Exception):
    """Wrong options or arguments; the exit code is 2."""


def node_settings(
    arguments: argparse.Namespace, *, temporary: str | None, canonical_host: Callable[[], str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the configs by name, and the source of each, for error messages."""
    for text in (*arguments.set, arguments.host, arguments.advertise, getattr(arguments, "cluster_id", None)):
        if text is not None and not is_text(text):
            raise UsageError(f"{os.fsencode(text)!r} is not valid UTF-8")
    settings = _defaults()
    sources: dict[str, str] = {}
    if arguments.file is not None:
        settings, sources = read_config_file(arguments.file)
    for assignment in arguments.set:
        name, separator, value = assignment.partition("=")
        if not separator or not name.strip():
            raise UsageError(f"--set {assignment}: expected NAME=VALUE")
        settings[name.strip()] = value.strip()
        sources[name.strip()] = "--set"
    if arguments.host is not None or arguments.port is not None or arguments.advertise is not None:
        _override_listener(settings, arguments, canonical_host)
    data = temporary or arguments.data
    if data is not None:
        if temporary is not None and sources.get("log.dirs") == "--set":
            raise UsageError("--ephemeral uses a temporary directory and cannot be combined with --set log.dirs=...")
        settings["log.dirs"] = data
        settings.pop("metadata.log.dir", None)
    return settings, sources


def _defaults() -> dict[str, str]:
    """Return the configs used without a file. Groups rebalance at once, as in Kafka's sample file."""
    return {
        "listeners": f"PLAINTEXT://{DEFAULT_HOST}:{DEFAULT_PORT}",
        "log.dirs": DEFAULT_DATA,
        "group.initial.rebalance.delay.ms": "0",
    }


def _override_listener(
    settings: dict[str, str], arguments: argparse.Namespace, canonical_host: Callable[[], str]
) -> None:
    """Apply --host, --port and --advertise to the first client listener; leave the others as they are."""
    bound = listener_addresses("listeners", settings.get("listeners", f"PLAINTEXT://:{DEFAULT_PORT}"))
    advertised = listener_addresses("advertised.listeners", settings.get("advertised.listeners", ""))
    controllers = [name.upper() for name in split_list(settings.get("controller.listener.names", ""))]
    name = next((name for name in bound if name not in controllers), None)
    if name is None:
        raise UsageError(
            "--host, --port and --advertise need a client listener, but listeners has only controller listeners"
        )
    host, port = bound[name]
    if arguments.host is not None:
        host = arguments.host.strip("[]")
    if arguments.port is not None:
        port = arguments.port
    bound[name] = ("" if host == "*" else host, port)
    settings["listeners"] = _format_listeners(bound)
    if arguments.advertise is not None:
        advertised[name] = _parse_address(arguments.advertise, port)
    elif arguments.host is not None or name not in advertised:
        # Clients cannot connect to a wildcard address: advertise the host name, as for an empty host.
        advertised[name] = (canonical_host() if host in _WILDCARD_HOSTS else host, port)
    else:
        advertised[name] = (advertised[name][0], port)
    settings["advertised.listeners"] = _format_listeners(advertised)


def _parse_address(text: str, port: int) -> tuple[str, int]:
    """Parse HOST, HOST:PORT, an IPv6 address, or one in brackets with a port."""
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port_text = rest.removeprefix(":")
    elif text.count(":") > 1:
        host, port_text = text, ""
    else:
        host, _, port_text = text.partition(":")
    if not host or (port_text and not (port_text.isascii() and port_text.isdigit() and int(port_text) <= 65535)):
        raise UsageError(f"--advertise {text}: expected HOST or HOST:PORT, such as broker.example.org:9092")
    return host, int(port_text) if port_text else port


def _format_listeners(addresses: Mapping[str, tuple[str, int]]) -> str:
    return ",".join(f"{name}://{bracketed(host)}:{port}" for name, (host, port) in addresses.items())
