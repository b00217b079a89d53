"""Start errors name the cause and the fix; log messages are single lines."""

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
            "data directory /d is in use by another node; stop it, or choose another with --data",
        ),
        (
            os_error(errno.EACCES, "/d/x"),
            f"cannot write to /d/x as user {USER}: Permission denied; choose another directory with --data",
        ),
        (
            os_error(errno.EROFS),
            f"cannot write to /d as user {USER}: Read-only file system; choose another directory with --data",
        ),
        (
            os_error(errno.ENOTDIR),
            "cannot create data directory /d: a file is in its path; choose another with --data",
        ),
        (os_error(errno.ENOSPC, "/d/y"), "no space left for /d/y; choose another directory with --data"),
        (os_error(errno.EIO), "cannot use data directory /d: Input/output error; choose another with --data"),
    ],
)
def test_directory_error_names_the_fix(error: OSError, message: str) -> None:
    assert str(directory_error("/d", error)) == message


@pytest.mark.parametrize(
    ("host", "port", "error", "message"),
    [
        (
            "h",
            8,
            os_error(errno.EACCES),
            "cannot listen on h:8: permission denied (ports below 1024 need root); choose another with --port",
        ),
        (
            "h",
            1,
            os_error(errno.EADDRNOTAVAIL),
            "cannot listen on h:1: h is not an address of this machine; choose another with --host",
        ),
        ("h", 1, socket.gaierror(-2, "x"), "cannot listen on h:1: unknown host h; choose another with --host"),
        ("::1", 1, os_error(errno.EIO), "cannot listen on [::1]:1: Input/output error"),
        ("", 1, OSError("odd"), "cannot listen on *:1: odd"),
    ],
)
def test_listen_error_names_the_fix(host: str, port: int, error: OSError, message: str) -> None:
    assert str(listen_error(ListenerConfig("PLAINTEXT", host, port, host, port), error)) == message


def test_listen_error_names_a_port_in_use() -> None:
    message = str(listen_error(ListenerConfig("PLAINTEXT", "", 65535, "", 65535), os_error(errno.EADDRINUSE)))
    assert message.startswith("port 65535 is in use by ")
    assert message.endswith("such as --port 9092")


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's /proc")
def test_find_port_owner_finds_the_listening_process() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        owner = find_port_owner(port)
        assert owner is not None
        assert owner.endswith(f"(pid {os.getpid()})")
    assert find_port_owner(port) is None


def record(message: str, error: BaseException | None = None) -> logging.LogRecord:
    trace = (type(error), error, error.__traceback__) if error is not None else None
    made = logging.LogRecord("ottla.server", logging.WARNING, __file__, 1, message, None, trace)
    made.created, made.msecs = 1_700_000_000.123, 123.0
    return made


def test_log_message_is_a_single_line() -> None:
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
