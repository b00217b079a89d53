"""Apply committed metadata records: build the next image and create, open, change and delete this node's partitions."""

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
"""Delay before opening a partition is retried because the disk was full."""


class MetadataPublisher:
    """Follower of the metadata log, and the only writer of the `Broker`'s image and partitions."""

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
            disk, broker.workers, broker.scheduler, directories, self._on_offline
        )
        self._files = FileCache(disk)
        self.checkpoints = OffsetCheckpoints(disk, broker.workers)
        self.flusher = LogFlusher(broker, on_failure)
        self.partition_opener = PartitionOpener(
            broker,
            disk,
            remove_checkpoints=self.checkpoints.remove,
            assign_directory=self._assign_directory,
            open_in=self._open_in,
            on_opened=self._on_opened,
            on_open_failed=self._on_open_failed,
            on_failure=on_failure,
        )
        self.replica_mover = broker.replica_mover = ReplicaMover(broker, disk, rng, self._swap)
        self._interrupted_moves: dict[str, LogDirectory] = {}
        self._broker_epoch = -1
        self._unassigned: dict[tuple[Uuid, int], Uuid] = {}
        """Directories of replicas that differ from the metadata; to be reported to the controller."""

    async def start(self, image: ClusterImage, log_recovery: LogRecovery) -> None:
        """Open the partitions that the image assigns to this node; rename the logs of unknown topics."""
        self._broker.image = image
        known = {
            f"{topic.name}-{index}": topic.topic_id
            for topic in image.topics_by_id.values()
            for index in topic.partitions
        }
        for directory in self.log_directories.online():
            try:
                self._rename_stray_directories(directory, known)
            except OSError as error:
                self.log_directories.on_failure(directory, error)
        partitions, works = self._plan_recovery(image, log_recovery)
        for (topic, index, directory), opened in zip(partitions, await log_recovery.open_all(works), strict=True):
            if isinstance(opened, OSError):
                self._on_open_failed(topic.topic_id, index, directory, opened, is_new=False)
            elif directory.is_online:
                self._add(topic.topic_id, index, directory, opened)
            else:
                self._broker.set_offline(topic.name, topic.topic_id, index)
        self._broker.log_directories.prune_start_offsets()

    def _plan_recovery(
        self, image: ClusterImage, log_recovery: LogRecovery
    ) -> tuple[list[tuple[TopicImage, int, LogDirectory]], list[Work[PartitionLog]]]:
        """Return this node's partitions, and the functions that open their logs."""
        starts = self._broker.log_directories.read_start_offsets()
        points = {directory: self._recovery_points(directory) for directory in self.log_directories.online()}
        partitions: list[tuple[TopicImage, int, LogDirectory]] = []
        works: list[Work[PartitionLog]] = []
        for topic in image.topics_by_id.values():
            for index in topic.partitions:
                location = self._assign_directory(topic.topic_id, index, is_new=False)
                if location is None:
                    continue
                directory, path = location
                open_log = partial(
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
                )
                partitions.append((topic, index, directory))
                works.append(Work(directory.path, directory.is_clean, open_log))
        return partitions, works

    def publish(self, first_offset: int, records: Sequence[Any]) -> None:
        """Apply committed records, in the order of the log."""
        delta = ClusterDelta(self._broker.image)
        for position, record in enumerate(records):
            delta.replay(first_offset + position, record)
        image = delta.apply()
        changes = delta.changes(image)
        self._broker.image = image
        for deleted in changes.deleted:
            self._delete_topic(deleted)
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
        """Report chosen and failed directories to the controller, and resume interrupted moves."""
        self._broker_epoch = self.replica_mover.broker_epoch = broker_epoch
        await self._report_online_directories()
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

    async def _report_online_directories(self) -> None:
        """Let the controller elect other leaders for the partitions in failed directories, if there are any."""
        online = [
            directory.directory_id for directory in self.log_directories.online() if directory.directory_id is not None
        ]
        if self._broker.offline and online:
            await self._broker.controller.submit(
                UpdateOnlineDirs(self._broker.settings.node_id, self._broker_epoch, tuple(online))
            )

    def _on_offline(self, directory: LogDirectory) -> None:
        """Take a failed directory's partitions offline.

        Requests get KAFKA_STORAGE_ERROR, and the topics stay in the metadata.
        """
        for partition in list(directory.partitions):
            self._broker.set_offline(partition.topic, partition.topic_id, partition.index)
            partition.on_removed()
            self._notify_coordinators(partition)
            partition.log.release_files()
        directory.partitions.clear()
        directory.partition_count = 0
        assert directory.failure is not None
        if directory.holds_metadata:
            self._on_failure(
                OSError(f"the log directory of the metadata log, {directory.path}, failed: {directory.failure}")
            )
        elif not self.log_directories.online():
            self._on_failure(OSError(f"all log directories failed, {directory.path} last: {directory.failure}"))
        elif self._broker_epoch >= 0:
            self._broker.spawn(self._report_online_directories())

    def _on_open_failed(
        self, topic_id: Uuid, index: int, directory: LogDirectory, error: OSError, *, is_new: bool = True
    ) -> None:
        """Handle a log that could not be opened: retry later if the disk is full, create a new one elsewhere."""
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

    def _rename_stray_directories(self, directory: LogDirectory, known: Mapping[str, Uuid]) -> None:
        for name in self._disk.list(directory.path):
            if name.endswith((DELETED_SUFFIX, FUTURE_SUFFIX)):
                if name.endswith(FUTURE_SUFFIX):
                    self._interrupted_moves[name.rpartition(".")[0]] = directory
                self._disk.remove_tree(f"{directory.path}/{name}")
            elif self._is_stray(directory, name, known):
                path = self._unique_path(directory, name, STRAY_SUFFIX)
                log.warning("%s/%s belongs to no topic of this cluster; renaming it to %s", directory.path, name, path)
                self._disk.rename(f"{directory.path}/{name}", path)

    def logs(self) -> list[PartitionLog]:
        """Return all open logs."""
        return [partition.log for partition in self._broker.all_partitions()]

    def _is_stray(self, directory: LogDirectory, name: str, known: Mapping[str, Uuid]) -> bool:
        if name in known or name.startswith("__cluster_metadata-") or name.endswith(STRAY_SUFFIX):
            return False
        return self._disk.exists(f"{directory.path}/{name}/partition.metadata")

    def _assign_directory(self, topic_id: Uuid, index: int, *, is_new: bool = True) -> tuple[LogDirectory, str] | None:
        """Choose a directory for a partition of this node and count it there.

        None if the partition is not assigned to this node or no directory is available.
        """
        found = self._assignment(topic_id, index)
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

    def _assignment(self, topic_id: Uuid, index: int) -> tuple[TopicImage, PartitionImage, Uuid] | None:
        """Return a partition of this node and the directory id that the metadata names for it."""
        topic = self._broker.image.topics_by_id.get(topic_id)
        placed = None if topic is None else topic.partitions.get(index)
        if topic is None or placed is None or self._broker.settings.node_id not in placed.replicas:
            return None
        return topic, placed, placed.directories[placed.replicas.index(self._broker.settings.node_id)]

    def _open_in(self, topic_id: Uuid, index: int, directory: LogDirectory) -> bool:
        found = self._assignment(topic_id, index)
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
        """Add a partition with an open log to the broker."""
        found = self._assignment(topic_id, index)
        assert found is not None, (topic_id, index)
        topic, image, assigned = found
        if directory.directory_id is not None and directory.directory_id != assigned:
            self._unassigned[topic_id, index] = directory.directory_id
        partition_class = InternalPartition if topic.name in INTERNAL_TOPICS else Partition
        partition = partition_class(topic.name, topic_id, index, image.leader_epoch, partition_log)
        if image.leader == self._broker.settings.node_id:
            partition.become_leader(image.leader_epoch)
        self._broker.add_partition(partition)
        directory.partitions[partition] = None
        self.flusher.register(partition)
        self._notify_coordinators(partition)

    def _on_opened(self) -> None:
        if self._unassigned and self._broker_epoch >= 0:
            self._broker.spawn(self.assign_directories(self._broker_epoch))

    def _directory_of(self, name: str, assigned: Uuid, *, is_new: bool) -> LogDirectory | None:
        """Choose the directory that contains the partition, else the assigned one, else the one with fewest partitions.

        None for an existing partition whose directory is missing: creating it empty elsewhere would lose its records,
        which may come back with the directory.
        """
        found = [directory for directory in self.log_directories.online() if self._contains(directory, name)]
        online = self.log_directories.online()
        matching = [directory for directory in found or online if directory.directory_id == assigned]
        if matching or found:
            chosen = (matching or found)[0]
            for stale in found:
                if stale is not chosen:  # left by a move that was interrupted in its last step
                    self._disk.rename(f"{stale.path}/{name}", self._unique_path(stale, name, DELETED_SUFFIX))
            return chosen
        is_lost = not is_new and (not is_reserved_directory(assigned) or len(online) < len(self._directories))
        if is_lost or not online:
            return None
        cordoned = self._cordoned()
        return min(online, key=lambda each: (each.path in cordoned, each.is_full, each.partition_count))

    def _cordoned(self) -> Sequence[str]:
        """Return the directories that get new partitions only if no other directory is available."""
        cordoned = config_value(self._broker, "cordoned.log.dirs")
        assert isinstance(cordoned, tuple), cordoned
        return [str(path) for path in cordoned]

    def _contains(self, directory: LogDirectory, name: str) -> bool:
        try:
            return self._disk.exists(f"{directory.path}/{name}")
        except OSError as error:
            self.log_directories.on_failure(directory, error)
            return False

    def _on_partition_changed(self, topic: TopicImage, index: int, after: PartitionImage) -> None:
        partition = self._broker.partition(topic.name, index)
        if partition is not None:  # otherwise it is not open yet, and will be opened with the latest image
            if after.leader == self._broker.settings.node_id:
                partition.become_leader(after.leader_epoch)
            else:
                partition.become_follower(after.leader_epoch)
            self._notify_coordinators(partition)

    def _notify_coordinators(self, partition: Partition) -> None:
        """Let the coordinator load or unload the shard of an internal partition."""
        if isinstance(partition, InternalPartition):
            self._broker.coordinators.on_partition(partition)

    def _delete_topic(self, topic: TopicImage) -> None:
        """Delete a topic's partitions: rename their directories at once, to free the name, and remove them later."""
        for partition in self._broker.remove_topic(topic.name, topic.topic_id):
            partition.on_removed()
            self._notify_coordinators(partition)
            path = partition.log.directory
            directory = self.log_directories.of(path)
            directory.partition_count -= 1
            del directory.partitions[partition]
            deleted_path = self._unique_path(directory, f"{topic.name}-{partition.index}", DELETED_SUFFIX)
            try:
                if partition.log.log_start_offset > 0:
                    # Synchronously: the offset must not apply to a new topic of the same name.
                    self._broker.log_directories.write_start_offsets(directory)
                self._disk.rename(path, deleted_path)
            except OSError as error:
                self.log_directories.on_failure(directory, error)
                continue
            self._broker.loop.call_later(
                partition.log.config.file_delete_delay_ms / 1000, self._remove, partition.log, deleted_path
            )

    def _swap(self, partition: Partition, directory: LogDirectory, moved: PartitionLog) -> None:
        """Switch a partition to `moved`, a complete copy of its log in another directory, and delete the old log."""
        source, name = partition.log, f"{partition.topic}-{partition.index}"
        path, old = f"{directory.path}/{name}", self.log_directories.of(source.directory)
        if source.recovery_point > moved.recovery_point:
            moved.flush()  # records that were fsynced in one directory must be fsynced in the other
        self._disk.rename(moved.directory, path)
        # On the event loop: a power failure must not undo the rename once records are appended to the new log.
        self._disk.fsync_directory(directory.path)
        moved.move_to(path, self._files)
        partition.on_removed()
        self._notify_coordinators(partition)
        del old.partitions[partition]
        old.partition_count -= 1
        directory.partition_count += 1
        self._add(partition.topic_id, partition.index, directory, moved)
        for changed in (directory, old):
            if source.log_start_offset > 0:
                self.log_directories.write_start_offsets(changed)
        deleted_path = self._unique_path(old, name, DELETED_SUFFIX)
        try:
            self._disk.rename(source.directory, deleted_path)
        except OSError as error:
            self.log_directories.on_failure(old, error)
        else:
            self._broker.loop.call_later(source.config.file_delete_delay_ms / 1000, self._remove, source, deleted_path)

    def _remove(self, partition_log: PartitionLog, path: str) -> None:
        partition_log.release_files()
        self._broker.run_in_background(lambda: self._disk.remove_tree(path))

    def _unique_path(self, directory: LogDirectory, name: str, suffix: str) -> str:
        unique = f".{self._rng.random_bytes(16).hex()}{suffix}"
        return f"{directory.path}/{name[: 255 - len(unique)]}{unique}"

    def _on_configs(self, image: ClusterImage, changes: ImageChanges) -> None:
        """Apply changed dynamic configs."""
        own = ConfigResource(ResourceType.BROKER, str(self._broker.settings.node_id))
        affects_all = own in changes.configs or CLUSTER_DEFAULTS in changes.configs
        topics = (
            image.topics_by_name
            if affects_all
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
