"""The sink `ottla` for batches and streams: Arrow batches become record batches, and a task ends when all are
acknowledged.

Delivery is at least once. Producers are idempotent, so retried requests add no duplicates; but Spark reruns failed
tasks and, after a restart, the last micro-batch, whose records are then written again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from ottla.spark.options import OptionError, UseCase
from ottla.spark.sink_plan import SinkPlan, plan_sink

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@dataclass
class Written(WriterCommitMessage):
    """Result of a task: number of records by topic and partition."""

    counts: dict[tuple[str, int], int] = field(default_factory=dict)


def batch_writer(schema: "StructType", options: Mapping[str, str], overwrite: bool) -> "BatchWriter":
    """Return the writer of `df.write.format("ottla").mode("append").save()`."""
    if overwrite:
        raise OptionError("A topic cannot be overwritten; use mode 'append', or delete and recreate the topic first.")
    return BatchWriter(plan_sink(schema, options, UseCase.WRITE))


def stream_writer(schema: "StructType", options: Mapping[str, str], overwrite: bool) -> "StreamWriter":
    """Return the writer of `df.writeStream.format("ottla").start()`.

    In output mode complete, each micro-batch appends all rows of the result, as with Spark's connector. Spark rejects
    mode update for all Python sinks; use `foreachBatch` with a batch write instead.
    """
    return StreamWriter(plan_sink(schema, options, UseCase.WRITE_STREAM))


class BatchWriter(DataSourceArrowWriter):
    """Created on the driver and pickled to the tasks."""

    def __init__(self, plan: SinkPlan) -> None:
        self.plan = plan

    def write(self, iterator: "Iterator[Any]") -> Written:
        return _write(self.plan, iterator)


class StreamWriter(DataSourceStreamArrowWriter):
    """Created on the driver for each micro-batch and pickled to its tasks."""

    def __init__(self, plan: SinkPlan) -> None:
        self.plan = plan

    def write(self, iterator: "Iterator[Any]") -> Written:
        return _write(self.plan, iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """All tasks have ended, so all records are acknowledged."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Written records remain: delivery is at least once."""


def _write(plan: SinkPlan, batches: "Iterator[Any]") -> Written:
    from ottla.spark.sink_task import write_task

    return Written(write_task(plan, batches))
