"""Brokers inside tests: `Broker` for code that blocks, `AsyncBroker` for an event loop, and the pytest fixtures.

The names are loaded on first use: pytest imports this package in every run.
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
