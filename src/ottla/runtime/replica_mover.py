"""Moves partitions from one log directory to another: their logs are copied beside their new place, catch up, and take it.

The controller hears of the new directory before the copy takes over, so that a node which is started after a crash knows which of two
directories with a partition's name counts.
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
TAIL_BYTES_MAX = 256 << 10
"""What is copied on the loop, in the turn in which the copy takes over."""
ATTEMPTS_MAX = 5
RATE = "replica.alter.log.dirs.io.max.bytes.per.second"

log = logging.getLogger("ottla.partitions")

Swap = Callable[[Partition, LogDirectory, PartitionLog], None]
"""From now on a partition is served from the log at its new place, and what was at the old one goes."""


class ReplicaMove:
    """One partition on its way."""

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
        """Offsets that are still missing."""
        source = self.partition.log
        return source.log_end_offset - (source.log_start_offset if self.log is None else self.log.log_end_offset)


class ReplicaMover:
    """One after another, so that a disk is read and written in one place at a time."""

    def __init__(self, broker: Broker, disk: Disk, rng: Rng, swap: Swap) -> None:
        self._broker = broker
        self._disk = disk
        self._rng = rng
        self._swap = swap
        self._moves: dict[Partition, ReplicaMove] = {}
        self._turn = asyncio.Lock()
        self.broker_epoch = -1
        """Set once the broker is registered."""

    def moves(self) -> list[ReplicaMove]:
        return list(self._moves.values())

    def move(self, partition: Partition, path: str) -> ErrorCode:
        """Begin, or begin elsewhere; to where it is already ends a move that has begun."""
        directory = next((each for each in self._broker.log_directories if each.path == path), None)
        if directory is None:
            return ErrorCode.LOG_DIR_NOT_FOUND
        if not directory.is_online:
            return ErrorCode.KAFKA_STORAGE_ERROR
        begun = self._moves.get(partition)
        if begun is not None and begun.directory is directory:
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
        """What was begun is begun anew by the next start."""
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
            async with self._turn:
                for _ in range(ATTEMPTS_MAX):
                    try:
                        await self._copy(move)
                        await self._catch_up(move)
                        await self._take_over(move)
                        move.is_done = True
                        log.info("%s has moved to %s", name, move.directory.path)
                        break
                    except SourceLogChanged:
                        move.log = None
                else:
                    log.error(
                        "%s is not moved to %s: its segments change faster than they are copied",
                        name,
                        move.directory.path,
                    )
        except OSError as error:
            if not partition.is_removed:
                log.error("%s is not moved to %s: %s", name, move.directory.path, error)
        if self._moves.get(partition) is move:
            del self._moves[partition]
        if not move.is_done:
            self._remove(move)

    def _check(self, move: ReplicaMove) -> None:
        if move.partition.is_removed or not move.directory.is_online:
            raise OSError("one of the two is gone")

    async def _copy(self, move: ReplicaMove) -> None:
        """All that there is now, slice by slice."""
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
                    await self._spare(count)
                    if position >= size:
                        break
            move.log = await workers.run(partial(copy.finish, now_ms=self._broker.clock.now_ms()))
        except FileNotFoundError:
            if move.partition.is_removed:
                raise
            raise SourceLogChanged from None
        copy.check()

    async def _spare(self, count: int) -> None:
        """Not faster than the config allows."""
        rate = config_value(self._broker, RATE)
        if isinstance(rate, int) and rate > 0:
            await asyncio.sleep(count / rate)

    async def _catch_up(self, move: ReplicaMove) -> None:
        """What was appended meanwhile, until little is missing; then all of it is put on the disk."""
        assert move.log is not None
        workers, target = self._broker.workers, move.log
        for is_flushed in (False, True):
            while (found := await self._missing(move)) is not None:
                now_ms = self._broker.clock.now_ms()
                count = await workers.run(partial(append_slice, target, found, now_ms=now_ms))
                if not count:
                    raise SourceLogChanged
                await self._spare(count)
                if found.size < TAIL_BYTES_MAX:
                    break
            if not is_flushed:
                await workers.run(target.flush)

    async def _missing(self, move: ReplicaMove) -> LogSlice | None:
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

    async def _take_over(self, move: ReplicaMove) -> None:
        """The controller is told; then, in one turn of the loop, the rest is copied and the copy takes the partition's name."""
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
            flushing = broker.flushes_in_flight.get(partition.log.directory)
            if flushing is not None:
                await asyncio.wait([flushing])
            elif partition.commit_callbacks:
                await asyncio.sleep(0.001)
            elif (found := await self._missing(move)) is not None and found.size > TAIL_BYTES_MAX:
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
