"""An iterator that computes items on a thread, one item ahead of the consumer."""

import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Generic, Self, TypeVar

T = TypeVar("T")


class _Failed:
    def __init__(self, error: Exception) -> None:
        self.error = error


class Prefetcher(Generic[T]):
    """A context manager to iterate over once. On exit, `interrupt` is called to unblock the thread."""

    def __init__(self, items: Iterator[T], interrupt: Callable[[], None]) -> None:
        self._items = items
        self._interrupt = interrupt
        self._results: SimpleQueue[T | _Failed | None] = SimpleQueue()
        """The last item is None or an error."""
        self._requested = threading.Semaphore(1)
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="ottla-decode", daemon=True)

    def _run(self) -> None:
        while True:
            self._requested.acquire()
            if self._is_closed:
                return
            try:
                item = next(self._items, None)
            except Exception as error:
                self._results.put(_Failed(error))
                return
            self._results.put(item)
            if item is None:
                return

    def __iter__(self) -> Iterator[T]:
        while (item := self._results.get()) is not None:
            if isinstance(item, _Failed):
                raise item.error
            self._requested.release()
            yield item

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *ended: object) -> None:
        self._is_closed = True
        self._requested.release()
        self._interrupt()
        self._thread.join()
