"""Items computed on another thread, one ahead of the consumer."""

import threading
from collections.abc import Iterator

import pytest

from ottla.spark.prefetch import Prefetcher


def nothing() -> None:
    pass


def test_items_come_in_order_from_another_thread() -> None:
    makers = set()

    def items() -> Iterator[int]:
        for number in range(100):
            makers.add(threading.get_ident())
            yield number

    with Prefetcher(items(), nothing) as ahead:
        assert list(ahead) == list(range(100))
    assert len(makers) == 1
    assert threading.get_ident() not in makers


def test_exactly_one_item_is_prefetched() -> None:
    created = []
    is_created = threading.Semaphore(0)

    def items() -> Iterator[int]:
        for number in range(10):
            created.append(number)
            is_created.release()
            yield number

    with Prefetcher(items(), nothing) as ahead:
        for number in ahead:
            assert is_created.acquire(timeout=10)
            assert len(created) <= number + 2


def test_errors_are_raised_after_earlier_items() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("spoilt")

    with Prefetcher(items(), nothing) as ahead:
        taken = iter(ahead)
        assert next(taken) == 1
        with pytest.raises(ValueError, match="spoilt"):
            next(taken)


def test_exit_interrupts_blocked_iterator() -> None:
    waiting = threading.Event()
    interrupted = threading.Event()

    def items() -> Iterator[int]:
        yield 1
        waiting.set()
        assert interrupted.wait(60)

    with Prefetcher(items(), interrupted.set) as ahead:
        assert next(iter(ahead)) == 1
        assert waiting.wait(10)
    assert not any(thread.name == "ottla-decode" for thread in threading.enumerate())
