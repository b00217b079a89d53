"""Follows the metadata log: each committed batch of records makes a new image, and the partitions here follow the image."""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ottla.base.ids import Uuid
from ottla.base.ports import Disk, Rng
from ottla.controller.requests import AssignReplicasToDirs, UpdateOnlineDirs
from ottla.log.file_cache import FileCache
from ottla.log.partition_log import PartitionLog
from ottla.metadata.configs import merged_broker_config
from ottla.metadata.delta import ClusterDelta, ImageChanges
from ottla.metadata.directories import is_reserved_directory
from ottla.metadata.image import (
    CLUSTER_DEFAULTS,
    ClusterImage,
    ConfigResource,
    PartitionImage,
    ResourceType,
    TopicImage,
)
from ottla.metadata.topic_names import INTERNAL_TOPICS
from ottla.runtime.broker import Broker
from ottla.runtime.configs import config_value, log_config
from ottla.runtime.log_directories import LogDirectories, LogDirectory
from ottla.runtime.log_flusher import LogFlusher
from ottla.runtime.log_recovery import LogRecovery, Work
from ottla.runtime.offset_checkpoints import OffsetCheckpoints
from ottla.runtime.partition import InternalPartition, Partition
from ottla.runtime.partition_opener import PartitionOpener
from ottla.runtime.replica_mover import FUTURE_SUFFIX, ReplicaMover

log = logging.getLogger("ottla.partitions")

DELETED_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"
REOPEN_SECONDS = 1.0
"""After which a partition that a full disk had no room for is tried again."""


class MetadataPublisher:
    """The only one who changes what `Broker` holds."""

    def __init__(
        self,
        broker: Broker,
        disk: Disk,
        rng: Rng,
        directories: Sequence[LogDirectory],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._broker = broker
        self._disk = disk
        self._rng = rng
        self._directories = directories
        self._on_failure = on_failure
        self.log_directories = broker.log_directories = LogDirectories(
            disk, broker.workers, directories, self._on_offline
        )
        self._files = FileCache(disk)
        self.checkpoints = OffsetCheckpoints(disk, broker.workers)
        self.flusher = LogFlusher(broker, on_failure)
        self.partition_opener = PartitionOpener(
            broker,
            disk,
            forget=self.checkpoints.forget,
            place=self._place,
            open_at=self._open_at,
            on_opened=self._on_opened,
            on_open_failed=self._on_open_failed,
            on_failure=on_failure,
        )
        self.replica_mover = broker.replica_mover = ReplicaMover(broker, disk, rng, self._swap)
        self._interrupted_moves: dict[str, LogDirectory] = {}
        self._broker_epoch = -1
        self._unassigned: dict[tuple[Uuid, int], Uuid] = {}
        """Replicas that were put elsewhere than the metadata says, of which the controller has not been told."""

    async def start(self, image: ClusterImage, log_recovery: LogRecovery) -> None:
        """Open what the image places here; logs of topics that are gone are put aside."""
        self._broker.image = image
        known = {
            f"{topic.name}-{index}": topic.topic_id
            for topic in image.topics_by_id.values()
            for index in topic.partitions
        }
        for directory in self.log_directories.online():
            try:
                self._put_strays_aside(directory, known)
            except OSError as error:
                self.log_directories.on_failure(directory, error)
        starts = self._broker.log_directories.read_start_offsets()
        points = {directory: self._recovery_points(directory) for directory in self.log_directories.online()}
        placed: list[tuple[TopicImage, int, LogDirectory]] = []
        works: list[Work[PartitionLog]] = []
        for topic in image.topics_by_id.values():
            for index in topic.partitions:
                place = self._place(topic.topic_id, index, is_new=False)
                if place is not None:
                    directory, path = place
                    placed.append((topic, index, directory))
                    works.append(
                        Work(
                            directory.path,
                            directory.is_clean,
                            partial(
                                PartitionLog.open,
                                self._disk,
                                path,
                                config=self._log_config(image, topic.name),
                                topic_id=topic.topic_id,
                                now_ms=self._broker.clock.now_ms(),
                                clean=directory.is_clean,
                                files=self._files,
                                start_offset=starts.get((topic.name, index), 0),
                                recovery_point=points[directory].get((topic.name, index), 0),
                                progress=log_recovery.progress(),
                            ),
                        )
                    )
        for (topic, index, directory), opened in zip(placed, await log_recovery.open_all(works), strict=True):
            if isinstance(opened, OSError):
                self._on_open_failed(topic.topic_id, index, directory, opened, is_new=False)
            elif directory.is_online:
                self._add(topic.topic_id, index, directory, opened)
            else:
                self._broker.set_offline(topic.name, topic.topic_id, index)
        self._broker.log_directories.forget_stale_start_offsets()

    def publish(self, first_offset: int, records: Sequence[Any]) -> None:
        """Records that have been committed, in the order of the log."""
        delta = ClusterDelta(self._broker.image)
        for at, record in enumerate(records):
            delta.replay(first_offset + at, record)
        image = delta.apply()
        changes = delta.changes(image)
        self._broker.image = image
        for deleted in changes.deleted:
            self._delete(deleted)
        if changes.deleted:
            self._broker.coordinators.on_topics_deleted([(topic.name, topic.topic_id) for topic in changes.deleted])
        for created in changes.created:
            for index in created.partitions:
                self.partition_opener.request_open(created.topic_id, index)
        for change in changes.changed:
            for index, (before, after) in change.partitions().items():
                if before is None:
                    self.partition_opener.request_open(change.after.topic_id, index)
                else:
                    self._on_partition_changed(change.after, index, after)
        self._on_configs(image, changes)

    async def assign_directories(self, broker_epoch: int) -> None:
        """Tell the controller which of several directories was chosen, and which cannot be used."""
        self._broker_epoch = self.replica_mover.broker_epoch = broker_epoch
        await self._tell_online()
        chosen, self._unassigned = self._unassigned, {}
        if chosen:
            await self._broker.controller.submit(
                AssignReplicasToDirs(self._broker.settings.node_id, broker_epoch, chosen)
            )
        moves, self._interrupted_moves = self._interrupted_moves, {}
        for name, directory in moves.items():
            topic, _, index = name.rpartition("-")
            partition = self._broker.partition(topic, int(index)) if index.isdecimal() else None
            if partition is not None:
                self.replica_mover.move(partition, directory.path)

    async def _tell_online(self) -> None:
        """The controller takes the lead from partitions in directories that are lost; those that nothing was lost of are as they were."""
        online = [
            directory.directory_id for directory in self.log_directories.online() if directory.directory_id is not None
        ]
        if self._broker.offline and online:
            await self._broker.controller.submit(
                UpdateOnlineDirs(self._broker.settings.node_id, self._broker_epoch, tuple(online))
            )

    def _on_offline(self, directory: LogDirectory) -> None:
        """A directory has failed: its partitions are, for those who ask, as gone as they can be without being deleted."""
        for partition in list(directory.partitions):
            self._broker.set_offline(partition.topic, partition.topic_id, partition.index)
            partition.on_removed()
            self._tell_coordinators(partition)
            partition.log.release_files()
        directory.partitions.clear()
        directory.partition_count = 0
        assert directory.failure is not None
        if directory.holds_metadata:
            self._on_failure(
                OSError(f"{directory.path}, which holds the metadata log, has failed: {directory.failure}")
            )
        elif not self.log_directories.online():
            self._on_failure(OSError(f"all log directories have failed, {directory.path} last: {directory.failure}"))
        elif self._broker_epoch >= 0:
            self._broker.spawn(self._tell_online())

    def _on_open_failed(
        self, topic_id: Uuid, index: int, directory: LogDirectory, error: OSError, *, is_new: bool = True
    ) -> None:
        """A log could not be made or opened. On a disk that is only full it is tried again later; a new one goes to another directory."""
        directory.partition_count -= 1
        topic = self._broker.image.topics_by_id.get(topic_id)
        if topic is not None:
            self._broker.set_offline(topic.name, topic_id, index)
        if not self.log_directories.on_failure(directory, error):
            self._broker.loop.call_later(REOPEN_SECONDS, self.partition_opener.request_open, topic_id, index)
        elif is_new and self.log_directories.online():
            self._broker.loop.call_soon(self.partition_opener.request_open, topic_id, index)

    def _recovery_points(self, directory: LogDirectory) -> Mapping[tuple[str, int], int]:
        try:
            return self.checkpoints.recovery_points.read(directory)
        except OSError as error:
            self.log_directories.on_failure(directory, error)
            return {}

    def _put_strays_aside(self, directory: LogDirectory, known: Mapping[str, Uuid]) -> None:
        for name in self._disk.list(directory.path):
            if name.endswith((DELETED_SUFFIX, FUTURE_SUFFIX)):
                if name.endswith(FUTURE_SUFFIX):
                    self._interrupted_moves[name.rpartition(".")[0]] = directory
                self._disk.remove_tree(f"{directory.path}/{name}")
            elif self._is_stray(directory, name, known):
                log.warning(
                    "%s/%s belongs to no topic of this cluster: it is kept as %s",
                    directory.path,
                    name,
                    name + STRAY_SUFFIX,
                )
                self._disk.rename(f"{directory.path}/{name}", self._aside(directory, name, STRAY_SUFFIX))

    def logs(self) -> list[PartitionLog]:
        """All that are open."""
        return [partition.log for partition in self._broker.all_partitions()]

    def _is_stray(self, directory: LogDirectory, name: str, known: Mapping[str, Uuid]) -> bool:
        if name in known or name.startswith("__cluster_metadata-") or name.endswith(STRAY_SUFFIX):
            return False
        return self._disk.exists(f"{directory.path}/{name}/partition.metadata")

    def _place(self, topic_id: Uuid, index: int, *, is_new: bool = True) -> tuple[LogDirectory, str] | None:
        """Where a partition that the image places here is to be, which from now on counts there; None where it cannot be anywhere."""
        found = self._placed_here(topic_id, index)
        if found is None:
            return None
        topic, _, assigned = found
        name = f"{topic.name}-{index}"
        directory = self._directory_of(name, assigned, is_new=is_new)
        if directory is None:
            self._broker.set_offline(topic.name, topic_id, index)
            return None
        directory.partition_count += 1
        return directory, f"{directory.path}/{name}"

    def _placed_here(self, topic_id: Uuid, index: int) -> tuple[TopicImage, PartitionImage, Uuid] | None:
        """The partition, and the directory that the metadata names for it."""
        topic = self._broker.image.topics_by_id.get(topic_id)
        placed = None if topic is None else topic.partitions.get(index)
        if topic is None or placed is None or self._broker.settings.node_id not in placed.replicas:
            return None
        return topic, placed, placed.directories[placed.replicas.index(self._broker.settings.node_id)]

    def _open_at(self, topic_id: Uuid, index: int, directory: LogDirectory) -> bool:
        found = self._placed_here(topic_id, index)
        if found is None:
            directory.partition_count -= 1
            return False
        topic, _, _ = found
        self._add(
            topic_id,
            index,
            directory,
            PartitionLog.open(
                self._disk,
                f"{directory.path}/{topic.name}-{index}",
                config=self._log_config(self._broker.image, topic.name),
                topic_id=topic_id,
                now_ms=self._broker.clock.now_ms(),
                clean=directory.is_clean,
                files=self._files,
            ),
        )
        return True

    def _add(self, topic_id: Uuid, index: int, directory: LogDirectory, partition_log: PartitionLog) -> None:
        """A partition whose log is open is here from now on."""
        found = self._placed_here(topic_id, index)
        assert found is not None, (topic_id, index)
        topic, placed, assigned = found
        if directory.directory_id is not None and directory.directory_id != assigned:
            self._unassigned[topic_id, index] = directory.directory_id
        kind = InternalPartition if topic.name in INTERNAL_TOPICS else Partition
        partition = kind(topic.name, topic_id, index, placed.leader_epoch, partition_log)
        if placed.leader == self._broker.settings.node_id:
            partition.become_leader(placed.leader_epoch)
        self._broker.add_partition(partition)
        directory.partitions[partition] = None
        self.flusher.register(partition)
        self._tell_coordinators(partition)

    def _on_opened(self) -> None:
        if self._unassigned and self._broker_epoch >= 0:
            self._broker.spawn(self.assign_directories(self._broker_epoch))

    def _directory_of(self, name: str, assigned: Uuid, *, is_new: bool) -> LogDirectory | None:
        """Where the partition already is, else where the controller wants it, else where the fewest are.

        One that was in a directory which is not here is not made anew, empty: its records may come back with the directory.
        """
        found = [directory for directory in self.log_directories.online() if self._holds(directory, name)]
        online = self.log_directories.online()
        wanted = [directory for directory in found or online if directory.directory_id == assigned]
        if wanted or found:
            chosen = (wanted or found)[0]
            for stale in found:
                if stale is not chosen:  # a move was interrupted in its last step
                    self._disk.rename(f"{stale.path}/{name}", self._aside(stale, name, DELETED_SUFFIX))
            return chosen
        is_lost = not is_new and (not is_reserved_directory(assigned) or len(online) < len(self._directories))
        if is_lost or not online:
            return None
        cordoned = self._cordoned()
        return min(online, key=lambda each: (each.path in cordoned, each.is_full, each.partition_count))

    def _cordoned(self) -> Sequence[str]:
        """Directories that get nothing new, as long as there are others."""
        cordoned = config_value(self._broker, "cordoned.log.dirs")
        assert isinstance(cordoned, tuple), cordoned
        return [str(path) for path in cordoned]

    def _holds(self, directory: LogDirectory, name: str) -> bool:
        try:
            return self._disk.exists(f"{directory.path}/{name}")
        except OSError as error:
            self.log_directories.on_failure(directory, error)
            return False

    def _on_partition_changed(self, topic: TopicImage, index: int, after: PartitionImage) -> None:
        partition = self._broker.partition(topic.name, index)
        if partition is not None:  # else it is still to be opened, and will be as the image is then
            if after.leader == self._broker.settings.node_id:
                partition.become_leader(after.leader_epoch)
            else:
                partition.become_follower(after.leader_epoch)
            self._tell_coordinators(partition)

    def _tell_coordinators(self, partition: Partition) -> None:
        """Its shard is loaded, or unloaded, if it has one."""
        if isinstance(partition, InternalPartition):
            self._broker.coordinators.on_partition(partition)

    def _delete(self, topic: TopicImage) -> None:
        """The directories are renamed at once, so that the name is free; their files go later, when nobody reads them any more."""
        for partition in self._broker.remove_topic(topic.name, topic.topic_id):
            partition.on_removed()
            self._tell_coordinators(partition)
            path = partition.log.directory
            directory = self.log_directories.of(path)
            directory.partition_count -= 1
            del directory.partitions[partition]
            aside = self._aside(directory, f"{topic.name}-{partition.index}", DELETED_SUFFIX)
            try:
                if partition.log.log_start_offset > 0:
                    # At once: a topic of the same name may be made next, and must not begin where this one did.
                    self._broker.log_directories.write_start_offsets(directory)
                self._disk.rename(path, aside)
            except OSError as error:
                self.log_directories.on_failure(directory, error)
                continue
            self._broker.loop.call_later(
                partition.log.config.file_delete_delay_ms / 1000, self._remove, partition.log, aside
            )

    def _swap(self, partition: Partition, directory: LogDirectory, moved: PartitionLog) -> None:
        """A partition goes on in another directory, where a copy of its log lies that lacks nothing."""
        source, name = partition.log, f"{partition.topic}-{partition.index}"
        path, old = f"{directory.path}/{name}", self.log_directories.of(source.directory)
        if source.recovery_point > moved.recovery_point:
            moved.flush()  # what is on one disk must not be in memory only on the other
        self._disk.rename(moved.directory, path)
        # On the loop, for once: what is appended from now on must not be found without its name after a power cut.
        self._disk.fsync_directory(directory.path)
        moved.move_to(path, self._files)
        partition.on_removed()
        self._tell_coordinators(partition)
        del old.partitions[partition]
        old.partition_count -= 1
        directory.partition_count += 1
        self._add(partition.topic_id, partition.index, directory, moved)
        for changed in (directory, old):
            if source.log_start_offset > 0:
                self.log_directories.write_start_offsets(changed)
        aside = self._aside(old, name, DELETED_SUFFIX)
        try:
            self._disk.rename(source.directory, aside)
        except OSError as error:
            self.log_directories.on_failure(old, error)
        else:
            self._broker.loop.call_later(source.config.file_delete_delay_ms / 1000, self._remove, source, aside)

    def _remove(self, partition_log: PartitionLog, path: str) -> None:
        partition_log.release_files()
        self._broker.run_in_background(lambda: self._disk.remove_tree(path))

    def _aside(self, directory: LogDirectory, name: str, suffix: str) -> str:
        unique = f".{self._rng.random_bytes(16).hex()}{suffix}"
        return f"{directory.path}/{name[: 255 - len(unique)]}{unique}"

    def _on_configs(self, image: ClusterImage, changes: ImageChanges) -> None:
        """Dynamic configs take effect at once."""
        own = ConfigResource(ResourceType.BROKER, str(self._broker.settings.node_id))
        is_broker = own in changes.configs or CLUSTER_DEFAULTS in changes.configs
        topics = (
            image.topics_by_name
            if is_broker
            else {
                resource.name: image.topics_by_name[resource.name]
                for resource in changes.configs
                if resource.type == ResourceType.TOPIC and resource.name in image.topics_by_name
            }
        )
        for topic in topics.values():
            for partition in self._broker.partitions_by_id.get(topic.topic_id, []):
                if partition is not None:
                    partition.set_config(self._log_config(image, topic.name))

    def _log_config(self, image: ClusterImage, topic: str) -> Any:
        settings = self._broker.settings
        broker = merged_broker_config(
            settings.static_configs, image.cluster_configs(), image.broker_configs(settings.node_id)
        )
        return log_config(image.topic_configs(topic), broker, self._rng.below(1000) / 1000)
