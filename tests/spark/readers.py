"""Drives readers as Spark does, without Spark: pickles them for tasks and collects Arrow batches into rows."""

import pickle
from typing import Any

from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.streaming.datasource import ReadAllAvailable

from ottla.spark.data_source import OttlaDataSource


def source(options: dict[str, str]) -> OttlaDataSource:
    return OttlaDataSource(CaseInsensitiveDict(options))


def batch_reader(options: dict[str, str]) -> Any:
    created = source(options)
    return created.reader(created.schema())


def stream_reader(options: dict[str, str]) -> Any:
    created = source(options)
    return created.streamReader(created.schema())


def rows_of(reader: Any, partitions: Any) -> list[dict[str, Any]]:
    """Return the rows of these partitions' tasks, by topic, partition and offset."""
    rows = []
    for partition in partitions:
        task = pickle.loads(pickle.dumps(reader))
        for batch in task.read(pickle.loads(pickle.dumps(partition))):
            rows += batch.to_pylist()
    return sorted(rows, key=lambda row: (row["topic"], row["partition"], row["offset"]))


def read(options: dict[str, str]) -> list[dict[str, Any]]:
    """Run a batch read."""
    reader = batch_reader(options)
    return rows_of(reader, reader.partitions())


def values(rows: list[dict[str, Any]]) -> list[Any]:
    return [row["value"] for row in rows]


def marked(offsets: dict[str, dict[str, int]]) -> dict[str, Any]:
    """Return offsets by topic and partition, as stored in a checkpoint."""
    return {"@ottla": 1, **offsets}


def ranges_of(partitions: Any) -> list[tuple[Any, ...]]:
    return [tuple(partition.range) for partition in partitions]


def micro_batch(reader: Any, start: Any, limit: Any = None) -> tuple[Any, list[Any]]:
    """Return the end of the next micro-batch, and its values."""
    end = reader.latestOffset(start, limit or ReadAllAvailable())
    return end, values(rows_of(reader, reader.partitions(start, end)))
