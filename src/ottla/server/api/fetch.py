"""Fetch (key 1), versions 4–18: read batches, waiting for them where there are not enough yet.

Whole batches leave as they are stored. Topic ids from version 13 on (KIP-516), sessions from 7 on (KIP-227), the epoch at which a client's
log parts from this one from 12 on (KIP-595), the current leader beside errors that concern it from 16 on (KIP-951).
Skipped: nobody follows a partition here yet, so that every fetch of a follower is refused; see docs/SKIPPED.md.
"""

from ottla.base.errors import ErrorCode
from ottla.server.connection import ServerConnection
from ottla.server.fetch_reading import ISOLATION_LEVELS, Fetch, Progress
from ottla.server.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION, FetchSession, next_epoch, places_of
from ottla.wire.fetch_fast import TOPIC_IDS_FROM, FetchWish, PartitionAnswer, pack_fetched, read_fetch


def handle_raw(connection: ServerConnection, buffer: bytearray, view: memoryview, position: int, end: int, version: int,
               correlation_id: int) -> bool:
    wish = read_fetch(buffer, view, position, end, version)
    by_id = version >= TOPIC_IDS_FROM
    if wish.session_epoch == FINAL_EPOCH or wish.session_epoch == INITIAL_EPOCH:
        if wish.session_id != NO_SESSION:
            connection.fetch_sessions.close(wish.session_id)
        fetch = Fetch(connection, wish, version, correlation_id, places_of(connection.broker, wish.topics, by_id=by_id), None)
    else:
        session = _session_of(connection, wish, by_id=by_id)
        if isinstance(session, ErrorCode):
            return connection.answer(pack_fetched(version, correlation_id, session, NO_SESSION, []))
        if session.places:
            fetch = Fetch(connection, wish, version, correlation_id, session.places, session)
        else:
            connection.fetch_sessions.close(session.session_id)
            wish = wish._replace(session_epoch=FINAL_EPOCH)
            fetch = Fetch(connection, wish, version, correlation_id, places_of(connection.broker, wish.topics, by_id=by_id), None)
    if wish.isolation_level not in ISOLATION_LEVELS and fetch.is_any_known():
        return connection.answer(_refused(wish, version, correlation_id))
    return _go_on(fetch)


def _go_on(fetch: Fetch) -> bool:
    """Answer at once, if that can be; else wait for the disk or for data."""
    connection = fetch.connection
    match fetch.proceed():
        case Progress.WAIT_FOR_DISK:
            connection.on_lost = fetch.on_lost
            connection.start(fetch.read_cold())
        case Progress.WAIT_FOR_DATA:
            connection.on_lost = fetch.on_lost
            fetch.park()
        case Progress.ANSWER:
            return connection.answer(fetch.parts())
    return connection.wait()


def _session_of(connection: ServerConnection, wish: FetchWish, *, by_id: bool) -> FetchSession | ErrorCode:
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
    return session


def _refused(wish: FetchWish, version: int, correlation_id: int) -> list[bytes]:
    """An isolation level that does not exist fails the request as a whole, which older versions say of each partition."""
    failed = ErrorCode.UNKNOWN_SERVER_ERROR
    topics = [] if version >= TOPIC_IDS_FROM else [
        (topic, [PartitionAnswer(want[0], failed, -1, -1, -1, (), 0) for want in wanted]) for topic, wanted in wish.topics]
    return pack_fetched(version, correlation_id, failed, wish.session_id, topics)
