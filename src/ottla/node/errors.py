"""Errors that prevent a node from starting, with messages for the user."""

import errno
import os
import socket
from collections.abc import Iterable
from typing import Any

from ottla.node.listeners import ListenerConfig, bracketed


class StartError(Exception):
    """The node cannot start or continue. The message names the cause and the fix, and is shown without a traceback."""


def check_addresses(listeners: Iterable[ListenerConfig]) -> None:
    """Raise StartError if a listener's address cannot be bound, before the start has changed any file."""
    for listener in listeners:
        try:
            for family, kind, protocol, _, address in socket.getaddrinfo(
                listener.host or None, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            ):
                _check_address(family, kind, protocol, address)
        except OSError as error:
            raise listen_error(listener, error) from error


def _check_address(family: int, kind: int, protocol: int, address: tuple[Any, ...]) -> None:
    try:
        probe = socket.socket(family, kind, protocol)
    except OSError:
        return  # this machine has no IPv6
    with probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            probe.bind(address)
        except OSError as error:
            if family == socket.AF_INET6 and error.errno == errno.EADDRNOTAVAIL and address[0] == "::":
                return  # IPv6 is turned off; the IPv4 address is checked as well
            raise
        probe.listen(1)  # Linux lets two sockets bind the same address until one listens


def listen_error(listener: ListenerConfig, error: OSError) -> StartError:
    """Convert an error of listening at a listener's address."""
    address = f"{bracketed(listener.host) or '*'}:{listener.port}"
    match error.errno:
        case errno.EADDRINUSE:
            from ottla.node.port_owner import find_port_owner

            owner = find_port_owner(listener.port) or "another process (another node, or Apache Kafka?)"
            return StartError(
                f"port {listener.port} is in use by {owner}; stop it, or choose another port, such as --port "
                f"{listener.port + 1 if listener.port < 65535 else 9092}"
            )
        case errno.EADDRNOTAVAIL:
            return StartError(
                f"cannot listen on {address}: {listener.host} is not an address of this machine; "
                "choose another with --host"
            )
        case errno.EACCES | errno.EPERM:
            return StartError(
                f"cannot listen on {address}: permission denied (ports below 1024 need root); "
                "choose another with --port"
            )
    if isinstance(error, socket.gaierror):
        return StartError(f"cannot listen on {address}: unknown host {listener.host}; choose another with --host")
    return StartError(f"cannot listen on {address}: {error.strerror or error}")


def directory_error(path: str, error: OSError) -> StartError:
    """Convert an error of using a data directory."""
    if isinstance(error, BlockingIOError):
        return StartError(f"data directory {path} is in use by another node; stop it, or choose another with --data")
    failed_path = error.filename if isinstance(error.filename, str) else path
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        user = f" as user {os.getuid()}" if hasattr(os, "getuid") else ""
        return StartError(
            f"cannot write to {failed_path}{user}: {error.strerror}; choose another directory with --data"
        )
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return StartError(f"cannot create data directory {path}: a file is in its path; choose another with --data")
    if error.errno == errno.ENOSPC:
        return StartError(f"no space left for {failed_path}; choose another directory with --data")
    return StartError(f"cannot use data directory {path}: {error.strerror or error}; choose another with --data")
