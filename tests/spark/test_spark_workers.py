"""Python worker processes, which run one task after another."""

import gc
from collections.abc import Iterator
from typing import Any


def freeze_counts(spark: Any) -> list[int]:
    """Return how many objects of each worker are exempt from garbage collection, from tasks of a Python source."""
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

    class Reader(DataSourceReader):
        def partitions(self) -> list[InputPartition]:
            return [InputPartition(index) for index in range(8)]

        def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
            import gc

            yield (gc.get_freeze_count(),)

    class Source(DataSource):
        @classmethod
        def name(cls) -> str:
            return "freeze-counts"

        def schema(self) -> str:
            return "frozen bigint"

        def reader(self, schema: Any) -> DataSourceReader:
            return Reader()

    spark.dataSource.register(Source)
    return [row.frozen for row in spark.read.format("freeze-counts").load().collect()]


def test_tasks_exempt_imported_objects_from_garbage_collection(
    spark: Any, make_topic: Any, produce: Any, read_options: Any
) -> None:
    """PySpark collects garbage after every task, which took five times as long as reading 10,000 records."""
    topic = make_topic()
    produce(topic, [b"x"] * 8)
    options = read_options(topic, minPartitions=8)
    spark.read.format("ottla").options(**options).load().write.format("noop").mode("overwrite").save()
    assert max(freeze_counts(spark)) > 10_000
    assert gc.get_freeze_count() == 0, "the driver's objects are collected as before"
