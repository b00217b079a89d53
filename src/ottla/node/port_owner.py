"""Find the process that listens on a port (Linux only), for the error message when the port is in use."""

import os

_LISTENING = "0A"


def find_port_owner(port: int) -> str | None:
    """Return, for example, `java (pid 123)`; None if unknown (another system, or another user's process)."""
    sockets = {f"socket:[{inode}]" for inode in _listening_inodes(port)}
    if not sockets:
        return None
    for process in _directory("/proc"):
        if not process.isdigit():
            continue
        for descriptor in _directory(f"/proc/{process}/fd"):
            if _link(f"/proc/{process}/fd/{descriptor}") in sockets:
                return f"{_name(process)} (pid {process})"
    return None


def _listening_inodes(port: int) -> list[str]:
    inodes = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in _lines(table)[1:]:
            fields = line.split()
            if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                inodes.append(fields[9])
    return inodes


def _name(process: str) -> str:
    return next(iter(_lines(f"/proc/{process}/comm")), "a process")


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()
    except OSError:  # not Linux, or the process has ended
        return []


def _directory(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:  # another user's process, or it has ended
        return []


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:  # closed in the meantime
        return ""
