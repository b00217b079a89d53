"""Data directories: formatting, ownership (meta.properties), locks and clean-shutdown markers."""

import json
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

from ottla.base.ids import Uuid, random_uuid, uuid_from_text, uuid_text
from ottla.base.ports import Disk, DiskLock, Rng
from ottla.controller.bootstrap import bootstrap_records
from ottla.metadata.features import METADATA_VERSION_4_3
from ottla.node.errors import StartError, directory_error
from ottla.node.properties import PropertiesError, decode_properties, read_properties
from ottla.runtime.metadata_log import DIRECTORY_NAME as METADATA_LOG_DIRECTORY
from ottla.runtime.snapshots import BOOTSTRAP_FILE, CorruptSnapshot, decode_snapshot, encode_snapshot

META_FILE = "meta.properties"
LOCK_FILE = ".lock"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
EPHEMERAL_FILE = ".ephemeral"
"""Marks a temporary directory, which the next start removes if its node was killed."""
_UNFORMATTED_NAMES = (
    LOCK_FILE,
    EPHEMERAL_FILE,
    BOOTSTRAP_FILE,
    f"{BOOTSTRAP_FILE}.tmp",
    f"{META_FILE}.tmp",
    "lost+found",
)
"""What a directory may contain before it is formatted: an interrupted formatting, or the root of a file system."""
META_VERSION = "1"
NO_EPOCH = -1

T = TypeVar("T")


class StorageError(StartError):
    """The data directories cannot be used in their current state."""


class MetaProperties(NamedTuple):
    """The owner of a directory. A directory without an id was formatted before Kafka introduced directory ids."""

    cluster_id: str
    node_id: int
    directory_id: Uuid | None


class DataDirectory(NamedTuple):
    """A locked directory. `is_clean` means that the last shutdown was clean, so its logs need no recovery."""

    path: str
    directory_id: Uuid
    is_clean: bool
    lock: DiskLock


class Storage(NamedTuple):
    """The directories of a starting node. They are locked until `release`."""

    cluster_id: str
    node_id: int
    directories: tuple[DataDirectory, ...]
    metadata_directory: DataDirectory
    previous_broker_epoch: int
    """The broker epoch of the last clean shutdown; -1 if the last shutdown was not clean or the node is new."""
    failed: Mapping[str, OSError] = {}
    """Failed directories, which the node starts without. The directory of the metadata log is never one of them."""

    @property
    def metadata_log_path(self) -> str:
        return f"{self.metadata_directory.path}/{METADATA_LOG_DIRECTORY}"

    def read_bootstrap_records(self, disk: Disk) -> list[Any]:
        """Return the first records of a new cluster's metadata log."""
        path = f"{self.metadata_directory.path}/{BOOTSTRAP_FILE}"
        if not disk.exists(path):
            return list(bootstrap_records())
        try:
            return decode_snapshot(disk.read(path)).records
        except CorruptSnapshot as error:
            raise StorageError(
                f"{path} is corrupt: {error}; restore it from a backup, or remove it to start with the defaults"
            ) from error

    def mark_clean(self, disk: Disk, broker_epoch: int, *, without: Container[str] = ()) -> None:
        """Write clean-shutdown markers, except in the directories `without`. Call last, once all logs are closed."""
        data = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode()
        for directory in self.directories:
            if directory.path in without:
                continue
            disk.write_atomically(f"{directory.path}/{CLEAN_SHUTDOWN_FILE}", data)

    def release(self) -> None:
        for directory in self.directories:
            directory.lock.release()


def prepare_storage(
    disk: Disk,
    rng: Rng,
    log_dirs: Sequence[str],
    metadata_dir: str,
    node_id: int,
    cluster_id: str | None,
    *,
    now_ms: int,
) -> Storage:
    """Lock the directories, format new ones, and check that the others belong to this node. Raises StorageError.

    An existing cluster starts without a directory whose file system fails, unless that contains the metadata log.
    """
    usable = _UsableDirectories(dict.fromkeys([metadata_dir, *log_dirs]), required=metadata_dir)
    created = _CreatedPaths(disk)
    locks = _lock_all(disk, usable, created)
    try:
        found = usable.run(partial(_read_meta, disk))
        try:
            _check(disk, usable, found, metadata_dir, node_id, cluster_id)
            cluster = next((meta.cluster_id for meta in found.values() if meta is not None), None)
            cluster = cluster or _new_cluster_id(cluster_id, rng)
        except StorageError:
            created.remove()
            raise
        ids = usable.run(lambda path: _format(disk, rng, path, found[path], cluster, node_id, now_ms))
        epochs = usable.run(partial(_take_clean_marker, disk))
        directories = {
            path: DataDirectory(path, ids[path], epochs[path] is not None, locks[path]) for path in usable.paths()
        }
        _release_all({path: lock for path, lock in locks.items() if path not in directories})
    except OSError as error:
        _release_all(locks)
        raise StorageError(str(directory_error(usable.last, error))) from error
    except BaseException:
        _release_all(locks)
        raise
    agreed = list(dict.fromkeys(epochs.values()))
    previous = agreed[0] if len(agreed) == 1 else None
    return Storage(
        cluster_id=cluster,
        node_id=node_id,
        directories=tuple(directories.values()),
        metadata_directory=directories[metadata_dir],
        previous_broker_epoch=NO_EPOCH if previous is None else previous,
        failed=usable.failed,
    )


class _UsableDirectories:
    """The directories whose file system has not failed yet."""

    def __init__(self, paths: Iterable[str], required: str) -> None:
        self._paths = tuple(paths)
        self._required = required
        self.last = required
        """The directory that was used last."""
        self.failed: dict[str, OSError] = {}

    def paths(self) -> list[str]:
        return [path for path in self._paths if path not in self.failed]

    def run(self, step: Callable[[str], T]) -> dict[str, T]:
        """Run a step on each usable directory; return the results. Raises OSError if the required directory fails."""
        results: dict[str, T] = {}
        for path in self.paths():
            self.last = path
            try:
                results[path] = step(path)
            except BlockingIOError:
                raise  # the directory works: another node uses it
            except OSError as error:
                if path == self._required:
                    raise
                self.failed[path] = error
        return results

    def require_all(self) -> None:
        """Raise the error of a failed directory. A new cluster needs all of them: a name may be misspelled."""
        for path, error in self.failed.items():
            self.last = path
            raise error


class _CreatedPaths:
    """Directories and lock files that this start has created, to remove them if it rejects the directories."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._lock_files: list[str] = []
        self._directories: list[str] = []
        """Parents before children."""

    def make_directory(self, path: str) -> None:
        """Create the directory and its parents, and fsync their entries, so that a power failure cannot remove them."""
        missing = []
        while not self._disk.exists(path):
            missing.append(path)
            path = path.rpartition("/")[0] or "/"
        if missing:
            self._disk.make_directories(missing[0])
        for created in reversed(missing):
            self._disk.fsync_directory(created.rpartition("/")[0] or "/")
            self._directories.append(created)

    def lock(self, path: str) -> DiskLock:
        file = f"{path}/{LOCK_FILE}"
        is_new = not self._disk.exists(file)
        lock = self._disk.lock(file)
        if is_new:
            self._lock_files.append(file)
        return lock

    def remove(self) -> None:
        """Remove the lock files, while they are locked, and the directories if they are empty."""
        for file in self._lock_files:
            self._disk.remove(file)
        for path in reversed(self._directories):
            if not self._disk.list(path):
                self._disk.remove_tree(path)


def _lock_all(disk: Disk, usable: _UsableDirectories, created: _CreatedPaths) -> dict[str, DiskLock]:
    locks: dict[str, DiskLock] = {}

    def lock(path: str) -> None:
        created.make_directory(path)
        locks[path] = created.lock(path)

    try:
        usable.run(lock)
    except OSError as error:
        with suppress(OSError):
            created.remove()
        _release_all(locks)
        raise StorageError(str(directory_error(usable.last, error))) from error
    return locks


def _check(
    disk: Disk,
    usable: _UsableDirectories,
    found: Mapping[str, MetaProperties | None],
    metadata_dir: str,
    node_id: int,
    cluster_id: str | None,
) -> None:
    formatted = {path: meta for path, meta in found.items() if meta is not None}
    _check_owners(formatted, node_id, cluster_id)
    if found[metadata_dir] is None:
        _check_is_new(metadata_dir, formatted)
        usable.require_all()
    usable.run(lambda path: None if path in formatted else _check_is_empty(disk, path))


def _release_all(locks: dict[str, DiskLock]) -> None:
    for lock in locks.values():
        lock.release()


def _read_meta(disk: Disk, path: str) -> MetaProperties | None:
    """Read meta.properties; None if the directory is not formatted."""
    file = f"{path}/{META_FILE}"
    if not disk.exists(file):
        return None
    try:
        values = {key: value for key, value, _ in read_properties(decode_properties(disk.read(file)))}
    except PropertiesError as error:
        raise _invalid_meta(file, str(error)) from error
    if values.get("version") != META_VERSION:
        version = values.get("version", "missing")
        raise _invalid_meta(file, f"version is {version}; only version {META_VERSION} is supported")
    try:
        directory_id = uuid_from_text(values["directory.id"]) if "directory.id" in values else None
        cluster_id = values["cluster.id"]
        node_id = int(values["node.id"])
    except KeyError as error:
        raise _invalid_meta(file, f"{error.args[0]} is missing") from error
    except ValueError as error:
        raise _invalid_meta(file, str(error)) from error
    if not cluster_id:
        raise _invalid_meta(file, "cluster.id is empty")
    return MetaProperties(cluster_id, node_id, directory_id)


def _invalid_meta(file: str, reason: str) -> StorageError:
    return StorageError(
        f"{file} is invalid: {reason}; restore it from a backup, or remove the directory if its data is not needed"
    )


def _check_owners(formatted: dict[str, MetaProperties], node_id: int, cluster_id: str | None) -> None:
    """Check that all formatted directories belong to this node and cluster and that their ids are unique."""
    owners: dict[Uuid, str] = {}
    first: tuple[str, MetaProperties] | None = None
    for path, meta in formatted.items():
        if meta.node_id != node_id:
            raise StorageError(
                f"{path} belongs to node {meta.node_id}, not to node {node_id}; "
                f"set node.id={meta.node_id}, or choose another directory"
            )
        if cluster_id is not None and meta.cluster_id != cluster_id:
            raise StorageError(
                f"{path} belongs to cluster {meta.cluster_id}, not to {cluster_id}; "
                "omit the cluster id, or choose another directory"
            )
        if first is not None and meta.cluster_id != first[1].cluster_id:
            raise StorageError(
                f"{path} belongs to cluster {meta.cluster_id}, but {first[0]} to {first[1].cluster_id}; "
                "remove the wrong one from log.dirs"
            )
        first = first or (path, meta)
        if meta.directory_id is not None:
            other = owners.setdefault(meta.directory_id, path)
            if other != path:
                raise StorageError(
                    f"{path} and {other} have the same directory id; if one is a copy, remove it from log.dirs"
                )


def _check_is_new(metadata_dir: str, formatted: dict[str, MetaProperties]) -> None:
    """Raise StorageError if a new metadata log would orphan the data in the other directories."""
    if formatted:
        raise StorageError(
            f"{metadata_dir} is empty, but {', '.join(formatted)} already belong to a cluster, whose metadata log is "
            f"missing; restore {metadata_dir} (is its disk mounted?), or remove the others too if their data is not "
            "needed"
        )


def _check_is_empty(disk: Disk, path: str) -> None:
    """Raise StorageError if an unformatted directory contains logs, whose owner is unknown, or other files."""
    names = [name for name in disk.list(path) if name not in _UNFORMATTED_NAMES]
    for name in names:
        if name == METADATA_LOG_DIRECTORY or disk.exists(f"{path}/{name}/partition.metadata"):
            raise StorageError(
                f"{path} contains {name} but no {META_FILE}, which names its owner; restore that file from a backup, "
                "or remove the directory if its data is not needed"
            )
    if names:
        shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        raise StorageError(
            f"{path} is not a data directory but is not empty: it contains {shown}; choose a new or empty directory "
            "with --data"
        )


def _new_cluster_id(cluster_id: str | None, rng: Rng) -> str:
    if cluster_id is None:
        return uuid_text(random_uuid(rng))
    try:
        uuid_from_text(cluster_id)
    except ValueError as error:
        raise StorageError(
            f"invalid cluster id {cluster_id!r}: must be 16 bytes in URL-safe base64, 22 characters"
        ) from error
    return cluster_id


def _format(
    disk: Disk, rng: Rng, path: str, meta: MetaProperties | None, cluster_id: str, node_id: int, now_ms: int
) -> Uuid:
    """Format the directory if it is new; return its id. `meta.properties` is written last and marks it as formatted."""
    if meta is not None and meta.directory_id is not None:
        return meta.directory_id
    directory_id = random_uuid(rng)
    if meta is None:
        records = bootstrap_records()
        disk.write_atomically(
            f"{path}/{BOOTSTRAP_FILE}", encode_snapshot(records, metadata_version=METADATA_VERSION_4_3, now_ms=now_ms)
        )
    values = {
        "cluster.id": cluster_id,
        "directory.id": uuid_text(directory_id),
        "node.id": str(node_id),
        "version": META_VERSION,
    }
    text = "".join(f"{name}={value}\n" for name, value in values.items())
    disk.write_atomically(f"{path}/{META_FILE}", text.encode())
    return directory_id


def _take_clean_marker(disk: Disk, path: str) -> int | None:
    """Remove the clean-shutdown marker and return its broker epoch, -1 if it has none; None without a marker."""
    file = f"{path}/{CLEAN_SHUTDOWN_FILE}"
    if not disk.exists(file):
        return None
    try:
        epoch = int(json.loads(disk.read(file))["brokerEpoch"])
    except (ValueError, KeyError, TypeError):
        epoch = NO_EPOCH  # older versions write an empty marker; the logs are clean all the same
    disk.remove(file)
    disk.fsync_directory(path)
    return epoch
