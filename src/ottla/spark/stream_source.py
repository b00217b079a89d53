"""Streaming read: one reader runs on the driver as long as the query, and plans every micro-batch."""

import os
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from ottla.client.errors import ClientError
from ottla.client.records import TopicPartition
from ottla.spark.client_settings import consumer_settings, progress_group
from ottla.spark.errors import DataLossError
from ottla.spark.offset_options import Offsets, offsets_from_json, offsets_to_json, starting_offsets, topics_of
from ottla.spark.offset_reader import OffsetReader
from ottla.spark.options import OptionError, UseCase, parse_options
from ottla.spark.ranges import OffsetRange, limit_offsets, split_ranges
from ottla.spark.tasks import RangePartition, read_range

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

OffsetJson = dict[str, Any]
CONNECTION_CLOSED = (EOFError, BrokenPipeError, ConnectionResetError)
"""Errors of a closed connection between Spark and this process."""


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches. Offsets are JSON like those of Spark's connector, with a marker.

    All requests go through one `OffsetReader`, created on demand. Tasks get a pickled copy of this reader and send no
    requests.
    """

    def __init__(self, schema: "StructType", options: Mapping[str, str]) -> None:
        self._schema = schema
        self._raw = dict(options)
        self._options = parse_options(options, UseCase.READ_STREAM)
        self._topics = topics_of(self._options)
        self._start = starting_offsets(self._options, is_stream=True)
        self._group = progress_group(self._options)
        self._offset_reader: OffsetReader | None = None
        self._initial: Offsets | None = None
        """Start of this run, if it was resolved."""
        self._is_first = False
        self._target: Offsets | None = None
        """With trigger AvailableNow: the end offsets at the start of the run."""
        self._last_trigger_s = float("-inf")
        self._known_ids: dict[str, Any] = {}
        consumer_settings(self._options)
        minimum, maximum = self._options["minOffsetsPerTrigger"], self._options["maxOffsetsPerTrigger"]
        if minimum is not None and maximum is not None and minimum > maximum:
            raise OptionError(
                f"Option minOffsetsPerTrigger ({minimum}) is more than maxOffsetsPerTrigger ({maximum}): change one "
                "of them."
            )

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_offset_reader": None}

    @property
    def _reader(self) -> OffsetReader:
        if self._offset_reader is None:
            self._offset_reader = OffsetReader(self._options, self._topics)
        return self._offset_reader

    # Offsets

    def initialOffset(self) -> OffsetJson:
        """Return the start. Spark calls this twice and needs the same result."""
        if self._initial is None:
            partitions = self._reader.partitions()
            self._known_ids = dict(self._reader.topic_ids)
            self._initial = self._reader.resolve(self._start, partitions)
            self._is_first = True
        return offsets_to_json(self._initial)

    def latestOffset(self, start: OffsetJson, limit: ReadLimit) -> OffsetJson:
        """Return the end of the next micro-batch, within the limits of the options unless Spark requests everything."""
        start_offsets = offsets_from_json(start)
        if self._is_first and self._start.is_time_dependent:
            # A time-dependent start would resolve differently after a restart. An empty first micro-batch stores it in
            # the checkpoint.
            self._is_first = False
            return start
        latest = self._latest(start_offsets)
        new_partitions = [partition for partition in latest if partition not in start_offsets]
        base = start_offsets | self._earliest_of_new(new_partitions)
        ends = {
            partition: end if partition in start_offsets else max(end, base[partition])
            for partition, end in latest.items()
        }
        if not isinstance(limit, ReadAllAvailable):
            if self._target is None and self._is_below_minimum(base, ends):
                return start
            if self._options["maxOffsetsPerTrigger"] is not None:
                ends = limit_offsets(base, ends, self._options["maxOffsetsPerTrigger"])
        return offsets_to_json(ends)

    def _latest(self, start_offsets: Offsets) -> Offsets:
        """Return the end of every partition. Deleted topics are omitted, if that is not an error."""
        if self._target is None:
            partitions = self._reader.existing_partitions()
            self._check_ids()
            latest = self._reader.latest(partitions)
        else:
            latest = {partition: max(end, start_offsets.get(partition, end)) for partition, end in self._target.items()}
        missing = [partition for partition in start_offsets if partition not in latest]
        if missing and self._options["failOnDataLoss"]:
            raise DataLossError(f"{', '.join(map(str, missing))} no longer exists: the topic was deleted.")
        return latest

    def _check_ids(self) -> None:
        """Check topic ids: a recreated topic has the same name and another id."""
        ids = self._reader.topic_ids
        for name, known in self._known_ids.items():
            if name in ids and ids[name] != known and self._options["failOnDataLoss"]:
                raise DataLossError(f"Topic {name!r} was deleted and recreated while the query ran.")
        self._known_ids |= ids

    def _earliest_of_new(self, partitions: list[TopicPartition]) -> Offsets:
        """Return the first offsets of new partitions: 0, unless records were deleted already."""
        found = self._reader.earliest(partitions)
        for partition, offset in found.items():
            if offset and self._options["failOnDataLoss"]:
                raise DataLossError(
                    f"{partition} is new, but starts at offset {offset}: its first records were deleted."
                )
        return found

    def _is_below_minimum(self, base: Offsets, ends: Offsets) -> bool:
        """Whether fewer than `minOffsetsPerTrigger` are available and `maxTriggerDelay` has not passed."""
        minimum = self._options["minOffsetsPerTrigger"]
        if minimum is None:
            return False
        now_s = time.monotonic()
        new_partitions = sum(max(end - base[partition], 0) for partition, end in ends.items())
        if new_partitions < minimum and now_s - self._last_trigger_s < self._options["maxTriggerDelay"] / 1000:
            return True
        self._last_trigger_s = now_s
        return False

    def getDefaultReadLimit(self) -> ReadLimit:
        if self._options["maxOffsetsPerTrigger"] is not None:
            return ReadMaxRows(self._options["maxOffsetsPerTrigger"])
        if self._options["minOffsetsPerTrigger"] is not None:
            return ReadMinRows(self._options["minOffsetsPerTrigger"])
        return ReadAllAvailable()

    def reportLatestOffset(self) -> OffsetJson | None:
        """Return the available end offsets, for the query's progress."""
        if self._offset_reader is None:
            return None
        return offsets_to_json(self._reader.latest(self._reader.existing_partitions()))

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._reader.latest(self._reader.partitions())
        self._known_ids = dict(self._reader.topic_ids)

    # Tasks

    def partitions(self, start: OffsetJson, end: OffsetJson) -> list[InputPartition]:
        start_offsets, ends = offsets_from_json(start), offsets_from_json(end)
        new_partitions = self._earliest_of_new([partition for partition in ends if partition not in start_offsets])
        ranges = []
        for partition in sorted(ends):
            first = start_offsets.get(partition, new_partitions.get(partition, 0))
            if first > ends[partition]:
                first = self._start_of_truncated(
                    partition, first, ends[partition], is_initial=start_offsets == self._initial
                )
            ranges.append(OffsetRange(*partition, first, ends[partition]))
        return [
            RangePartition(each)
            for each in split_ranges(
                ranges, count_min=self._options["minPartitions"], records_max=self._options["maxRecordsPerPartition"]
            )
        ]

    def _start_of_truncated(self, partition: TopicPartition, first: int, end: int, *, is_initial: bool) -> int:
        """The end is before the start."""
        if is_initial:
            return end  # a repeated first micro-batch: it was empty, and the next starts at its end
        if self._options["failOnDataLoss"]:
            raise DataLossError(
                f"{partition} was read up to offset {first} and now ends at {end}: the topic was deleted and recreated."
            )
        return self._reader.earliest([partition])[partition]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, RangePartition)
        return read_range(partition.range, self._schema, self._options, self._raw)

    # Progress

    def commit(self, end: OffsetJson) -> None:
        """Commit progress to the group. A failure is only a warning, since restarts use the checkpoint."""
        if self._group is None:
            return
        try:
            self._reader.commit(self._group, offsets_from_json(end))
        except ClientError as error:
            warnings.warn(f"Query progress was not committed to group {self._group!r}: {error}", stacklevel=1)

    def stop(self) -> None:
        if self._offset_reader is not None:
            self._offset_reader.close()
            self._offset_reader = None
        if isinstance(sys.exc_info()[1], CONNECTION_CLOSED):
            # Spark has closed its connection to this process. PySpark would report that over this connection, fail, and
            # print a stack trace for every source of a query that ends.
            sys.stderr.flush()
            os._exit(0)
