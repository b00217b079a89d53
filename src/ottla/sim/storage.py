"""Storage of a simulated machine: a file tree in two views, the page cache and the disk.

A process crash leaves the page cache. A power loss keeps flushed data, and of unflushed changes what the seed
determines: none, all, some first ones, or later ones without earlier ones. Names are durable once their directory is
flushed: flushing a file does not flush its name.
"""

import errno
import os
import random
from collections.abc import Iterator
from typing import Literal

from ottla.base.ports import Buffer
from ottla.sim.process import Process

Keep = Literal["page-cache", "flushed"]


def os_error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)


class Inode:
    """Bytes of a file. A change is a position and the bytes written there, or a size and None for a truncation."""

    __slots__ = ("_durable", "_lost_changes", "_pending", "cached")

    def __init__(self) -> None:
        self.cached = bytearray()
        self._durable = bytearray()
        self._pending: list[tuple[int, bytes | None]] = []
        self._lost_changes: list[tuple[int, bytes | None]] = []

    def write(self, position: int, data: Buffer) -> None:
        self._change((position, bytes(data)))

    def truncate(self, size: int) -> None:
        self._change((size, None))

    def _change(self, change: tuple[int, bytes | None]) -> None:
        _apply(self.cached, change)
        self._pending.append(change)

    def fsync(self) -> None:
        for change in self._pending:
            _apply(self._durable, change)
        self._pending.clear()

    def fail_fsync(self) -> None:
        """The kernel marks pages clean that it could not write: the next fsync succeeds without them."""
        self._lost_changes += self._pending
        self._pending.clear()

    def lose_power(self, source: random.Random) -> None:
        unflushed = self._lost_changes + self._pending
        self._lost_changes.clear()
        self._pending.clear()
        match source.choice(("none", "all", "first", "some")) if unflushed else "none":
            case "all":
                survivors = unflushed
            case "first":
                survivors = unflushed[: source.randint(0, len(unflushed))]
            case "some":
                survivors = [change for change in unflushed if source.random() < 0.5]
            case _:
                survivors = []
        for number, change in enumerate(survivors):
            if number == len(survivors) - 1:
                change = _torn(change, source)
            _apply(self._durable, change)
        self.cached = bytearray(self._durable)


def _apply(data: bytearray, change: tuple[int, bytes | None]) -> None:
    position, new = change
    if new is None:
        del data[position:]
    elif not new:
        return  # an empty write does not extend a file
    if position > len(data):
        data.extend(bytes(position - len(data)))
    if new is not None:
        data[position : position + len(new)] = new


def _torn(change: tuple[int, bytes | None], source: random.Random) -> tuple[int, bytes | None]:
    position, data = change
    if data is None or source.random() < 0.5:
        return change
    return position, data[: source.randint(0, len(data))]


class Directory:
    """Names in a directory: current ones, and those that survive a power loss."""

    __slots__ = ("durable", "names")

    def __init__(self) -> None:
        self.names: dict[str, Node] = {}
        self.durable: dict[str, Node] = {}


Node = Inode | Directory

_NameChange = tuple[Directory, str, Node | None]
"""A name and its new node, or None if the name was removed."""


class Storage:
    """The file tree of a machine, with absolute paths. It outlives the processes that use it."""

    __slots__ = ("_name_changes", "_random", "_root", "locks")

    def __init__(self, source: random.Random) -> None:
        self._random = source
        self._root = Directory()
        self.locks: dict[Inode, Process] = {}  # a lock ends with its process
        self._name_changes: list[
            tuple[_NameChange, ...]
        ] = []  # not durable yet, in order; changes of one tuple are atomic

    def find(self, path: str) -> Node | None:
        """Return the node at a path, or None if there is none or a part of the path is a file."""
        node: Node = self._root
        for part in _parts(path):
            if not isinstance(node, Directory):
                return None
            found = node.names.get(part)
            if found is None:
                return None
            node = found
        return node

    def get(self, path: str) -> Node:
        """Like `find`, but raises the errors that a kernel returns."""
        node: Node = self._root
        for part in _parts(path):
            if not isinstance(node, Directory):
                raise os_error(errno.ENOTDIR, path)
            found = node.names.get(part)
            if found is None:
                raise os_error(errno.ENOENT, path)
            node = found
        return node

    def get_file(self, path: str) -> Inode:
        node = self.get(path)
        if isinstance(node, Directory):
            raise os_error(errno.EISDIR, path)
        return node

    def get_directory(self, path: str) -> Directory:
        node = self.get(path)
        if isinstance(node, Inode):
            raise os_error(errno.ENOTDIR, path)
        return node

    def create(self, path: str) -> Inode:
        directory, name = self._locate(path)
        found = directory.names.get(name)
        if isinstance(found, Directory):
            raise os_error(errno.EISDIR, path)
        if found is None:
            found = Inode()
            self._name((directory, name, found))
        return found

    def make_directories(self, path: str) -> None:
        directory = self._root
        for part in _parts(path):
            found = directory.names.get(part)
            if isinstance(found, Inode):
                raise os_error(errno.EEXIST if part == _parts(path)[-1] else errno.ENOTDIR, path)
            if found is None:
                found = Directory()
                self._name((directory, part, found))
            directory = found

    def rename(self, source: str, target: str) -> None:
        from_folder, from_name = self._locate(source)
        to_folder, to_name = self._locate(target)
        moved = self.get(source)
        replaced = to_folder.names.get(to_name)
        if (source.rstrip("/") + "/").startswith(target.rstrip("/") + "/") and replaced is not moved:
            raise os_error(errno.ENOTEMPTY, source)
        if isinstance(moved, Directory):
            if (target.rstrip("/") + "/").startswith(source.rstrip("/") + "/") and replaced is not moved:
                raise os_error(errno.EINVAL, source)
            if isinstance(replaced, Inode):
                raise os_error(errno.ENOTDIR, source)
            if replaced is not None and replaced is not moved and replaced.names:
                raise os_error(errno.ENOTEMPTY, source)
        elif isinstance(replaced, Directory):
            raise os_error(errno.EISDIR, source)
        if replaced is not moved:
            self._name((from_folder, from_name, None), (to_folder, to_name, moved))

    def remove(self, path: str) -> None:
        self.get_file(path)
        directory, name = self._locate(path)
        self._name((directory, name, None))

    def remove_directory(self, path: str) -> None:
        if self.get_directory(path).names:
            raise os_error(errno.ENOTEMPTY, path)
        directory, name = self._locate(path)
        self._name((directory, name, None))

    def fsync_directory(self, path: str) -> None:
        """Make the names in a directory durable, with all earlier changes that they depend on."""
        needed = [self.get_directory(path)]
        kept: list[tuple[_NameChange, ...]] = []
        durable: list[tuple[_NameChange, ...]] = []
        for name_changes in reversed(self._name_changes):
            if any(directory in needed for directory, _, _ in name_changes):
                needed += [directory for directory, _, _ in name_changes]
                durable.append(name_changes)
            else:
                kept.append(name_changes)
        self._name_changes = kept[::-1]
        for name_changes in reversed(durable):
            _make_durable(name_changes)

    def lose_power(self) -> None:
        """Keep each directory's unflushed changes up to a random point, and some of each file's unflushed changes."""
        blocked: list[Directory] = []
        for name_changes in self._name_changes:
            directories = [directory for directory, _, _ in name_changes]
            if any(directory in blocked for directory in directories) or self._random.random() < 0.25:
                blocked += directories
            else:
                _make_durable(name_changes)
        self._name_changes.clear()
        self._lose_power_below(self._root)

    def _lose_power_below(self, directory: Directory) -> None:
        directory.names = dict(sorted(directory.durable.items()))
        for node in directory.names.values():
            if isinstance(node, Directory):
                self._lose_power_below(node)
            else:
                node.lose_power(self._random)

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Yield all files and their contents in the page cache, for checks."""
        return _files_below("", self._root)

    def _name(self, *name_changes: _NameChange) -> None:
        for directory, name, node in name_changes:
            if node is None:
                del directory.names[name]
            else:
                directory.names[name] = node
        self._name_changes.append(name_changes)

    def _locate(self, path: str) -> tuple[Directory, str]:
        parts = _parts(path)
        if not parts:
            raise os_error(errno.EBUSY, path)
        return self.get_directory("/" + "/".join(parts[:-1])), parts[-1]


def _make_durable(name_changes: tuple[_NameChange, ...]) -> None:
    for directory, name, node in name_changes:
        if node is None:
            directory.durable.pop(name, None)
        else:
            directory.durable[name] = node


def _files_below(path: str, directory: Directory) -> Iterator[tuple[str, bytes]]:
    for name, node in sorted(directory.names.items()):
        if isinstance(node, Directory):
            yield from _files_below(f"{path}/{name}", node)
        else:
            yield f"{path}/{name}", bytes(node.cached)


def _parts(path: str) -> list[str]:
    assert path.startswith("/"), f"not an absolute path: {path!r}"
    return [part for part in os.path.normpath(path).split("/") if part]
