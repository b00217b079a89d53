"""Deadlines by key. Most are moved before they expire, so moving one costs a dict entry and no heap operation."""

from heapq import heappop, heappush
from typing import NamedTuple


class TimerKey(NamedTuple):
    """Identifies a timer. `member_id` is empty for timers of a group."""

    group_id: str
    type: str
    member_id: str = ""


class Timers:
    """One deadline per key.

    The heap holds the time to check each key next; a deadline that moved later is requeued then.
    """

    def __init__(self) -> None:
        self._deadlines: dict[TimerKey, int] = {}
        self._queued: dict[TimerKey, int] = {}
        self._heap: list[tuple[int, TimerKey]] = []

    def set(self, key: TimerKey, deadline_ms: int) -> None:
        self._deadlines[key] = deadline_ms
        queued = self._queued.get(key)
        if queued is None or deadline_ms < queued:
            self._queued[key] = deadline_ms
            heappush(self._heap, (deadline_ms, key))

    def cancel(self, key: TimerKey) -> None:
        self._deadlines.pop(key, None)

    def next_deadline_ms(self) -> int | None:
        """Return the earliest deadline, requeueing heap entries whose deadline moved or was cancelled."""
        while self._heap:
            at, key = self._heap[0]
            deadline = self._deadlines.get(key)
            if self._queued.get(key) == at and deadline == at:
                return at
            heappop(self._heap)
            if self._queued.get(key) == at:
                self._requeue(key, deadline)
        return None

    def pop_due(self, now_ms: int) -> TimerKey | None:
        """Remove and return the key with the earliest deadline, if it has passed."""
        at = self.next_deadline_ms()
        if at is None or at > now_ms:
            return None
        _, key = heappop(self._heap)
        del self._queued[key], self._deadlines[key]
        return key

    def _requeue(self, key: TimerKey, deadline: int | None) -> None:
        if deadline is None:
            del self._queued[key]
        else:
            self._queued[key] = deadline
            heappush(self._heap, (deadline, key))
