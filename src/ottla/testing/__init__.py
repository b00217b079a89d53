"""Brokers for tests: `Broker` for blocking code, `AsyncBroker` for asyncio, and the pytest fixtures.

Both names are imported on first use, since pytest imports this package in every run.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.testing.broker import AsyncBroker, Broker

__all__ = ["AsyncBroker", "Broker"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from ottla.testing import broker

        return getattr(broker, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
