"""The streaming read: one reader lives on the driver for as long as the query runs, and plans every micro-batch."""

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


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are JSON as Spark's connector writes them, with a mark. What is asked of brokers is asked through one `OffsetReader`, made
    when it is needed: tasks get this reader too, pickled, and never ask."""

    def __init__(self, schema: "StructType", options: Mapping[str, str]) -> None:
        self._schema = schema
        self._raw = dict(options)
        self._options = parse_options(options, UseCase.READ_STREAM)
        self._topics = topics_of(self._options)
        self._start = starting_offsets(self._options, is_stream=True)
        self._group = progress_group(self._options)
        self._offset_reader: OffsetReader | None = None
        self._initial: Offsets | None = None
        """Where this run began, if it asked."""
        self._is_first = False
        self._target: Offsets | None = None
        """With AvailableNow: what was there when the run began."""
        self._last_trigger_s = float("-inf")
        self._known_ids: dict[str, Any] = {}
        consumer_settings(self._options)
        minimum, maximum = self._options["minOffsetsPerTrigger"], self._options["maxOffsetsPerTrigger"]
        if minimum is not None and maximum is not None and minimum > maximum:
            raise OptionError(
                f"Option minOffsetsPerTrigger ({minimum}) is more than maxOffsetsPerTrigger ({maximum}): change one of them."
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
        """Spark asks twice for it, and must get the same answer."""
        if self._initial is None:
            partitions = self._reader.partitions()
            self._known_ids = dict(self._reader.topic_ids)
            self._initial = self._reader.resolve(self._start, partitions)
            self._is_first = True
        return offsets_to_json(self._initial)

    def latestOffset(self, start: OffsetJson, limit: ReadLimit) -> OffsetJson:
        """Where the next micro-batch ends: within the limits of the options, unless Spark asks for all there is."""
        start_offsets = offsets_from_json(start)
        if self._is_first and self._start.is_time_dependent:
            # A place that is of now is another after a restart. As the first micro-batch is empty nothing lies between the two.
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
        """The ends of all partitions; those of a topic that is gone are left out, where that is no failure."""
        if self._target is None:
            partitions = self._reader.existing_partitions()
            self._check_ids()
            latest = self._reader.latest(partitions)
        else:
            latest = {partition: max(end, start_offsets.get(partition, end)) for partition, end in self._target.items()}
        gone = [partition for partition in start_offsets if partition not in latest]
        if gone and self._options["failOnDataLoss"]:
            raise DataLossError(f"{', '.join(map(str, gone))} is gone: the topic was deleted.")
        return latest

    def _check_ids(self) -> None:
        """A topic that was deleted and made again has the same name and another id."""
        ids = self._reader.topic_ids
        for name, known in self._known_ids.items():
            if name in ids and ids[name] != known and self._options["failOnDataLoss"]:
                raise DataLossError(f"Topic {name!r} was deleted and made again while the query ran.")
        self._known_ids |= ids

    def _earliest_of_new(self, partitions: list[TopicPartition]) -> Offsets:
        """Partitions that are new are read from their beginning, which is 0 unless records were deleted meanwhile."""
        found = self._reader.earliest(partitions)
        for partition, offset in found.items():
            if offset and self._options["failOnDataLoss"]:
                raise DataLossError(
                    f"{partition} is new, but begins with offset {offset}: records of it are gone already."
                )
        return found

    def _is_below_minimum(self, base: Offsets, ends: Offsets) -> bool:
        """Whether `minOffsetsPerTrigger` are not there yet, and `maxTriggerDelay` has not passed."""
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
        """For the progress of the query: how far it could read."""
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
        """The end lies before the beginning."""
        if is_initial:
            return end  # a first micro-batch that is run again: it was empty, and the next begins where it ended
        if self._options["failOnDataLoss"]:
            raise DataLossError(
                f"{partition} was read up to offset {first} and now ends with {end}: the topic was deleted and made again."
            )
        return self._reader.earliest([partition])[partition]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, RangePartition)
        return read_range(partition.range, self._schema, self._options, self._raw)

    # Progress

    def commit(self, end: OffsetJson) -> None:
        """Tell the group. The checkpoint is what counts: a refusal is said and the query goes on."""
        if self._group is None:
            return
        try:
            self._reader.commit(self._group, offsets_from_json(end))
        except ClientError as error:
            warnings.warn(
                f"The progress of the query was not committed to group {self._group!r}: {error}", stacklevel=1
            )

    def stop(self) -> None:
        if self._offset_reader is not None:
            self._offset_reader.close()
            self._offset_reader = None
