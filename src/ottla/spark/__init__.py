"""Spark reads and writes Ottla, and any Kafka: the data source `ottla`, and sessions that are ready to use it.

    spark = ottla.spark.session()
    reader = spark.readStream.format("ottla").option("kafka.bootstrap.servers", "127.0.0.1:9092")
    reader.option("subscribe", "orders").load()

Names are loaded on first use: a task that reads does not pay for the sink.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.spark.data_source import OttlaDataSource
    from ottla.spark.options import OptionError
    from ottla.spark.progress import track
    from ottla.spark.sessions import register, session

_LAZY_IMPORTS = {
    "OptionError": "options",
    "OttlaDataSource": "data_source",
    "register": "sessions",
    "session": "sessions",
    "track": "progress",
}
"""Module of each public name."""

__all__ = ["OptionError", "OttlaDataSource", "register", "session", "track"]


def __getattr__(name: str) -> Any:
    home = _LAZY_IMPORTS.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{home}"), name)
