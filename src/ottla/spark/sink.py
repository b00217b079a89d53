"""The sink `ottla`, for batches and for streams: Arrow batches become record batches, and a task ends when all of them are acknowledged.

It writes at minimum once. Each producer is idempotent, so that a request which is repeated adds nothing; but a task that fails is run again
by Spark, and so is a micro-batch after a restart, and what they had written by then is written twice.
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
    """What one task has written: how many records, by topic and partition."""

    counts: dict[tuple[str, int], int] = field(default_factory=dict)


def batch_writer(schema: "StructType", options: Mapping[str, str], overwrite: bool) -> "BatchWriter":
    """The writer of `df.write.format("ottla").mode("append").save()`."""
    if overwrite:
        raise OptionError(
            "A topic cannot be overwritten: use mode 'append', or delete the topic and create it again first."
        )
    return BatchWriter(plan_sink(schema, options, UseCase.WRITE))


def stream_writer(schema: "StructType", options: Mapping[str, str], overwrite: bool) -> "StreamWriter":
    """The writer of `df.writeStream.format("ottla").start()`. In output mode complete each micro-batch appends all rows of the result, as
    with Spark's connector; mode update is refused by Spark for every sink in Python: `foreachBatch` with a batch write does the same."""
    return StreamWriter(plan_sink(schema, options, UseCase.WRITE_STREAM))


class BatchWriter(DataSourceArrowWriter):
    """Made on the driver and pickled into the tasks."""

    def __init__(self, plan: SinkPlan) -> None:
        self.plan = plan

    def write(self, iterator: "Iterator[Any]") -> Written:
        return _write(self.plan, iterator)


class StreamWriter(DataSourceStreamArrowWriter):
    """Made on the driver before each micro-batch, and pickled into its tasks."""

    def __init__(self, plan: SinkPlan) -> None:
        self.plan = plan

    def write(self, iterator: "Iterator[Any]") -> Written:
        return _write(self.plan, iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """All tasks have ended, so all records are acknowledged: there is nothing left to do."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """What was written stays: at minimum once."""


def _write(plan: SinkPlan, batches: "Iterator[Any]") -> Written:
    from ottla.spark.sink_task import write_task

    return Written(write_task(plan, batches))
