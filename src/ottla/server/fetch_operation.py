"""One Fetch request, from resolving its partitions to its response. The loop never waits for the disk: workers read
what is not cached."""

from collections.abc import Coroutine, Iterable, Sequence
from enum import IntEnum
from functools import partial
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.metadata.image import TopicImage
from ottla.runtime.delayed_fetch import DelayedFetch
from ottla.runtime.partition import ColdRead, LogSlice, Partition
from ottla.runtime.slice_scheduler import ITEMS_PER_PIECE, in_pieces
from ottla.server.connection import FileRegion, ServerConnection
from ottla.server.disk_reads import ColdLookup, DiskReadError, Key, load_cached, look_up, read_slices
from ottla.server.fetch_response import (
    FETCH,
    NO_ERROR,
    NO_TAGS,
    Packable,
    PartitionResponse,
    Parts,
    error_result,
    interleave,
    is_changed,
    isolation_level_error,
    packable,
)
from ottla.server.fetch_sessions import FINAL_EPOCH, CachedPartition, CachedPartitions, FetchSession, resolve_partitions
from ottla.wire.fetch_codec import (
    TOPIC_IDS_MIN_VERSION,
    ParsedFetch,
    PartitionFetchResult,
    TopicFetch,
    current_leader,
    diverging_epoch,
    pack_fetch_response,
    pack_fetch_response_in_slices,
)
from ottla.wire.schema import SlicedWork

CURRENT_LEADER_MIN_VERSION = 16
READ_COMMITTED = 1
ISOLATION_LEVELS = (0, READ_COMMITTED)

_new_tuple = tuple.__new__
"""A NamedTuple's own `__new__` is a Python function, which costs as much as the tuple."""


class NextStep(IntEnum):
    """Next step of a fetch that cannot respond yet."""

    WAIT_FOR_DATA = 1
    WAIT_FOR_DISK = 2


Outcome = Parts | NextStep
"""A response, or the reason to wait."""


class FetchOperation:
    """`handle` responds, or defers the request until there is enough data or the disk has been read."""

    __slots__ = (
        "_broker",
        "_cold_records",
        "_connection",
        "_correlation_id",
        "_delayed",
        "_found",
        "_has_known_partition",
        "_has_waited",
        "_images",
        "_is_lost",
        "_is_urgent",
        "_lookups",
        "_missing",
        "_partitions",
        "_record_bytes",
        "_records",
        "_remaining_bytes",
        "_request",
        "_responses",
        "_session",
        "_slices",
        "_unresolved",
        "_version",
    )

    def __init__(
        self,
        connection: ServerConnection,
        request: ParsedFetch,
        version: int,
        correlation_id: int,
        session: FetchSession | None,
    ) -> None:
        self._connection = connection
        self._broker = connection.broker
        self._request = request
        self._version = version
        self._correlation_id = correlation_id
        self._session = session
        self._partitions: CachedPartitions = {} if session is None else session.partitions
        self._unresolved: Sequence[TopicFetch] = request.topics if session is None else ()
        """Partitions to be resolved first."""
        self._found: dict[Key, LogSlice | None] = {}
        self._has_waited = False
        self._is_lost = False
        self._delayed: DelayedFetch | None = None

    # Steps

    def handle(self) -> bool:
        """Respond at once if possible, else defer the request. Returns a raw handler's result."""
        outcome = self._start()
        if isinstance(outcome, list):
            return self._connection.send(outcome)
        self._connection.on_lost = self.on_lost
        self._wait(outcome)
        return self._connection.defer()

    async def handle_deferred(self) -> None:
        """Like `handle`, for a request that is already deferred."""
        self._connection.on_lost = self.on_lost
        await self._finish(self._broker.scheduler.run(self._run()))

    def _start(self) -> Outcome | Coroutine[Any, Any, Outcome]:
        count = len(self._partitions)
        for _, requested in self._unresolved:
            count += len(requested)
        if count > ITEMS_PER_PIECE:
            return self._broker.scheduler.start(self._run())
        if self._unresolved:  # a single piece: there is nothing to schedule
            self._partitions = self._resolve(self._unresolved)
            self._unresolved = ()
        if not self._is_isolation_level_valid():
            return self._isolation_level_error()
        self._begin()
        self._read(self._partitions.values())
        step = self._load_or_wait()
        return interleave(pack_fetch_response(*self._packable()), self._records) if step is None else step

    def _run(self) -> SlicedWork[Outcome]:
        """Like `_start`, in pieces."""
        for topic, requested in self._unresolved:
            for some in in_pieces(requested):
                self._partitions |= self._resolve([(topic, list(some))])
                yield
        self._unresolved = ()
        if not self._is_isolation_level_valid():
            return self._isolation_level_error()
        self._begin()
        for cached in in_pieces(list(self._partitions.values())):
            self._read(cached)
            yield
        step = self._load_or_wait()
        return (yield from self._pack()) if step is None else step

    def _pack(self) -> SlicedWork[Parts]:
        to_pack = self._packable()
        yield
        parts = interleave((yield from pack_fetch_response_in_slices(*to_pack)), self._records)
        self._broker.scheduler.free_in_slices(*(results for _, results in to_pack[-1]))
        return parts

    def _wait(self, outcome: NextStep | Coroutine[Any, Any, Outcome]) -> None:
        if outcome is NextStep.WAIT_FOR_DATA:
            self._wait_for_data()
        elif outcome is NextStep.WAIT_FOR_DISK:
            self._connection.start_task(self._read_and_finish())
        else:
            assert not isinstance(outcome, NextStep), outcome
            self._connection.start_task(self._finish(outcome))

    async def _finish(self, rest: Coroutine[Any, Any, Outcome]) -> None:
        outcome = await rest
        if outcome is NextStep.WAIT_FOR_DISK:
            outcome = await self._read_from_disk()
        if isinstance(outcome, list):
            self._connection.complete_deferred(outcome)
            self._free()
        elif not self._is_lost:
            self._wait_for_data()

    async def _read_and_finish(self) -> None:
        await self._finish(self._read_from_disk())

    def _free(self) -> None:
        """Free the objects of this operation; the partitions of a session stay."""
        self._broker.scheduler.free_in_slices(self._responses, self._missing)
        if self._request.session_epoch == FINAL_EPOCH:
            self._broker.scheduler.free_in_slices(self._partitions)

    def _resolve(self, topics: Sequence[TopicFetch]) -> CachedPartitions:
        return resolve_partitions(self._broker, topics, by_id=self._version >= TOPIC_IDS_MIN_VERSION)

    def _is_isolation_level_valid(self) -> bool:
        """Like Kafka, check the level only if a partition was found."""
        return self._request.isolation_level in ISOLATION_LEVELS or all(
            cached.partition is None for cached in self._partitions.values()
        )

    def _isolation_level_error(self) -> Parts:
        self._begin()
        self._connection.apis[FETCH].errors += 1
        return list(isolation_level_error(self._request, self._version, self._correlation_id))

    def _load_or_wait(self) -> NextStep | None:
        """Load the records if there are enough of them for a response. None if all are in memory."""
        if self._lookups:
            return NextStep.WAIT_FOR_DISK
        request = self._request
        if self._record_bytes < request.min_bytes and not (
            self._is_urgent
            or not self._has_known_partition
            or self._has_waited
            or request.max_wait_ms <= 0
            or self._record_bytes >= min(request.max_bytes, self._broker.settings.fetch_bytes_max)
        ):
            return NextStep.WAIT_FOR_DATA
        self._records, self._cold_records = load_cached(self._slices)
        return NextStep.WAIT_FOR_DISK if self._cold_records else None

    # Reading

    def _begin(self) -> None:
        self._responses: list[PartitionResponse] = []
        self._missing: list[PartitionResponse] = []
        self._slices: list[LogSlice] = []
        self._lookups: list[ColdLookup] = []
        self._images: dict[bytes, TopicImage | None] = {}
        self._remaining_bytes = min(self._request.max_bytes, self._broker.settings.fetch_bytes_max)
        self._record_bytes = 0
        self._is_urgent = self._has_known_partition = False

    def _read(self, partitions: Iterable[CachedPartition]) -> None:
        """Locate the records of requested partitions, in order, until the response is full."""
        request = self._request
        is_incremental = self._session is not None
        responses, slices = self._responses, self._slices
        remaining_bytes, size = self._remaining_bytes, self._record_bytes
        is_urgent, has_known_partition = self._is_urgent, self._has_known_partition
        for cached in partitions:
            partition = cached.partition
            if partition is None or partition.is_removed:
                partition = cached.resolve(self._broker, by_id=self._version >= TOPIC_IDS_MIN_VERSION)
                if partition is None:
                    is_urgent = self._add_missing(cached) or is_urgent
                    continue
            has_known_partition = True
            if is_incremental:
                _, leader_epoch, offset, last_epoch, _ = cached.request
                if (
                    offset == partition.high_watermark == cached.high_watermark
                    and last_epoch < 0
                    and partition.log.log_start_offset == cached.log_start_offset
                    and (leader_epoch < 0 or leader_epoch == partition.leader_epoch)
                    and request.replica_id < 0
                ):
                    if remaining_bytes < 0:
                        remaining_bytes = 0
                    continue  # unchanged since the last response: by far the most frequent case
            result, found = self._read_partition(cached, partition, remaining_bytes, size == 0)
            if found is not None:
                slices.append(found)
            _, error, _, _, _, _, record_bytes, tags = result
            size += record_bytes
            remaining_bytes -= record_bytes
            if remaining_bytes < 0:
                remaining_bytes = 0
            if error or tags != NO_TAGS:
                is_urgent = True
            if not is_incremental or is_changed(cached, result):
                responses.append((cached, result))
        self._remaining_bytes, self._record_bytes = remaining_bytes, size
        self._is_urgent, self._has_known_partition = is_urgent, has_known_partition

    def _read_partition(
        self, cached: CachedPartition, partition: Partition, remaining_bytes: int, is_first: bool
    ) -> tuple[PartitionFetchResult, LogSlice | None]:
        """Return the result of a partition, and its records. Records that are not cached count as if they filled the
        response."""
        request = self._request
        index, leader_epoch, offset, last_epoch, max_bytes = cached.request
        log = partition.log
        if leader_epoch >= 0 or last_epoch >= 0 or request.replica_id >= 0:
            error_response = self._check_epochs(partition, index, leader_epoch, offset, last_epoch)
            if error_response is not None:
                return error_response, None
        if not log.log_start_offset <= offset <= log.log_end_offset:
            return error_result(index, ErrorCode.OFFSET_OUT_OF_RANGE), None
        high_watermark = partition.high_watermark
        found, size = None, 0
        if offset < high_watermark:
            if max_bytes < remaining_bytes:
                remaining_bytes = max_bytes
            if remaining_bytes < 0:
                return error_result(index, ErrorCode.UNKNOWN_SERVER_ERROR), None
            if remaining_bytes > 0 or is_first:
                try:
                    if self._found and (key := (cached.topic, index, is_first)) in self._found:
                        found = _limit_size(self._found[key], remaining_bytes, is_first)
                    else:
                        found = log.read(
                            offset,
                            remaining_bytes,
                            limit_offset=high_watermark,
                            min_one_message=is_first,
                            may_wait=False,
                        )
                except ColdRead as cold:
                    self._lookups.append(ColdLookup((cached.topic, index, is_first), log.directory + "/", cold.retry))
                    size = max(remaining_bytes, 1)
                except OSError as error:
                    self._broker.log_directories.on_partition_failure(partition, error)
                    return error_result(index, ErrorCode.KAFKA_STORAGE_ERROR), None
                if found is not None:
                    size = found.size
                    if not size:
                        found = None
        aborted = () if request.isolation_level == READ_COMMITTED else None
        return PartitionFetchResult(
            index, NO_ERROR, high_watermark, high_watermark, log.log_start_offset, aborted, size
        ), found

    def _check_epochs(
        self, partition: Partition, index: int, leader_epoch: int, offset: int, last_epoch: int
    ) -> PartitionFetchResult | None:
        """Return an error if leader epochs do not match, or the end of the log that the client and this log have in
        common."""
        if leader_epoch >= 0 and leader_epoch > partition.leader_epoch:
            return error_result(index, ErrorCode.UNKNOWN_LEADER_EPOCH)
        is_stale = 0 <= leader_epoch < partition.leader_epoch
        if is_stale or self._request.replica_id >= 0:
            error_response = error_result(
                index, ErrorCode.FENCED_LEADER_EPOCH if is_stale else ErrorCode.NOT_LEADER_OR_FOLLOWER
            )
            if self._version >= CURRENT_LEADER_MIN_VERSION:
                error_response = error_response._replace(
                    tags=current_leader(self._broker.settings.node_id, partition.leader_epoch)
                )
            return error_response
        if last_epoch >= 0:
            epoch, end_offset = partition.log.epochs.end_offset_for(last_epoch, partition.log.log_end_offset)
            if epoch < 0 or end_offset < 0:
                return error_result(index, ErrorCode.OFFSET_OUT_OF_RANGE)
            if epoch < last_epoch or end_offset < offset:
                high_watermark = partition.high_watermark
                return PartitionFetchResult(
                    index,
                    NO_ERROR,
                    high_watermark,
                    high_watermark,
                    partition.log.log_start_offset,
                    None,
                    0,
                    diverging_epoch(epoch, end_offset),
                )
        return None

    def _add_missing(self, cached: CachedPartition) -> bool:
        """Add the error of a partition that is not on this node. Return whether to respond at once.

        As in Kafka, an unknown partition is no reason to do so.
        """
        index = cached.request[0]
        by_id = self._version >= TOPIC_IDS_MIN_VERSION
        topic = cached.topic
        if topic not in self._images:
            self._images[topic] = self._broker.topic_image(topic if by_id else topic.decode(errors="replace"))
        error = self._broker.missing_error_in(self._images[topic], index)
        if error != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            self._responses.append((cached, error_result(index, error)))
            return True
        if by_id:
            if cached.name is None:
                error = ErrorCode.UNKNOWN_TOPIC_ID
            elif self._broker.partition(cached.name, index) is not None:
                self._responses.append((cached, error_result(index, ErrorCode.INCONSISTENT_TOPIC_ID)))
                return True
        self._missing.append((cached, _new_tuple(PartitionFetchResult, (index, error, -1, -1, -1, (), 0, NO_TAGS))))
        return False

    async def _read_from_disk(self) -> Outcome:
        """Let workers look up and read until there is a response, or too little data for one."""
        workers = self._broker.workers
        outcome: Outcome = NextStep.WAIT_FOR_DISK
        while outcome is NextStep.WAIT_FOR_DISK:
            try:
                if self._lookups:
                    self._found.update(await workers.run(partial(look_up, self._lookups)))
                    outcome = await self._broker.scheduler.run(self._run())
                else:
                    cold = [
                        (index, self._slices[index], isinstance(self._records[index], FileRegion))
                        for index in self._cold_records
                    ]
                    for index, data in await workers.run(partial(read_slices, cold)):
                        self._records[index] = data
                    outcome = await self._broker.scheduler.run(self._pack())
            except DiskReadError as failure:
                self._broker.log_directories.on_failure(self._broker.log_directories.of(failure.path), failure.error)
                self._found.clear()
                outcome = await self._broker.scheduler.run(self._run())
        return outcome

    # Waiting for data

    def _wait_for_data(self) -> None:
        """Wait until there is enough data, or until `max_wait_ms` have passed."""
        self._delayed = DelayedFetch(
            self._broker.loop,
            [cached.partition for cached in self._partitions.values() if cached.partition is not None],
            missing_bytes=self._request.min_bytes - self._record_bytes,
            wait_ms=self._request.max_wait_ms,
            on_ready=self._on_ready,
        )

    def on_lost(self) -> None:
        """The client has disconnected."""
        self._is_lost = True
        if self._delayed is not None:
            self._delayed.cancel()

    def _on_ready(self) -> None:
        self._delayed = None
        self._has_waited = True
        self._found.clear()
        try:
            outcome = self._start()
            if isinstance(outcome, list):
                self._connection.complete_deferred(outcome)
            else:
                self._wait(outcome)
        except Exception as error:
            self._connection.start_task(_fail(error))

    # Responding

    def _packable(self) -> Packable:
        responses = self._responses + self._missing if self._missing else self._responses
        if self._is_urgent or self._missing:  # otherwise there are no errors
            self._connection.apis[FETCH].errors += sum(1 for _, result in responses if result.error)
        to_pack = packable(
            self._connection,
            self._request,
            self._version,
            self._correlation_id,
            self._partitions,
            self._session,
            responses,
        )
        if to_pack[2] != NO_ERROR:
            self._records = []
        return to_pack


def _limit_size(found: LogSlice | None, remaining_bytes: int, is_first: bool) -> LogSlice | None:
    """Limit what a worker found to the bytes that remain by now."""
    return found if found is None or is_first or found.size <= remaining_bytes else found._replace(size=remaining_bytes)


async def _fail(error: Exception) -> None:
    """Pass an error from a callback on to the connection, which closes."""
    raise error
