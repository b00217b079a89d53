"""Listeners: the addresses on which a node accepts connections, and those it advertises to clients."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ottla.metadata.configs import BROKER_CONFIGS, InvalidConfig
from ottla.metadata.configs.values import split_list

PORT_MAX = 65535
_ADDRESS = re.compile(r"([^:/]+)://(?:\[([0-9a-zA-Z.:%_\-]*)\]|([0-9a-zA-Z.%_\-]*)):(-?[0-9]+)")
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_WILDCARD_HOSTS = ("0.0.0.0", "::", "0:0:0:0:0:0:0:0")


@dataclass(frozen=True, slots=True)
class ListenerConfig:
    """An empty host means all interfaces; port 0 means any free port; advertised port 0 means the bound port."""

    name: str
    host: str
    port: int
    advertised_host: str
    advertised_port: int
    security_protocol: str = "PLAINTEXT"

    def __str__(self) -> str:
        return f"{self.name}://{bracketed(self.host)}:{self.port}"


def read_address(name: str, text: str) -> tuple[str, int]:
    """Parse a config whose value is `host:port`. An empty host means all interfaces."""
    host, colon, port = text.strip().rpartition(":")
    if not colon or not port.isdecimal() or int(port) > PORT_MAX:
        raise InvalidConfig(name, text, f"must be host:port, with a port up to {PORT_MAX}")
    return host.strip("[]"), int(port)


def bracketed(host: str) -> str:
    """Return a host as it is written before a port: IPv6 addresses in brackets."""
    return f"[{host}]" if ":" in host else host


def is_wildcard(host: str) -> bool:
    """Return whether a listener's host means all interfaces."""
    return host in ("", *_WILDCARD_HOSTS)


def is_loopback(host: str) -> bool:
    return host.lower() in ("localhost", "localhost.localdomain", "::1") or host.startswith("127.")


def read_listeners(
    static: Mapping[str, str], canonical_host: Callable[[], str]
) -> tuple[tuple[ListenerConfig, ...], tuple[ListenerConfig, ...]]:
    """Return the listeners for clients and brokers, and those for controllers."""
    controller_names = [name.upper() for name in split_list(static.get("controller.listener.names", ""))]
    default = BROKER_CONFIGS["listeners"].default
    assert default is not None
    bound = listener_addresses("listeners", static.get("listeners", default))
    advertised = (
        listener_addresses("advertised.listeners", static["advertised.listeners"])
        if "advertised.listeners" in static
        else {}
    )
    for name in advertised:
        if name not in bound and name not in controller_names:
            raise _invalid(
                "advertised.listeners", static, f"unknown listener {name}; the listeners are {', '.join(bound)}"
            )
    _check_ports(static, bound)
    protocols = _protocols(static, controller_names)
    clients: list[ListenerConfig] = []
    controllers: list[ListenerConfig] = []
    for name, (host, port) in bound.items():
        protocol = protocols.get(name)
        if protocol is None:
            known = ", ".join(protocols)
            raise _invalid(
                "listener.security.protocol.map", static, f"missing entry for listener {name}; it has: {known}"
            )
        if protocol != "PLAINTEXT":
            raise _invalid(
                "listeners", static, f"listener {name} is {protocol}; only PLAINTEXT listeners are supported"
            )
        is_controller = name in controller_names
        advertised_host, advertised_port = advertised.get(name, (host, port))
        if not is_controller:
            if advertised_host in _WILDCARD_HOSTS:
                raise _not_reachable(static, name, advertised_host)
            advertised_host = advertised_host or canonical_host()
        listener = ListenerConfig(name, host, port, advertised_host, advertised_port, protocol)
        (controllers if is_controller else clients).append(listener)
    if not clients:
        raise _invalid(
            "listeners", static, "no listener for clients; at least one must not be in controller.listener.names"
        )
    return tuple(clients), tuple(controllers)


def listener_addresses(config: str, text: str) -> dict[str, tuple[str, int]]:
    """Parse a list of `NAME://host:port` into hosts and ports by listener name."""
    found: dict[str, tuple[str, int]] = {}
    for address in split_list(text):
        parts = _ADDRESS.fullmatch(address)
        if parts is None:
            raise InvalidConfig(
                config, text, f"{address!r} must be NAME://host:port, such as PLAINTEXT://localhost:9092"
            )
        name, port = parts[1].upper(), int(parts[4])
        if not 0 <= port <= PORT_MAX:
            raise InvalidConfig(config, text, f"the port of listener {name} must be from 0 to {PORT_MAX}")
        if name in found:
            raise InvalidConfig(config, text, f"duplicate listener {name}")
        found[name] = (parts[2] or parts[3] or "", port)
    return found


def _check_ports(static: Mapping[str, str], bound: Mapping[str, tuple[str, int]]) -> None:
    """Raise InvalidConfig if listeners share a port, unless one is IPv4 and the other IPv6."""
    taken: dict[tuple[int, bool], str] = {}
    for name, (host, port) in bound.items():
        key = (port, ":" in host)
        if port and key in taken:
            raise _invalid("listeners", static, f"listeners {taken[key]} and {name} have the same port {port}")
        taken[key] = name


def _protocols(static: Mapping[str, str], controller_names: list[str]) -> dict[str, str]:
    text = static.get("listener.security.protocol.map")
    if text is None:
        protocols = {protocol: protocol for protocol in _PROTOCOLS}
        return protocols | {name: "PLAINTEXT" for name in controller_names if name not in protocols}
    protocols = {}
    for pair in split_list(text):
        name, separator, protocol = (part.strip() for part in pair.rpartition(":"))
        if not separator or not name or protocol.upper() not in _PROTOCOLS:
            raise _invalid(
                "listener.security.protocol.map",
                static,
                f"{pair!r} must be NAME:PROTOCOL, where PROTOCOL is one of " + ", ".join(_PROTOCOLS),
            )
        protocols[name.upper()] = protocol.upper()
    return protocols


def _not_reachable(static: Mapping[str, str], name: str, host: str) -> InvalidConfig:
    config = "advertised.listeners" if "advertised.listeners" in static else "listeners"
    reason = f"clients cannot connect to {host}, the advertised address of listener {name}; "
    if config == "listeners":
        reason += "set advertised.listeners to an address that clients can reach, or leave the host empty"
    else:
        reason += "use an address that clients can reach"
    return _invalid(config, static, reason)


def _invalid(config: str, static: Mapping[str, str], reason: str) -> InvalidConfig:
    return InvalidConfig(config, static.get(config), reason)
