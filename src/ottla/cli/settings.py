"""The words of `ottla start` as Kafka's configs: a file, single settings over it, and the options over both."""

import argparse
from collections.abc import Callable, Mapping

from ottla.metadata.configs.values import split_list
from ottla.node.config import read_config_file
from ottla.node.listeners import bracketed, listener_addresses

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 9092
DEFAULT_DATA = "ottla-data"
_EVERYWHERE = ("", "0.0.0.0", "::", "*")


class UsageError(Exception):
    """The command was called wrongly."""


def node_settings(
    arguments: argparse.Namespace, *, temporary: str | None, canonical_host: Callable[[], str]
) -> tuple[dict[str, str], dict[str, str]]:
    """The configs by name, and where each was read."""
    settings = _defaults()
    places: dict[str, str] = {}
    if arguments.file is not None:
        settings, places = read_config_file(arguments.file)
    for assignment in arguments.set:
        name, separator, value = assignment.partition("=")
        if not separator or not name.strip():
            raise UsageError(f"--set {assignment}: a config is set by --set name=value")
        settings[name.strip()] = value.strip()
        places[name.strip()] = "--set"
    if arguments.host is not None or arguments.port is not None or arguments.advertise is not None:
        _place_listener(settings, arguments, canonical_host)
    data = temporary or arguments.data
    if data is not None:
        if temporary is not None and places.get("log.dirs") == "--set":
            raise UsageError("--ephemeral chooses its own directory: leave out either it or --set log.dirs=...")
        settings["log.dirs"] = data
        settings.pop("metadata.log.dir", None)
    return settings, places


def _defaults() -> dict[str, str]:
    """Where there is no file. Kafka's own quick start, too, does not let the first members of a group wait for more."""
    return {
        "listeners": f"PLAINTEXT://{DEFAULT_HOST}:{DEFAULT_PORT}",
        "log.dirs": DEFAULT_DATA,
        "group.initial.rebalance.delay.ms": "0",
    }


def _place_listener(settings: dict[str, str], arguments: argparse.Namespace, canonical_host: Callable[[], str]) -> None:
    """Move the first listener for clients to where the options want it; the others stay where they are."""
    bound = listener_addresses("listeners", settings.get("listeners", f"PLAINTEXT://:{DEFAULT_PORT}"))
    advertised = listener_addresses("advertised.listeners", settings.get("advertised.listeners", ""))
    controllers = [name.upper() for name in split_list(settings.get("controller.listener.names", ""))]
    name = next((name for name in bound if name not in controllers), None)
    if name is None:
        raise UsageError("--host, --port and --advertise need a listener for clients, and listeners has none")
    host, port = bound[name]
    if arguments.host is not None:
        host = arguments.host.strip("[]")
    if arguments.port is not None:
        port = arguments.port
    bound[name] = ("" if host == "*" else host, port)
    settings["listeners"] = _joined(bound)
    if arguments.advertise is not None:
        advertised[name] = _address(arguments.advertise, port)
    elif arguments.host is not None or name not in advertised:
        # A wildcard is no address to connect to: clients are told the machine's name, as for an empty host.
        advertised[name] = (canonical_host() if host in _EVERYWHERE else host, port)
    else:
        advertised[name] = (advertised[name][0], port)
    settings["advertised.listeners"] = _joined(advertised)


def _address(text: str, port: int) -> tuple[str, int]:
    """HOST, HOST:PORT, an IPv6 address alone, or one in brackets with a port."""
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        given = rest.removeprefix(":")
    elif text.count(":") > 1:
        host, given = text, ""
    else:
        host, _, given = text.partition(":")
    if not host or (given and not (given.isascii() and given.isdigit() and int(given) <= 65535)):
        raise UsageError(f"--advertise {text}: must be HOST or HOST:PORT, such as broker.example.org:9092")
    return host, int(given) if given else port


def _joined(addresses: Mapping[str, tuple[str, int]]) -> str:
    return ",".join(f"{name}://{bracketed(host)}:{port}" for name, (host, port) in addresses.items())
