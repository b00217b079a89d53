"""Spark looks for modules of this name and registers what they call DefaultSource: `format("ottla")` works wherever Ottla is installed."""

from ottla.spark.data_source import OttlaDataSource as DefaultSource

__all__ = ["DefaultSource"]
