"""The data directories: what marks them as one node's, who may use them, and whether they were left in order."""

import json
from collections.abc import Callable, Container, Mapping, Sequence
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
META_VERSION = "1"
NO_EPOCH = -1

T = TypeVar("T")


class StorageError(StartError):
    """The data directories cannot be used as they are."""


class MetaProperties(NamedTuple):
    """Whose directory it is. A directory without an id was formatted before directories had any."""

    cluster_id: str
    node_id: int
    directory_id: Uuid | None


class DataDirectory(NamedTuple):
    """`is_clean`: the node that used it last stopped in order, so that the logs in it need no recovery."""

    path: str
    directory_id: Uuid
    is_clean: bool
    lock: DiskLock


class Storage(NamedTuple):
    """The directories of a node that is starting. They are locked until `release`."""

    cluster_id: str
    node_id: int
    directories: tuple[DataDirectory, ...]
    metadata_directory: DataDirectory
    previous_broker_epoch: int
    """The epoch in which this node stopped in order; -1 if it did not, or has never run."""
    failed: Mapping[str, OSError] = {}
    """Directories that cannot be used, with the reasons. The node goes without them; the one that holds the metadata log is never here."""

    @property
    def metadata_log_path(self) -> str:
        return f"{self.metadata_directory.path}/{METADATA_LOG_DIRECTORY}"

    def read_bootstrap_records(self, disk: Disk) -> list[Any]:
        """What the log of a new cluster starts with."""
        path = f"{self.metadata_directory.path}/{BOOTSTRAP_FILE}"
        if not disk.exists(path):
            return list(bootstrap_records())
        try:
            return decode_snapshot(disk.read(path)).records
        except CorruptSnapshot as error:
            raise StorageError(
                f"{path} is damaged ({error}): restore it from a backup, or remove it to start with the defaults"
            ) from error

    def mark_clean(self, disk: Disk, broker_epoch: int, *, without: Container[str] = ()) -> None:
        """Every log is closed and flushed, but for those of some directories: the next start may believe the files. Written last of all."""
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
    """Lock the directories, format those that are new, check that the others are this node's; StorageError where they are not.

    A cluster that exists goes on without a directory that the file system refuses, unless the metadata log is there.
    """
    paths = list(dict.fromkeys([metadata_dir, *log_dirs]))
    attempts = _Attempts(metadata_dir)
    locks = _lock_all(disk, paths, attempts)
    try:
        found = {
            path: meta for path in attempts.left(paths) for meta in attempts.of(path, partial(_read_meta, disk, path))
        }
        known = {path: meta for path, meta in found.items() if meta is not None}
        _check(known, node_id, cluster_id)
        if found[metadata_dir] is None:
            _check_is_new(metadata_dir, known)
            attempts.refuse_any()
        for path in found:
            if path not in known:
                attempts.of(path, partial(_check_is_empty, disk, path))
        # The metadata directory comes first: one that is empty beside others that are not has lost what the others need.
        cluster = next((meta.cluster_id for meta in known.values()), None) or _new_cluster_id(cluster_id, rng)
        ids = {
            path: made
            for path in attempts.left(paths)
            for made in attempts.of(path, partial(_format, disk, rng, path, found[path], cluster, node_id, now_ms))
        }
        epochs = {
            path: epoch
            for path in attempts.left(paths)
            for epoch in attempts.of(path, partial(_take_clean_marker, disk, path))
        }
        directories = {
            path: DataDirectory(path, ids[path], epochs[path] is not None, locks[path]) for path in attempts.left(paths)
        }
        _release_all({path: lock for path, lock in locks.items() if path not in directories})
    except OSError as error:
        _release_all(locks)
        raise StorageError(str(directory_error(attempts.path, error))) from error
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
        failed=attempts.failed,
    )


class _Attempts:
    """What is tried with each directory: one that the file system refuses is left out of all that follows."""

    def __init__(self, needed: str) -> None:
        self._needed = needed
        self.path = needed
        """The last one that something was tried with."""
        self.failed: dict[str, OSError] = {}

    def of(self, path: str, work: Callable[[], T]) -> list[T]:
        """What the work gives, or nothing where it fails; OSError where the node cannot do without the directory."""
        self.path = path
        try:
            return [work()]
        except BlockingIOError:
            raise  # it is sound, and another node's
        except OSError as error:
            if path == self._needed:
                raise
            self.failed[path] = error
            return []

    def left(self, paths: list[str]) -> list[str]:
        return [path for path in paths if path not in self.failed]

    def refuse_any(self) -> None:
        """Of a new cluster all directories have to be there: nothing is lost yet, and a name may be misspelt."""
        for path, error in self.failed.items():
            self.path = path
            raise error


def _lock_all(disk: Disk, paths: list[str], attempts: _Attempts) -> dict[str, DiskLock]:
    def lock(path: str) -> DiskLock:
        _make_durably(disk, path)
        return disk.lock(f"{path}/{LOCK_FILE}")

    locks: dict[str, DiskLock] = {}
    for path in paths:
        try:
            for taken in attempts.of(path, partial(lock, path)):
                locks[path] = taken
        except OSError as error:
            _release_all(locks)
            raise StorageError(str(directory_error(path, error))) from error
    return locks


def _make_durably(disk: Disk, path: str) -> None:
    """Make the directory and those above it, so that a power cut does not take away the name of one that is full of data."""
    missing = []
    while not disk.exists(path):
        missing.append(path)
        path = path.rpartition("/")[0] or "/"
    if missing:
        disk.make_directories(missing[0])
    for made in reversed(missing):
        disk.fsync_directory(made.rpartition("/")[0] or "/")


def _release_all(locks: dict[str, DiskLock]) -> None:
    for lock in locks.values():
        lock.release()


def _read_meta(disk: Disk, path: str) -> MetaProperties | None:
    """None where the directory has not been formatted."""
    file = f"{path}/{META_FILE}"
    if not disk.exists(file):
        return None
    try:
        values = {key: value for key, value, _ in read_properties(decode_properties(disk.read(file)))}
    except PropertiesError as error:
        raise _damaged(file, str(error)) from error
    if values.get("version") != META_VERSION:
        version = values.get("version", "none at all")
        raise _damaged(file, f"its version is {version}, and only {META_VERSION} is understood")
    try:
        directory_id = uuid_from_text(values["directory.id"]) if "directory.id" in values else None
        cluster_id = values["cluster.id"]
        node_id = int(values["node.id"])
    except KeyError as error:
        raise _damaged(file, f"{error.args[0]} is missing") from error
    except ValueError as error:
        raise _damaged(file, str(error)) from error
    if not cluster_id:
        raise _damaged(file, "cluster.id is empty")
    return MetaProperties(cluster_id, node_id, directory_id)


def _damaged(file: str, reason: str) -> StorageError:
    return StorageError(
        f"{file} cannot be used: {reason}. Restore it from a backup, or remove the whole directory if its data is not needed"
    )


def _check(known: dict[str, MetaProperties], node_id: int, cluster_id: str | None) -> None:
    """Everything that is formatted must have been formatted for this node of this cluster, each directory on its own."""
    owners: dict[Uuid, str] = {}
    first: tuple[str, MetaProperties] | None = None
    for path, meta in known.items():
        if meta.node_id != node_id:
            raise StorageError(
                f"{path} belongs to node {meta.node_id}, and this is node {node_id}: "
                f"set node.id={meta.node_id}, or choose another directory"
            )
        if cluster_id is not None and meta.cluster_id != cluster_id:
            raise StorageError(
                f"{path} belongs to the cluster {meta.cluster_id}, not to {cluster_id}: "
                "leave the cluster id out, or choose another directory"
            )
        if first is not None and meta.cluster_id != first[1].cluster_id:
            raise StorageError(
                f"{path} belongs to the cluster {meta.cluster_id}, but {first[0]} to {first[1].cluster_id}: "
                "take the one that is not meant out of log.dirs"
            )
        first = first or (path, meta)
        if meta.directory_id is not None:
            other = owners.setdefault(meta.directory_id, path)
            if other != path:
                raise StorageError(
                    f"{path} and {other} have the same directory id, as if one were a copy: take the copy out of log.dirs"
                )


def _check_is_new(metadata_dir: str, known: dict[str, MetaProperties]) -> None:
    """A new metadata log makes a new cluster: data that an old one described would be orphaned."""
    if known:
        raise StorageError(
            f"{metadata_dir} is empty, but {', '.join(known)} already belong to a cluster, whose metadata log is missing: "
            f"restore {metadata_dir} (was its disk mounted?), or remove the others too if their data is not needed"
        )


def _check_is_empty(disk: Disk, path: str) -> None:
    """Logs without a file that says whose they are could be anyone's."""
    for name in disk.list(path):
        if name == METADATA_LOG_DIRECTORY or disk.exists(f"{path}/{name}/partition.metadata"):
            raise StorageError(
                f"{path} holds {name} but no {META_FILE}, which says whose it is: restore that file from a backup, "
                "or remove the whole directory if its data is not needed"
            )


def _new_cluster_id(cluster_id: str | None, rng: Rng) -> str:
    if cluster_id is None:
        return uuid_text(random_uuid(rng))
    try:
        uuid_from_text(cluster_id)
    except ValueError as error:
        raise StorageError(
            f"{cluster_id!r} cannot be a cluster id: that is 16 bytes in URL-safe base 64, 22 characters"
        ) from error
    return cluster_id


def _format(
    disk: Disk, rng: Rng, path: str, meta: MetaProperties | None, cluster_id: str, node_id: int, now_ms: int
) -> Uuid:
    """The directory's id. `meta.properties` is written last: it is what makes a directory a formatted one."""
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
    """The broker epoch of a clean stop, -1 from a marker that has none; None without a marker. From now on the directory is in use."""
    file = f"{path}/{CLEAN_SHUTDOWN_FILE}"
    if not disk.exists(file):
        return None
    try:
        epoch = int(json.loads(disk.read(file))["brokerEpoch"])
    except (ValueError, KeyError, TypeError):
        epoch = NO_EPOCH  # written by an older version, which left it empty: the logs are clean all the same
    disk.remove(file)
    disk.fsync_directory(path)
    return epoch
