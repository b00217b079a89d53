"""Drives one shard of a coordinator: a call is decided, its records are appended and replayed, and it is answered once they are committed.

The machine is pure (see `groups/shard.py` for how it wants to be driven). Here is what it must not know: the log, the high watermark, the
event loop. Answers wait for the high watermark; with one replica it has moved when the append returns, and then nothing waits.

Records of several calls share a batch where several clients write at once. Whether they do is found out by looking: now and then a call's
records are held back until the loop's next turn, and as long as others join them, all are. One client alone never pays for that turn.
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
"""After so many appends of one call each it is looked again whether others come at the same time."""
FAILED_APPENDS_MAX = 3
"""What a machine answers to a refused append may have records of its own, which may be refused too; after so many it has no more to say."""


class CoordinatorShard(Protocol):
    """A shard's state; records are pairs of key and value."""

    def decide(self, call: Any, now_ms: int) -> Decision: ...

    def replay(self, offset: int, key: bytes, value: bytes | None) -> None: ...

    def on_append_failed(self, decision: Decision, error: ErrorCode, now_ms: int) -> Decision: ...

    def next_deadline_ms(self) -> int | None: ...

    def on_deadline(self, now_ms: int) -> Decision: ...

    def on_loaded(self, now_ms: int) -> Decision: ...

    def on_unloaded(self) -> Decision: ...


class Token:
    """What a call that may have to wait is known by."""

    __slots__ = ("answered", "call")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.answered: asyncio.Future[Any] = loop.create_future()
        self.call: Any = None
        """Set when it is submitted: its answer may turn out to be a refusal."""


class ShardState(IntEnum):
    LOADING = 0
    ACTIVE = 1
    FAILED = 2
    CLOSED = 3


_ACTIVE = ShardState.ACTIVE
"""Looked at in every call: to find a member of an enum takes longer than a global name."""


class ShardContext(NamedTuple):
    """What all shards of a topic share."""

    loop: asyncio.AbstractEventLoop
    now_ms: Callable[[], int]
    refusal: Callable[[Any, ErrorCode], Any]
    """The answer to a call that failed with an error."""
    codec: int
    on_state_diverged: "Callable[[ShardDriver], None]"
    """Called when what the shard remembers is ahead of its log: it must be loaded anew."""
    on_append_error: Callable[[InternalPartition, OSError], None] = lambda partition, error: None
    """Hears of what the file system has refused."""


class _Uncommitted(NamedTuple):
    """An answer that leaves when the high watermark has reached an offset."""

    offset: int
    call: Any
    answered: "asyncio.Future[Any] | None"
    response: Any
    completions: tuple[tuple[Any, Any], ...]


class ShardDriver:
    """One partition's share of a coordinator. Calls come from the loop's thread."""

    __slots__ = (
        "_immediate_appends_left",
        "_deadline_ms",
        "_end",
        "_machine",
        "_batch",
        "_batch_bytes",
        "_batch_calls",
        "_context",
        "_timer",
        "_uncommitted",
        "partition",
        "state",
    )

    def __init__(self, partition: InternalPartition, machine: CoordinatorShard, surroundings: ShardContext) -> None:
        self.partition = partition
        self.state = ShardState.LOADING
        self._machine = machine
        self._context = surroundings
        self._end = partition.log.log_end_offset
        """The offset after all that was replayed, whether or not it has been appended."""
        self._batch: list[KeyValue] = []
        self._batch_bytes = 0
        self._batch_calls = 0
        self._immediate_appends_left = IMMEDIATE_APPENDS_MAX
        self._uncommitted: deque[_Uncommitted] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._deadline_ms = 0

    @property
    def machine(self) -> CoordinatorShard:
        """To be looked at: it is changed by calls alone."""
        return self._machine

    # Life

    def replay(self, offset: int, key: bytes, value: bytes | None) -> None:
        """While it is loaded."""
        self._machine.replay(offset, key, value)

    def activate(self) -> None:
        """The log has been read to its end."""
        self.state = ShardState.ACTIVE
        self.partition.on_high_watermark = self._on_high_watermark
        self._end = self.partition.log.log_end_offset
        now_ms = self._context.now_ms()
        self._execute_in_parts(self._machine.on_loaded(now_ms), now_ms)

    def fail(self) -> None:
        """The log could not be read: this node cannot answer for what is in it."""
        self.state = ShardState.FAILED

    def close(self) -> None:
        """Another node answers from now on, or nobody: who waits is told to look for it."""
        was_active = self.state == ShardState.ACTIVE
        self.state = ShardState.CLOSED
        self.partition.on_high_watermark = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._batch.clear()
        uncommitted, self._uncommitted = self._uncommitted, deque()
        for waiting in uncommitted:
            if waiting.answered is not None:
                _answer(waiting.answered, self._context.refusal(waiting.call, ErrorCode.NOT_COORDINATOR))
            for token, _ in waiting.completions:
                _answer(token.answered, self._context.refusal(token.call, ErrorCode.NOT_COORDINATOR))
        if was_active:
            for token, response in self._machine.on_unloaded().completions:
                _answer(token.answered, response)

    # Calls

    def submit(self, call: Any) -> Any:
        """The response, or a future of it. A call that may have to wait has a Token of its own as its `token`."""
        if self.state is not _ACTIVE:
            return self._context.refusal(call, self.unavailable())
        if call.token is not None:
            call.token.call = call
        now_ms = self._context.now_ms()
        return self._execute(self._machine.decide(call, now_ms), call, now_ms)

    def unavailable(self) -> ErrorCode:
        """Why a shard that is not active does not answer."""
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if self.state == ShardState.LOADING else ErrorCode.NOT_COORDINATOR

    def execute(self, decide: Callable[[Any, int], Decision]) -> None:
        """What no client has asked for; `decide` is given the machine and the time."""
        if self.state == ShardState.ACTIVE:
            now_ms = self._context.now_ms()
            self._execute_in_parts(decide(self._machine, now_ms), now_ms)

    def _execute(self, decision: Decision, call: Any, now_ms: int, refusals: int = 0) -> Any:
        records = decision.records
        if records:
            is_alone = self._immediate_appends_left > 0 and not self._batch
            if is_alone:
                self._immediate_appends_left -= 1
            if is_alone or not self._add_to_batch(records):
                if self._batch:
                    self._flush()
                    if self.state is not _ACTIVE:
                        return self._refuse(decision, call)
                error = self._append_now(records, now_ms)
                if error is not None:
                    return self._execute_refused(decision, call, error, now_ms, refusals)
        deadline_ms = self._machine.next_deadline_ms()
        if deadline_ms is not None and (self._timer is None or deadline_ms < self._deadline_ms):
            self._set_timer(deadline_ms, now_ms)
        completions = decision.completions
        if self.partition.high_watermark >= self._end and not self._batch:
            for token, response in completions:
                _answer(token.answered, response)
            return call.token.answered if decision.waiting else decision.response
        answered: asyncio.Future[Any] | None = None
        if not decision.waiting and call is not None:
            answered = self._context.loop.create_future()
        if answered is not None or completions:
            self._uncommitted.append(_Uncommitted(self._end, call, answered, decision.response, completions))
        return call.token.answered if decision.waiting else answered

    def _execute_refused(self, decision: Decision, call: Any, error: ErrorCode, now_ms: int, refusals: int) -> Any:
        if refusals == FAILED_APPENDS_MAX:
            self._context.on_state_diverged(self)
            return self._refuse(decision, call)
        return self._execute(self._machine.on_append_failed(decision, error, now_ms), call, now_ms, refusals + 1)

    def _refuse(self, decision: Decision, call: Any) -> Any:
        """The shard is lost, and with it what was decided: who was to be answered is told to look for another."""
        refusal = self._context.refusal
        for token, _ in decision.completions:
            _answer(token.answered, refusal(token.call, ErrorCode.NOT_COORDINATOR))
        return None if call is None else refusal(call, ErrorCode.NOT_COORDINATOR)

    def _execute_in_parts(self, decision: Decision, now_ms: int) -> None:
        """A decision of no call may have more records than a batch can hold, and need not be kept whole."""
        bytes_max = self.partition.log.config.max_message_bytes
        records = decision.records
        if batch_bytes_max(records) > bytes_max:
            for part in split(records, bytes_max):
                self._execute(Decision(part), None, now_ms)
                if self.state != ShardState.ACTIVE:
                    self._refuse(decision, None)
                    return
            decision = Decision(completions=decision.completions)
        self._execute(decision, None, now_ms)

    # The log

    def _append_now(self, records: Sequence[KeyValue], now_ms: int) -> ErrorCode | None:
        """Appended first, and replayed only if that went well: a refusal, which is returned, leaves the machine as it was."""
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
        replay = self._machine.replay
        for key, value in records:
            replay(offset, key, value)
            offset += 1
        return None

    def _add_to_batch(self, records: Sequence[KeyValue]) -> bool:
        """Replay now, append with the others of this turn. False where there is no room in one batch."""
        size = batch_bytes_max(records)
        if self._batch_bytes + size > self.partition.log.config.max_message_bytes:
            return False
        if not self._batch:
            self._context.loop.call_soon(self._flush)
        self._batch += records
        self._batch_bytes += size
        self._batch_calls += 1
        replay, offset = self._machine.replay, self._end
        for key, value in records:
            replay(offset, key, value)
            offset += 1
        self._end = offset
        return True

    def _flush(self) -> None:
        """Append what was gathered. If that fails the machine knows what the log does not: the shard is lost."""
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
                "nothing could be appended to %s-%d, which is loaded anew: %s",
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
        """Those who waited for what is committed now are answered, in their order."""
        high_watermark, uncommitted = self.partition.high_watermark, self._uncommitted
        while uncommitted and uncommitted[0].offset <= high_watermark:
            waiting = uncommitted.popleft()
            if waiting.answered is not None:
                _answer(waiting.answered, waiting.response)
            for token, response in waiting.completions:
                _answer(token.answered, response)

    # Time

    def _set_timer(self, deadline_ms: int, now_ms: int) -> None:
        """A timer that turns out to be early is set again when it fires: deadlines move on with every heartbeat."""
        if self._timer is not None:
            self._timer.cancel()
        self._deadline_ms = deadline_ms
        self._timer = self._context.loop.call_later(max(deadline_ms - now_ms, 0) / 1000, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        now_ms = self._context.now_ms()
        deadline_ms = self._machine.next_deadline_ms()
        if deadline_ms is None:
            return
        if deadline_ms > now_ms:
            self._set_timer(deadline_ms, now_ms)
        else:
            self._execute_in_parts(self._machine.on_deadline(now_ms), now_ms)


def _answer(future: "asyncio.Future[Any]", response: Any) -> None:
    if not future.done():
        future.set_result(response)
