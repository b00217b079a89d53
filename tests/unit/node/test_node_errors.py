"""Why a node does not start is said in words, with what to do about it; log lines are single lines."""

import errno
import logging
import os
import socket
import sys

import pytest

from ottla.node.errors import directory_error, listen_error
from ottla.node.listeners import ListenerConfig
from ottla.node.main import LineFormatter
from ottla.node.port_owner import find_port_owner

USER = os.getuid()


def os_error(number: int, path: str | None = None) -> OSError:
    return OSError(number, os.strerror(number), path)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            os_error(errno.EAGAIN),
            "the directory /d is in use by another node: stop that one, or choose another directory with --data",
        ),
        (
            os_error(errno.EACCES, "/d/x"),
            f"cannot write to /d/x as user {USER}: Permission denied; --data chooses another directory",
        ),
        (
            os_error(errno.EROFS),
            f"cannot write to /d as user {USER}: Read-only file system; --data chooses another directory",
        ),
        (os_error(errno.ENOTDIR), "/d cannot be a directory: a file is in its place; --data chooses another"),
        (os_error(errno.ENOSPC, "/d/y"), "there is no space left for /d/y; --data chooses another directory"),
        (os_error(errno.EIO), "cannot use the directory /d: Input/output error; --data chooses another"),
    ],
)
def test_directories(error: OSError, message: str) -> None:
    assert str(directory_error("/d", error)) == message


@pytest.mark.parametrize(
    ("host", "port", "error", "message"),
    [
        (
            "h",
            8,
            os_error(errno.EACCES),
            "cannot listen at h:8: this user may not; ports below 1024 belong to root, --port chooses another",
        ),
        (
            "h",
            1,
            os_error(errno.EADDRNOTAVAIL),
            "cannot listen at h:1: h is not an address of this machine; --host names one that is",
        ),
        ("h", 1, socket.gaierror(-2, "x"), "cannot listen at h:1: h is not known as a host; --host names one that is"),
        ("::1", 1, os_error(errno.EIO), "cannot listen at [::1]:1: Input/output error"),
        ("", 1, OSError("odd"), "cannot listen at *:1: odd"),
    ],
)
def test_addresses(host: str, port: int, error: OSError, message: str) -> None:
    assert str(listen_error(ListenerConfig("PLAINTEXT", host, port, host, port), error)) == message


def test_a_port_taken_by_an_unknown_process() -> None:
    message = str(listen_error(ListenerConfig("PLAINTEXT", "", 65535, "", 65535), os_error(errno.EADDRINUSE)))
    assert message.startswith("the port 65535 is taken by ")
    assert message.endswith("such as --port 9092")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_who_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        holder = find_port_owner(port)
        assert holder is not None
        assert holder.endswith(f"(pid {os.getpid()})")
    assert find_port_owner(port) is None


def record(message: str, error: BaseException | None = None) -> logging.LogRecord:
    trace = (type(error), error, error.__traceback__) if error is not None else None
    made = logging.LogRecord("ottla.server", logging.WARNING, __file__, 1, message, None, trace)
    made.created, made.msecs = 1_700_000_000.123, 123.0
    return made


def test_a_log_line_is_one_line() -> None:
    try:
        raise ValueError("bad\nthing")
    except ValueError as caught:
        error = caught
    quiet, traced = LineFormatter(is_traced=False), LineFormatter(is_traced=True)
    start = "2023-11-14T22:13:20.123Z warning ottla.server"
    assert quiet.format(record("two\nlines")) == f"{start} two\\nlines"
    line = quiet.format(record("it failed", error))
    assert line.startswith(f"{start} it failed error=ValueError: 'bad\\nthing' at=test_node_errors.py:")
    assert "\n" not in line
    assert "Traceback" in traced.format(record("it failed", error))
    assert quiet.format(record("it failed", KeyError("x"))) == f"{start} it failed error=KeyError: \"'x'\""
