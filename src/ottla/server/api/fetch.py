"""Fetch (key 1), versions 4–18: read batches, waiting for them where there are not enough yet.

Whole batches leave as they are stored. Topic ids from version 13 on (KIP-516), sessions from 7 on (KIP-227), the epoch at which a client's
log parts from this one from 12 on (KIP-595), the current leader beside errors that concern it from 16 on (KIP-951).
Skipped: nobody follows a partition here yet, so that every fetch of a follower is refused; see docs/SKIPPED.md.
"""

from collections.abc import Sequence
from functools import partial

from ottla.base.errors import ErrorCode
from ottla.runtime.partition import ColdRead, PartitionLog
from ottla.server.connection import FileRegion, ServerConnection
from ottla.server.fetch_operation import (
    ANSWER,
    FETCH,
    ISOLATION_LEVELS,
    PARTITIONS_PER_SLICE,
    READ_COMMITTED,
    SEND_FILE_BYTES_MIN,
    WAIT_FOR_DISK,
    FetchOperation,
)
from ottla.server.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    CachedPartitions,
    FetchSession,
    next_epoch,
    resolve_partitions,
)
from ottla.wire.fetch_codec import (
    TOPIC_IDS_MIN_VERSION,
    ParsedFetch,
    PartitionFetchResult,
    pack_fetched,
    pack_found,
    read_fetch,
)

LARGE_BYTES_MIN = 64 << 10
MANY_BYTES_MIN = 4 << 10
"""A smaller request cannot name many partitions."""


def handle_raw(
    connection: ServerConnection,
    buffer: bytearray,
    view: memoryview,
    position: int,
    end: int,
    version: int,
    correlation_id: int,
) -> bool:
    if end - position > LARGE_BYTES_MIN:
        connection.broker.scheduler.large_requests.check_capacity(end - position)
        connection.start_task(_handle_large(connection, bytearray(view[position:end]), version, correlation_id))
        return connection.defer()
    wish = read_fetch(buffer, view, position, end, version)
    if end - position > MANY_BYTES_MIN and sum(len(wanted) for _, wanted in wish.topics) > PARTITIONS_PER_SLICE:
        connection.start_task(_handle_many(connection, wish, version, correlation_id))
        return connection.defer()
    if (
        wish.session_epoch == FINAL_EPOCH
        and wish.session_id == NO_SESSION
        and len(wish.topics) == 1
        and len(wish.topics[0][1]) == 1
        and wish.isolation_level in ISOLATION_LEVELS
    ):
        is_ready = _maybe_answer_one(connection, wish, version, correlation_id)
        if is_ready is not None:
            return is_ready
    fetch = _fetch_of(connection, wish, version, correlation_id)
    if not isinstance(fetch, FetchOperation):
        return connection.send(fetch)
    if fetch.has_many_partitions:
        connection.on_lost = fetch.on_lost
        connection.start_task(fetch.go_on_in_slices())
        return connection.defer()
    return _go_on(fetch)


async def _handle_large(connection: ServerConnection, request: bytearray, version: int, correlation_id: int) -> None:
    """A request that names thousands of partitions, in its turn. It is read by a worker, which takes some milliseconds."""
    await connection.broker.scheduler.large_requests.acquire(len(request))
    try:
        wish = await connection.broker.workers.run(
            partial(read_fetch, request, memoryview(request), 0, len(request), version)
        )
        await _handle_many(connection, wish, version, correlation_id)
    finally:
        connection.broker.scheduler.large_requests.release()


async def _handle_many(connection: ServerConnection, wish: ParsedFetch, version: int, correlation_id: int) -> None:
    """In slices: others have their turn after every few partitions."""
    places: CachedPartitions = {}
    if wish.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        for topic, wanted in wish.topics:
            for first in range(0, len(wanted), PARTITIONS_PER_SLICE):
                await connection.broker.scheduler.next_slice()
                places |= resolve_partitions(
                    connection.broker,
                    [(topic, wanted[first : first + PARTITIONS_PER_SLICE])],
                    by_id=version >= TOPIC_IDS_MIN_VERSION,
                )
    fetch = _fetch_of(connection, wish, version, correlation_id, places)
    if not isinstance(fetch, FetchOperation):
        connection.complete_deferred(fetch)
        return
    connection.on_lost = fetch.on_lost
    await fetch.go_on_in_slices()


def _fetch_of(
    connection: ServerConnection,
    wish: ParsedFetch,
    version: int,
    correlation_id: int,
    places: CachedPartitions | None = None,
) -> FetchOperation | Sequence[bytes]:
    """What is to be fetched, where it may be known already which places of a request without a session are meant; or the answer, where
    the request fails as a whole."""
    by_id = version >= TOPIC_IDS_MIN_VERSION
    if wish.session_epoch == FINAL_EPOCH or wish.session_epoch == INITIAL_EPOCH:
        if wish.session_id != NO_SESSION:
            connection.fetch_sessions.close(wish.session_id)
        places = places or resolve_partitions(connection.broker, wish.topics, by_id=by_id)
        fetch = FetchOperation(connection, wish, version, correlation_id, places, None)
    else:
        session = _session_of(connection, wish, by_id=by_id)
        if isinstance(session, ErrorCode):
            connection.apis[FETCH].errors += 1
            return pack_fetched(version, correlation_id, session, NO_SESSION, [])
        if session.partitions:
            fetch = FetchOperation(connection, wish, version, correlation_id, session.partitions, session)
        else:
            connection.fetch_sessions.close(session.session_id)
            wish = wish._replace(session_epoch=FINAL_EPOCH)
            fetch = FetchOperation(
                connection,
                wish,
                version,
                correlation_id,
                resolve_partitions(connection.broker, wish.topics, by_id=by_id),
                None,
            )
    if wish.isolation_level not in ISOLATION_LEVELS and fetch.is_any_known():
        connection.apis[FETCH].errors += 1
        return _refused(wish, version, correlation_id)
    return fetch


def _go_on(fetch: FetchOperation) -> bool:
    """Answer at once, if that can be; else wait for the disk or for data."""
    connection = fetch.connection
    progress = fetch.step()
    if progress == ANSWER:
        return connection.send(fetch.parts())
    connection.on_lost = fetch.on_lost
    if progress == WAIT_FOR_DISK:
        connection.start_task(fetch.read_cold())
    else:
        fetch.wait_for_data()
    return connection.defer()


def _maybe_answer_one(
    connection: ServerConnection, wish: ParsedFetch, version: int, correlation_id: int
) -> bool | None:
    """One partition whose records are at hand: what busy consumers ask for most, without the objects of the general way, which take
    3 µs of 12. None where anything is out of the ordinary."""
    replica_id, _, min_bytes, max_bytes, isolation_level, _, _, topics, _ = wish
    topic, wanted = topics[0]
    broker = connection.broker
    partitions = (broker.partitions_by_id if version >= TOPIC_IDS_MIN_VERSION else broker.partitions_by_name).get(topic)
    index, leader_epoch, offset, last_epoch, most = wanted[0]
    partition = partitions[index] if partitions is not None and 0 <= index < len(partitions) else None
    if partition is None or last_epoch >= 0 or replica_id >= 0 or leader_epoch not in (-1, partition.leader_epoch):
        return None
    log, high_watermark = partition.log, partition.high_watermark
    room = min(most, max_bytes, broker.settings.fetch_bytes_max)
    if room < 0 or not log.log_start_offset <= offset < high_watermark:
        return None
    part: memoryview | FileRegion | None
    try:
        part = log.read_cached(offset, room, limit_offset=high_watermark)
        if part is None:
            part = _file_of(log, offset, room, high_watermark)
    except (ColdRead, OSError):
        return None
    if part is None:
        return None
    size = part.size if isinstance(part, FileRegion) else len(part)
    if size < min_bytes and size < room:
        return None
    before, behind = pack_found(
        version,
        correlation_id,
        topic,
        index,
        high_watermark,
        log.log_start_offset,
        () if isolation_level == READ_COMMITTED else None,
        size,
    )
    if isinstance(part, FileRegion):
        return connection.send((before, part, behind))
    return connection.send_now((before, part, behind))


def _file_of(log: PartitionLog, offset: int, room: int, high_watermark: int) -> FileRegion | None:
    """Records that are many and in the page cache; None where they are not, or not found that easily."""
    found = log.read(offset, room, limit_offset=high_watermark, min_one_message=True, may_wait=False)
    if found is None or found.size < SEND_FILE_BYTES_MIN or not found.file.is_cached(found.position, found.size):
        return None
    return FileRegion(*found)


def _session_of(connection: ServerConnection, wish: ParsedFetch, *, by_id: bool) -> FetchSession | ErrorCode:
    """The session that the request goes on with, brought up to date."""
    sessions = connection.fetch_sessions
    session = sessions.get(wish.session_id)
    if session is None:
        return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    if session.epoch != wish.session_epoch:
        return ErrorCode.INVALID_FETCH_SESSION_EPOCH
    if session.is_by_id != by_id:
        return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    session.update(connection.broker, wish.topics, wish.forgotten)
    if not sessions.touch(session, connection.broker.clock.now_ms()):
        return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    session.epoch = next_epoch(session.epoch)
    session.owner = connection
    return session


def _refused(wish: ParsedFetch, version: int, correlation_id: int) -> list[bytes]:
    """An isolation level that does not exist fails the request as a whole, which older versions say of each partition."""
    failed = ErrorCode.UNKNOWN_SERVER_ERROR
    topics = (
        []
        if version >= TOPIC_IDS_MIN_VERSION
        else [
            (topic, [PartitionFetchResult(want[0], failed, -1, -1, -1, (), 0) for want in wanted])
            for topic, wanted in wish.topics
        ]
    )
    return pack_fetched(version, correlation_id, failed, wish.session_id, topics)
