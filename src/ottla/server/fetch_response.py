"""Assembly of a Fetch response: the result of each partition, and encoded pieces interleaved with records."""

from collections.abc import Sequence

from ottla.base.errors import ErrorCode
from ottla.base.ports import Buffer
from ottla.server.connection import FileRegion, ServerConnection
from ottla.server.fetch_sessions import (
    INITIAL_EPOCH,
    NO_SESSION,
    CachedPartition,
    CachedPartitions,
    FetchSession,
    next_epoch,
)
from ottla.wire.fetch_codec import TOPIC_IDS_MIN_VERSION, ParsedFetch, PartitionFetchResult, pack_fetch_response

FETCH = 1
NO_ERROR = 0
NO_TAGS = b"\0"

Parts = list[Buffer | FileRegion]
PartitionResponse = tuple[CachedPartition, PartitionFetchResult]
Packable = tuple[int, int, int, int, list[tuple[bytes, list[PartitionFetchResult]]]]
"""The arguments of `pack_fetch_response`: version, correlation id, error, session id and the results by topic."""


def error_result(index: int, error: ErrorCode) -> PartitionFetchResult:
    return PartitionFetchResult(index, error, -1, -1, -1, None, 0)


def is_changed(cached: CachedPartition, result: PartitionFetchResult) -> bool:
    """Return whether a session's client does not know this result yet. Errors are sent each time."""
    return bool(
        result.record_bytes
        or result.error
        or result.high_watermark != cached.high_watermark
        or result.log_start_offset != cached.log_start_offset
        or result.tags != NO_TAGS
    )


def packable(
    connection: ServerConnection,
    request: ParsedFetch,
    version: int,
    correlation_id: int,
    partitions: CachedPartitions,
    session: FetchSession | None,
    responses: Sequence[PartitionResponse],
) -> Packable:
    """Update or open the session, and return the arguments of `pack_fetch_response`. With an error, no partitions and
    no records are sent.
    """
    session_id = NO_SESSION
    if session is not None:
        session_id = session.session_id
        if session.epoch != next_epoch(request.session_epoch):  # another request has used it meanwhile
            return version, correlation_id, ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id, []
        _remember(responses)
        for cached, result in responses:
            if result.record_bytes:
                session.move_back(cached)
    elif request.session_epoch == INITIAL_EPOCH:
        _remember(responses)
        session_id = connection.fetch_sessions.open(
            partitions,
            is_by_id=version >= TOPIC_IDS_MIN_VERSION,
            now_ms=connection.broker.clock.now_ms(),
            owner=connection,
        )
    return version, correlation_id, NO_ERROR, session_id, _by_topic(responses)


def _remember(responses: Sequence[PartitionResponse]) -> None:
    for cached, result in responses:
        cached.high_watermark = result.high_watermark
        cached.log_start_offset = result.log_start_offset


def _by_topic(responses: Sequence[PartitionResponse]) -> list[tuple[bytes, list[PartitionFetchResult]]]:
    """Group consecutive partitions of a topic. As in Kafka, a topic is repeated if others are in between."""
    topics: list[tuple[bytes, list[PartitionFetchResult]]] = []
    last = None
    for cached, result in responses:
        if cached.topic != last:
            last = cached.topic
            topics.append((last, [result]))
        else:
            topics[-1][1].append(result)
    return topics


def interleave(pieces: Sequence[bytes], records: Sequence[Buffer | FileRegion | None]) -> Parts:
    """Return the pieces of `pack_fetch_response` with the records between them."""
    parts: Parts = [pieces[0]]
    for part, piece in zip(records, pieces[1:], strict=True):
        assert part is not None, records
        parts += (part, piece)
    return parts


def isolation_level_error(request: ParsedFetch, version: int, correlation_id: int) -> list[bytes]:
    """Return the response to an unknown isolation level. In older versions each partition has the error too."""
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    topics = (
        []
        if version >= TOPIC_IDS_MIN_VERSION
        else [
            (topic, [PartitionFetchResult(requested[0], error, -1, -1, -1, (), 0) for requested in partitions])
            for topic, partitions in request.topics
        ]
    )
    return pack_fetch_response(version, correlation_id, error, request.session_id, topics)
