"""Run one shard of a coordinator: decide a call, append and replay its records, and respond once they are committed.

The shard is a pure state machine (`groups/shard.py` describes how to drive it); log, high watermark and event loop are
handled here. Responses wait for the high watermark. With one replica it has advanced when the append returns.

Concurrent calls share a batch. To detect them, the records of one call in 64 are delayed to the end of the loop
iteration; as long as other calls join, all records are. Other calls of a single client are appended at once.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, NamedTuple, Protocol

from ottla.base.decision import Decision
from ottla.base.errors import ErrorCode
from ottla.runtime.coordinator_records import KeyValue, batch_bytes_max, build, split
from ottla.runtime.partition import InternalPartition
from ottla.wire.batch_validation import BatchRejected

log = logging.getLogger("ottla.coordinators")

IMMEDIATE_APPENDS_MAX = 64
"""After this many single-call appends, delay one call to the end of the iteration to see if others share its batch."""
FAILED_APPENDS_MAX = 3
"""Failed appends per call. The shard's reaction to one may contain records, whose append may fail too."""


class CoordinatorShard(Protocol):
    """The state machine of a shard. Records are pairs of key and value."""

    def decide(self, call: Any, now_ms: int) -> Decision: ...

    def replay(self, offset: int, key: bytes, value: bytes | None) -> None: ...

    def on_append_failed(self, decision: Decision, error: ErrorCode, now_ms: int) -> Decision: ...

    def next_deadline_ms(self) -> int | None: ...

    def on_deadline(self, now_ms: int) -> Decision: ...

    def on_loaded(self, now_ms: int) -> Decision: ...

    def on_unloaded(self) -> Decision: ...


class Token:
    """Identifies a call whose response may be deferred."""

    __slots__ = ("call", "response_future")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.response_future: asyncio.Future[Any] = loop.create_future()
        self.call: Any = None
        """Set by `submit`, to build an error response if the shard is closed."""


class ShardState(IntEnum):
    LOADING = 0
    ACTIVE = 1
    FAILED = 2
    CLOSED = 3


_ACTIVE = ShardState.ACTIVE
"""Checked in every call: looking up a global is faster than looking up an enum member."""


class ShardContext(NamedTuple):
    """Collaborators shared by all shards of a topic."""

    loop: asyncio.AbstractEventLoop
    now_ms: Callable[[], int]
    error_response: Callable[[Any, ErrorCode], Any]
    """Returns the response to a call that failed."""
    codec: int
    on_state_diverged: "Callable[[ShardDriver], None]"
    """Called when the shard's state is ahead of its log, so that it must be reloaded."""
    on_append_error: Callable[[InternalPartition, OSError], None] = lambda partition, error: None
    """Called when the file system fails an append."""


class _UncommittedResponse(NamedTuple):
    """A response to send when the high watermark reaches `offset`."""

    offset: int
    call: Any
    response_future: "asyncio.Future[Any] | None"
    response: Any
    completions: tuple[tuple[Any, Any], ...]


class ShardDriver:
    """Driver of the shard of one partition. Use from the event loop's thread only."""

    __slots__ = (
        "_batch",
        "_batch_bytes",
        "_batch_calls",
        "_context",
        "_deadline_ms",
        "_end",
        "_immediate_appends_left",
        "_shard",
        "_timer",
        "_uncommitted",
        "partition",
        "state",
    )

    def __init__(self, partition: InternalPartition, shard: CoordinatorShard, context: ShardContext) -> None:
        self.partition = partition
        self.state = ShardState.LOADING
        self._shard = shard
        self._context = context
        self._end = partition.log.log_end_offset
        """The offset after the last replayed record, which may not have been appended yet."""
        self._batch: list[KeyValue] = []
        self._batch_bytes = 0
        self._batch_calls = 0
        self._immediate_appends_left = IMMEDIATE_APPENDS_MAX
        self._uncommitted: deque[_UncommittedResponse] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._deadline_ms = 0

    @property
    def shard(self) -> CoordinatorShard:
        """The state machine, for read access."""
        return self._shard

    # Lifecycle

    def replay(self, offset: int, key: bytes, value: bytes | None) -> None:
        """Replay a record while the shard is loading."""
        self._shard.replay(offset, key, value)

    def activate(self) -> None:
        """Start answering: the log has been replayed to its end."""
        self.state = ShardState.ACTIVE
        self.partition.on_high_watermark = self._on_high_watermark
        self._end = self.partition.log.log_end_offset
        now_ms = self._context.now_ms()
        self._execute_split(self._shard.on_loaded(now_ms), now_ms)

    def fail(self) -> None:
        """Answer calls with errors: the log could not be read."""
        self.state = ShardState.FAILED

    def close(self) -> None:
        """Stop answering. Pending calls get NOT_COORDINATOR, so that clients look for the new coordinator."""
        was_active = self.state == ShardState.ACTIVE
        self.state = ShardState.CLOSED
        self.partition.on_high_watermark = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._batch.clear()
        uncommitted, self._uncommitted = self._uncommitted, deque()
        for waiting in uncommitted:
            if waiting.response_future is not None:
                _resolve(waiting.response_future, self._context.error_response(waiting.call, ErrorCode.NOT_COORDINATOR))
            for token, _ in waiting.completions:
                _resolve(token.response_future, self._context.error_response(token.call, ErrorCode.NOT_COORDINATOR))
        if was_active:
            for token, response in self._shard.on_unloaded().completions:
                _resolve(token.response_future, response)

    # Calls

    def submit(self, call: Any) -> Any:
        """Return the response, or a future of it. A call whose response may be deferred has a Token as its `token`."""
        if self.state is not _ACTIVE:
            return self._context.error_response(call, self.unavailable())
        if call.token is not None:
            call.token.call = call
        now_ms = self._context.now_ms()
        return self._execute(self._shard.decide(call, now_ms), call, now_ms)

    def unavailable(self) -> ErrorCode:
        """Return the error code of a shard that is not active."""
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if self.state == ShardState.LOADING else ErrorCode.NOT_COORDINATOR

    def execute(self, decide: Callable[[Any, int], Decision]) -> None:
        """Execute a decision that no client requested. `decide` gets the shard and the time."""
        if self.state == ShardState.ACTIVE:
            now_ms = self._context.now_ms()
            self._execute_split(decide(self._shard, now_ms), now_ms)

    def _execute(self, decision: Decision, call: Any, now_ms: int, failed_appends: int = 0) -> Any:
        records = decision.records
        if records:
            is_immediate = self._immediate_appends_left > 0 and not self._batch
            if is_immediate:
                self._immediate_appends_left -= 1
            if is_immediate or not self._add_to_batch(records):
                if self._batch:
                    self._flush()
                    if self.state is not _ACTIVE:
                        return self._fail_decision(decision, call)
                error = self._append_now(records, now_ms)
                if error is not None:
                    return self._on_append_failed(decision, call, error, now_ms, failed_appends)
        deadline_ms = self._shard.next_deadline_ms()
        if deadline_ms is not None and (self._timer is None or deadline_ms < self._deadline_ms):
            self._set_timer(deadline_ms, now_ms)
        completions = decision.completions
        if self.partition.high_watermark >= self._end and not self._batch:
            for token, response in completions:
                _resolve(token.response_future, response)
            return call.token.response_future if decision.waiting else decision.response
        response_future: asyncio.Future[Any] | None = None
        if not decision.waiting and call is not None:
            response_future = self._context.loop.create_future()
        if response_future is not None or completions:
            self._uncommitted.append(
                _UncommittedResponse(self._end, call, response_future, decision.response, completions)
            )
        return call.token.response_future if decision.waiting else response_future

    def _on_append_failed(
        self, decision: Decision, call: Any, error: ErrorCode, now_ms: int, failed_appends: int
    ) -> Any:
        if failed_appends == FAILED_APPENDS_MAX:
            self._context.on_state_diverged(self)
            return self._fail_decision(decision, call)
        return self._execute(self._shard.on_append_failed(decision, error, now_ms), call, now_ms, failed_appends + 1)

    def _fail_decision(self, decision: Decision, call: Any) -> Any:
        """Answer the calls of a decision with NOT_COORDINATOR: the shard was closed before it could be executed."""
        error_response = self._context.error_response
        for token, _ in decision.completions:
            _resolve(token.response_future, error_response(token.call, ErrorCode.NOT_COORDINATOR))
        return None if call is None else error_response(call, ErrorCode.NOT_COORDINATOR)

    def _execute_split(self, decision: Decision, now_ms: int) -> None:
        """Execute a decision of no call, split into several batches if its records do not fit in one."""
        bytes_max = self.partition.log.config.max_message_bytes
        records = decision.records
        if batch_bytes_max(records) > bytes_max:
            for part in split(records, bytes_max):
                self._execute(Decision(part), None, now_ms)
                if self.state != ShardState.ACTIVE:
                    self._fail_decision(decision, None)
                    return
            decision = Decision(completions=decision.completions)
        self._execute(decision, None, now_ms)

    # The log

    def _append_now(self, records: Sequence[KeyValue], now_ms: int) -> ErrorCode | None:
        """Append the records, then replay them. If the append fails, return the error; the state is unchanged."""
        partition = self.partition
        batch = build(records, now_ms, self._context.codec)
        if len(batch) > partition.log.config.max_message_bytes:
            return ErrorCode.MESSAGE_TOO_LARGE
        offset = self._end
        try:
            self._end = partition.append_coordinator_batch(batch, len(records), now_ms)
        except BatchRejected as error:
            return error.code
        except OSError as error:
            self._context.on_append_error(partition, error)
            return ErrorCode.KAFKA_STORAGE_ERROR
        replay = self._shard.replay
        for key, value in records:
            replay(offset, key, value)
            offset += 1
        return None

    def _add_to_batch(self, records: Sequence[KeyValue]) -> bool:
        """Replay now, append at the end of the iteration. Return False if the records do not fit in the batch."""
        size = batch_bytes_max(records)
        if self._batch_bytes + size > self.partition.log.config.max_message_bytes:
            return False
        if not self._batch:
            self._context.loop.call_soon(self._flush)
        self._batch += records
        self._batch_bytes += size
        self._batch_calls += 1
        replay, offset = self._shard.replay, self._end
        for key, value in records:
            replay(offset, key, value)
            offset += 1
        self._end = offset
        return True

    def _flush(self) -> None:
        """Append the batch.

        The records are already replayed, so if the append fails the state is ahead of the log and the shard must be
        reloaded.
        """
        if not self._batch:
            return
        records, self._batch = self._batch, []
        self._immediate_appends_left = IMMEDIATE_APPENDS_MAX if self._batch_calls == 1 else 0
        self._batch_bytes = self._batch_calls = 0
        now_ms = self._context.now_ms()
        try:
            self.partition.append_coordinator_batch(build(records, now_ms, self._context.codec), len(records), now_ms)
        except (BatchRejected, OSError) as error:
            log.error(
                "append to %s-%d failed; reloading its coordinator state: %s",
                self.partition.topic,
                self.partition.index,
                error,
            )
            if isinstance(error, OSError):
                self._context.on_append_error(self.partition, error)
            self._context.on_state_diverged(self)
            return
        self._on_high_watermark()

    def _on_high_watermark(self) -> None:
        """Send the responses whose records are committed now, in order."""
        high_watermark, uncommitted = self.partition.high_watermark, self._uncommitted
        while uncommitted and uncommitted[0].offset <= high_watermark:
            waiting = uncommitted.popleft()
            if waiting.response_future is not None:
                _resolve(waiting.response_future, waiting.response)
            for token, response in waiting.completions:
                _resolve(token.response_future, response)

    # Deadlines

    def _set_timer(self, deadline_ms: int, now_ms: int) -> None:
        """Set the timer. It is not reset when a heartbeat moves the deadline: a timer that fires early is set again."""
        if self._timer is not None:
            self._timer.cancel()
        self._deadline_ms = deadline_ms
        self._timer = self._context.loop.call_later(max(deadline_ms - now_ms, 0) / 1000, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        now_ms = self._context.now_ms()
        deadline_ms = self._shard.next_deadline_ms()
        if deadline_ms is None:
            return
        if deadline_ms > now_ms:
            self._set_timer(deadline_ms, now_ms)
        else:
            self._execute_split(self._shard.on_deadline(now_ms), now_ms)


def _resolve(future: "asyncio.Future[Any]", response: Any) -> None:
    if not future.done():
        future.set_result(response)
