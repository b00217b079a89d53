"""Batch read: ranges are planned once on the driver, and tasks read them."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from ottla.spark.client_settings import consumer_settings, progress_group
from ottla.spark.errors import DataLossError
from ottla.spark.offset_options import ending_offsets, starting_offsets, topics_of
from ottla.spark.offset_reader import OffsetReader
from ottla.spark.options import UseCase, parse_options
from ottla.spark.ranges import OffsetRange, split_ranges
from ottla.spark.tasks import RangePartition, read_range

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class BatchReader(DataSourceReader):
    """Pickled and sent to the tasks, so it holds only its arguments."""

    def __init__(self, schema: "StructType", options: Mapping[str, str]) -> None:
        self._schema = schema
        self._raw = dict(options)
        self._options = parse_options(options, UseCase.READ)
        self._topics = topics_of(self._options)
        self._start = starting_offsets(self._options, is_stream=False)
        self._end = ending_offsets(self._options)
        consumer_settings(self._options)
        progress_group(self._options)

    def partitions(self) -> list[InputPartition]:
        options = self._options
        with OffsetReader(options, self._topics) as offset_reader:
            partitions = offset_reader.partitions()
            start, end = offset_reader.resolve(self._start, partitions), offset_reader.resolve(self._end, partitions)
        for partition in partitions:
            if start[partition] > end[partition] and options["failOnDataLoss"] and self._start.times is None:
                raise DataLossError(
                    f"{partition} would be read from offset {start[partition]} ({self._start.option}) to the earlier "
                    f"offset {end[partition]} ({self._end.option})."
                )
        ranges = [OffsetRange(*partition, start[partition], end[partition]) for partition in partitions]
        return [
            RangePartition(each)
            for each in split_ranges(
                ranges, count_min=options["minPartitions"], records_max=options["maxRecordsPerPartition"]
            )
        ]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if isinstance(partition, RangePartition):  # Spark creates a placeholder if there is nothing to read
            yield from read_range(partition.range, self._schema, self._options, self._raw)
