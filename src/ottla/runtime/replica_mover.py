"""Move partitions between log directories (AlterReplicaLogDirs): copy the log, catch up, then switch to the copy.

The controller records the new directory before the switch, so that after a crash the node knows which of two
directories with the partition's name is valid.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from ottla.base.errors import ErrorCode
from ottla.base.ports import Disk, Rng
from ottla.controller.requests import AssignReplicasToDirs
from ottla.log.log_copy import SLICE_BYTES, LogCopy, SourceLogChanged, append_slice
from ottla.log.partition_log import ColdRead, LogSlice, PartitionLog
from ottla.runtime.broker import Broker
from ottla.runtime.configs import config_value
from ottla.runtime.log_directories import LogDirectory
from ottla.runtime.partition import Partition

FUTURE_SUFFIX = "-future"
FINAL_COPY_BYTES_MAX = 256 << 10
"""Bytes that may still be missing at the switch, and are copied on the event loop."""
ATTEMPTS_MAX = 5
RATE_CONFIG = "replica.alter.log.dirs.io.max.bytes.per.second"

log = logging.getLogger("ottla.partitions")

Swap = Callable[[Partition, LogDirectory, PartitionLog], None]
"""Switches a partition to the log in its new directory and deletes the old log."""


class ReplicaMove:
    """A partition being moved to `directory`; its copy is at `path`."""

    def __init__(self, partition: Partition, directory: LogDirectory, path: str) -> None:
        self.partition = partition
        self.directory = directory
        self.path = path
        self.copied_bytes = 0
        self.log: PartitionLog | None = None
        self.is_done = False
        self.task: asyncio.Task[None] | None = None

    @property
    def lag(self) -> int:
        """Number of offsets that the copy does not contain yet."""
        source = self.partition.log
        return source.log_end_offset - (source.log_start_offset if self.log is None else self.log.log_end_offset)


class ReplicaMover:
    """Mover of one partition at a time, so that each disk is read and written sequentially."""

    def __init__(self, broker: Broker, disk: Disk, rng: Rng, swap: Swap) -> None:
        self._broker = broker
        self._disk = disk
        self._rng = rng
        self._swap = swap
        self._moves: dict[Partition, ReplicaMove] = {}
        self._lock = asyncio.Lock()
        self.broker_epoch = -1
        """Set once the broker is registered."""

    def moves(self) -> list[ReplicaMove]:
        return list(self._moves.values())

    def move(self, partition: Partition, path: str) -> ErrorCode:
        """Start moving a partition to the directory at `path`, instead of a move in progress.

        If the partition is in that directory already, only cancel the move in progress.
        """
        directory = next((each for each in self._broker.log_directories if each.path == path), None)
        if directory is None:
            return ErrorCode.LOG_DIR_NOT_FOUND
        if not directory.is_online:
            return ErrorCode.KAFKA_STORAGE_ERROR
        current = self._moves.get(partition)
        if current is not None and current.directory is directory:
            return ErrorCode.NONE
        self._cancel(partition)
        if self._broker.log_directories.of(partition.log.directory) is not directory:
            unique = self._rng.random_bytes(16).hex()
            name = f"{partition.topic}-{partition.index}"[: 255 - len(unique) - len(FUTURE_SUFFIX) - 1]
            move = self._moves[partition] = ReplicaMove(
                partition, directory, f"{directory.path}/{name}.{unique}{FUTURE_SUFFIX}"
            )
            move.task = self._broker.loop.create_task(self._run(move))
        return ErrorCode.NONE

    async def stop(self) -> None:
        """Cancel all moves. The next start restarts them."""
        tasks = [move.task for move in self._moves.values() if move.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def close(self) -> None:
        for move in self._moves.values():
            if move.task is not None:
                move.task.cancel()

    def _cancel(self, partition: Partition) -> None:
        move = self._moves.pop(partition, None)
        if move is not None and move.task is not None:
            move.task.cancel()
            move.task.add_done_callback(lambda _: self._remove(move))

    def _remove(self, move: ReplicaMove) -> None:
        if move.log is not None:
            move.log.release_files()
        if move.directory.is_online and self._disk.exists(move.path):
            self._broker.run_in_background(partial(self._disk.remove_tree, move.path))

    async def _run(self, move: ReplicaMove) -> None:
        partition = move.partition
        name = f"{partition.topic}-{partition.index}"
        try:
            async with self._lock:
                for _ in range(ATTEMPTS_MAX):
                    try:
                        await self._copy(move)
                        await self._catch_up(move)
                        await self._switch_over(move)
                        move.is_done = True
                        log.info("moved %s to %s", name, move.directory.path)
                        break
                    except SourceLogChanged:
                        move.log = None
                else:
                    log.error(
                        "could not move %s to %s: its segments changed during all %d copy attempts",
                        name,
                        move.directory.path,
                        ATTEMPTS_MAX,
                    )
        except OSError as error:
            if not partition.is_removed:
                log.error("could not move %s to %s: %s", name, move.directory.path, error)
        if self._moves.get(partition) is move:
            del self._moves[partition]
        if not move.is_done:
            self._remove(move)

    def _check(self, move: ReplicaMove) -> None:
        if move.partition.is_removed or not move.directory.is_online:
            raise OSError("the partition was removed or the target directory is offline")

    async def _copy(self, move: ReplicaMove) -> None:
        """Copy the segments that exist now, slice by slice."""
        workers, copy = self._broker.workers, LogCopy(self._disk, move.partition.log, move.path)
        move.copied_bytes = 0
        try:
            await workers.run(copy.start)
            for number, (_, size) in enumerate(copy.segments):
                position = 0
                while True:
                    self._check(move)
                    count = await workers.run(partial(copy.copy, number, position))
                    position += count
                    move.copied_bytes += count
                    await self._throttle(count)
                    if position >= size:
                        break
            move.log = await workers.run(partial(copy.finish, now_ms=self._broker.clock.now_ms()))
        except FileNotFoundError:
            if move.partition.is_removed:
                raise
            raise SourceLogChanged from None
        copy.check()

    async def _throttle(self, count: int) -> None:
        """Sleep to keep below the configured rate."""
        rate = config_value(self._broker, RATE_CONFIG)
        if isinstance(rate, int) and rate > 0:
            await asyncio.sleep(count / rate)

    async def _catch_up(self, move: ReplicaMove) -> None:
        """Copy what was appended meanwhile until little is missing, flush the copy, and catch up again."""
        assert move.log is not None
        workers, target = self._broker.workers, move.log
        for is_flushed in (False, True):
            while (found := await self._read_missing(move)) is not None:
                now_ms = self._broker.clock.now_ms()
                count = await workers.run(partial(append_slice, target, found, now_ms=now_ms))
                if not count:
                    raise SourceLogChanged
                await self._throttle(count)
                if found.size < FINAL_COPY_BYTES_MAX:
                    break
            if not is_flushed:
                await workers.run(target.flush)

    async def _read_missing(self, move: ReplicaMove) -> LogSlice | None:
        self._check(move)
        assert move.log is not None
        source = move.partition.log
        try:
            return source.read(
                move.log.log_end_offset,
                SLICE_BYTES,
                limit_offset=source.log_end_offset,
                min_one_message=True,
                may_wait=False,
            )
        except ColdRead as cold:
            return await self._broker.workers.run(cold.retry)

    async def _switch_over(self, move: ReplicaMove) -> None:
        """Report the directory to the controller; copy the rest and switch over within one event-loop iteration."""
        assert move.log is not None
        broker, partition, target = self._broker, move.partition, move.log
        assert move.directory.directory_id is not None
        request = AssignReplicasToDirs(
            broker.settings.node_id,
            self.broker_epoch,
            {(partition.topic_id, partition.index): move.directory.directory_id},
        )
        await broker.controller.submit(request)
        while True:
            flush = broker.flushes_in_flight.get(partition.log.directory)
            if flush is not None:
                await asyncio.wait([flush])
            elif partition.commit_callbacks:
                await asyncio.sleep(0.001)
            elif (found := await self._read_missing(move)) is not None and found.size > FINAL_COPY_BYTES_MAX:
                await broker.workers.run(partial(append_slice, target, found, now_ms=broker.clock.now_ms()))
            elif not broker.flushes_in_flight.get(partition.log.directory) and not partition.commit_callbacks:
                break
        source = partition.log
        while (
            rest := source.read(
                target.log_end_offset, SLICE_BYTES, limit_offset=source.log_end_offset, min_one_message=True
            )
        ) is not None:
            if not append_slice(target, rest, now_ms=broker.clock.now_ms()):
                raise SourceLogChanged
        target.advance_start(source.log_start_offset)
        self._swap(partition, move.directory, target)
