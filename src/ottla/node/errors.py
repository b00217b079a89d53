"""Why a node does not start, in words for the person who started it."""

import errno
import os
import socket

from ottla.node.listeners import ListenerConfig, bracketed


class StartError(Exception):
    """The node cannot start or go on, and the message says why and what to do. It is shown without a traceback."""


def listen_error(listener: ListenerConfig, error: OSError) -> StartError:
    """Why a listener's address cannot be had."""
    address = f"{bracketed(listener.host) or '*'}:{listener.port}"
    match error.errno:
        case errno.EADDRINUSE:
            from ottla.node.port_owner import find_port_owner

            holder = find_port_owner(listener.port)
            held = f" by {holder}" if holder else " by another process (another node, or Apache Kafka?)"
            return StartError(
                f"the port {listener.port} is taken{held}: stop it, or choose another port with --port, such as --port "
                f"{listener.port + 1 if listener.port < 65535 else 9092}"
            )
        case errno.EADDRNOTAVAIL:
            return StartError(
                f"cannot listen at {address}: {listener.host} is not an address of this machine; --host names one that is"
            )
        case errno.EACCES | errno.EPERM:
            return StartError(
                f"cannot listen at {address}: this user may not; ports below 1024 belong to root, --port chooses another"
            )
    if isinstance(error, socket.gaierror):
        return StartError(
            f"cannot listen at {address}: {listener.host} is not known as a host; --host names one that is"
        )
    return StartError(f"cannot listen at {address}: {error.strerror or error}")


def directory_error(path: str, error: OSError) -> StartError:
    """Why a data directory cannot be used."""
    if isinstance(error, BlockingIOError):
        return StartError(
            f"the directory {path} is in use by another node: stop that one, or choose another directory with --data"
        )
    where = error.filename if isinstance(error.filename, str) else path
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        user = f" as user {os.getuid()}" if hasattr(os, "getuid") else ""
        return StartError(f"cannot write to {where}{user}: {error.strerror}; --data chooses another directory")
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return StartError(f"{path} cannot be a directory: a file is in its place; --data chooses another")
    if error.errno == errno.ENOSPC:
        return StartError(f"there is no space left for {where}; --data chooses another directory")
    return StartError(f"cannot use the directory {path}: {error.strerror or error}; --data chooses another")
