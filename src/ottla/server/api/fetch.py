"""Fetch (key 1), versions 4–18: read batches, and wait for more if there are not enough.

Batches are sent as they are stored; the last one may be incomplete, as in Kafka. Topic ids from version 13 on
(KIP-516), sessions from 7 on (KIP-227), the epoch at which a client's log diverges from 12 on (KIP-595), the current
leader beside errors that concern it from 16 on (KIP-951). Skipped: no follower replicates a partition yet, so each of
its fetches gets an error; see docs/SKIPPED.md.
"""

from functools import partial

from ottla.base.errors import ErrorCode
from ottla.runtime.partition import ColdRead, PartitionLog
from ottla.server.connection import FileRegion, ServerConnection
from ottla.server.disk_reads import SEND_FILE_BYTES_MIN
from ottla.server.fetch_operation import ISOLATION_LEVELS, READ_COMMITTED, FetchOperation
from ottla.server.fetch_response import FETCH
from ottla.server.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION, FetchSession, next_epoch
from ottla.wire.fetch_codec import (
    TOPIC_IDS_MIN_VERSION,
    ParsedFetch,
    pack_fetch_response,
    pack_single_fetch_response,
    read_fetch,
)

LARGE_BYTES_MIN = 64 << 10


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
    request = read_fetch(buffer, view, position, end, version)
    if (
        request.session_epoch == FINAL_EPOCH
        and request.session_id == NO_SESSION
        and len(request.topics) == 1
        and len(request.topics[0][1]) == 1
        and request.isolation_level in ISOLATION_LEVELS
    ):
        is_ready = _maybe_respond_from_cache(connection, request, version, correlation_id)
        if is_ready is not None:
            return is_ready
    operation = _operation(connection, request, version, correlation_id)
    if isinstance(operation, ErrorCode):
        return connection.send(_session_error(connection, version, correlation_id, operation))
    return operation.handle()


async def _handle_large(connection: ServerConnection, data: bytearray, version: int, correlation_id: int) -> None:
    """A request that names thousands of partitions. A worker decodes it, which takes some milliseconds."""
    throttle = connection.broker.scheduler.large_requests
    await throttle.acquire(len(data))
    try:
        if connection.is_closed:
            return
        request = await connection.broker.workers.run(
            partial(read_fetch, data, memoryview(data), 0, len(data), version)
        )
        operation = _operation(connection, request, version, correlation_id)
        if isinstance(operation, ErrorCode):
            connection.complete_deferred(_session_error(connection, version, correlation_id, operation))
        else:
            await operation.handle_deferred()
    finally:
        throttle.release()


def _operation(
    connection: ServerConnection, request: ParsedFetch, version: int, correlation_id: int
) -> FetchOperation | ErrorCode:
    """Return the operation of a request, or the error of its session."""
    session = None
    if request.session_epoch == FINAL_EPOCH or request.session_epoch == INITIAL_EPOCH:
        if request.session_id != NO_SESSION:
            connection.fetch_sessions.close(request.session_id)
    else:
        found = _session_of(connection, request, by_id=version >= TOPIC_IDS_MIN_VERSION)
        if isinstance(found, ErrorCode):
            return found
        if found.partitions:
            session = found
        else:
            connection.fetch_sessions.close(found.session_id)
            request = request._replace(session_epoch=FINAL_EPOCH)
    return FetchOperation(connection, request, version, correlation_id, session)


def _session_error(connection: ServerConnection, version: int, correlation_id: int, error: ErrorCode) -> list[bytes]:
    connection.apis[FETCH].errors += 1
    return pack_fetch_response(version, correlation_id, error, NO_SESSION, [])


def _maybe_respond_from_cache(
    connection: ServerConnection, request: ParsedFetch, version: int, correlation_id: int
) -> bool | None:
    """Respond to a fetch of one partition whose records are in the page cache; return None if anything else is needed.

    This is what busy consumers send most. The objects of `FetchOperation` would take 3 µs of 12.
    """
    replica_id, _, min_bytes, max_bytes, isolation_level, _, _, topics, _ = request
    topic, requested = topics[0]
    broker = connection.broker
    partitions = (broker.partitions_by_id if version >= TOPIC_IDS_MIN_VERSION else broker.partitions_by_name).get(topic)
    index, leader_epoch, offset, last_epoch, partition_max_bytes = requested[0]
    partition = partitions[index] if partitions is not None and 0 <= index < len(partitions) else None
    if partition is None or last_epoch >= 0 or replica_id >= 0 or leader_epoch not in (-1, partition.leader_epoch):
        return None
    log, high_watermark = partition.log, partition.high_watermark
    remaining_bytes = min(partition_max_bytes, max_bytes, broker.settings.fetch_bytes_max)
    if remaining_bytes < 0 or not log.log_start_offset <= offset < high_watermark:
        return None
    part: memoryview | FileRegion | None
    try:
        part = log.read_cached(offset, remaining_bytes, limit_offset=high_watermark)
        if part is None:
            part = _file_of(log, offset, remaining_bytes, high_watermark)
    except (ColdRead, OSError):
        return None
    if part is None:
        return None
    size = part.size if isinstance(part, FileRegion) else len(part)
    if size < min_bytes and size < remaining_bytes:
        return None
    before, after = pack_single_fetch_response(
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
        return connection.send((before, part, after))
    return connection.send_now((before, part, after))


def _file_of(log: PartitionLog, offset: int, remaining_bytes: int, high_watermark: int) -> FileRegion | None:
    """Return a large range of records if it is in the page cache and needs no search, else None."""
    found = log.read(offset, remaining_bytes, limit_offset=high_watermark, min_one_message=True, may_wait=False)
    if found is None or found.size < SEND_FILE_BYTES_MIN or not found.file.is_cached(found.position, found.size):
        return None
    return FileRegion(*found)


def _session_of(connection: ServerConnection, request: ParsedFetch, *, by_id: bool) -> FetchSession | ErrorCode:
    """Update the session of the request, and return it or the request's error."""
    sessions = connection.fetch_sessions
    session = sessions.get(request.session_id)
    if session is None:
        return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    if session.epoch != request.session_epoch:
        return ErrorCode.INVALID_FETCH_SESSION_EPOCH
    if session.is_by_id != by_id:
        return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    session.update(connection.broker, request.topics, request.forgotten)
    if not sessions.touch(session, connection.broker.clock.now_ms()):
        return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    session.epoch = next_epoch(session.epoch)
    session.owner = connection
    return session
