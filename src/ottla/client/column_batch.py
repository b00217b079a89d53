"""Records as `consumer.batches()` returns them: the columns of one fetch response, with its partitions."""

from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, Any

from ottla.client.records import ConsumerRecord, TopicPartition
from ottla.wire.columns import BinaryColumn, HeaderColumns, RecordColumns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

_new = tuple.__new__


class ColumnBatch:
    """Rows of one or more partitions, grouped by partition, in offset order within each.

    `offsets`, `timestamps`, `timestamp_types`, `partition` and `leader_epochs` are NumPy arrays with one item per
    record. `keys` and `values` are BinaryColumns: concatenated bytes and the offset of each item; `values[i]` is one
    item. `rows` maps each partition to its rows.
    """

    def __init__(self, names: "Sequence[TopicPartition]", columns: RecordColumns) -> None:
        self.columns = columns
        self.topic_partitions = tuple(names)
        self.bounds: list[int] = columns.partition_bounds() if len(names) != 1 else [0, len(columns)]

    def __len__(self) -> int:
        return len(self.columns)

    def __repr__(self) -> str:
        return f"ColumnBatch({len(self)} records of {', '.join(map(str, self.topic_partitions))})"

    @property
    def offsets(self) -> "NDArray[np.int64]":
        return self.columns.offsets

    @property
    def timestamps(self) -> "NDArray[np.int64]":
        return self.columns.timestamps

    @property
    def timestamp_types(self) -> "NDArray[np.int8]":
        return self.columns.timestamp_types

    @property
    def leader_epochs(self) -> "NDArray[np.int32]":
        return self.columns.leader_epochs

    @property
    def keys(self) -> BinaryColumn:
        return self.columns.keys

    @property
    def values(self) -> BinaryColumn:
        return self.columns.values

    @property
    def headers(self) -> HeaderColumns:
        return self.columns.headers

    @property
    def has_headers(self) -> bool:
        return self.columns.has_headers

    @cached_property
    def partition(self) -> "NDArray[np.int32]":
        """Partition number of each record. With several topics, `topic_index` has the topic of each."""
        import numpy as np

        numbers = np.array([name.partition for name in self.topic_partitions], np.int32)
        return numbers[self.columns.partitions]

    @cached_property
    def topics(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name.topic for name in self.topic_partitions))

    @cached_property
    def topic_index(self) -> "NDArray[np.int32]":
        """Index into `topics` for each record."""
        import numpy as np

        index = {topic: position for position, topic in enumerate(self.topics)}
        return np.array([index[name.topic] for name in self.topic_partitions], np.int32)[self.columns.partitions]

    @property
    def rows(self) -> dict[TopicPartition, slice]:
        """Rows of each partition."""
        return {name: slice(*self.bounds[index : index + 2]) for index, name in enumerate(self.topic_partitions)}

    def to_arrow(self, *, headers: bool = False) -> Any:
        """Return a `pyarrow.RecordBatch` with topic, partition, offset, timestamp, timestamp_type, key, value and
        optionally headers.
        """
        import pyarrow as pa

        columns = self.columns
        found = {
            "topic": pa.DictionaryArray.from_arrays(pa.array(self.topic_index), pa.array(self.topics)),
            "partition": pa.array(self.partition),
            "offset": pa.array(columns.offsets),
            "timestamp": pa.array(columns.timestamps).cast(pa.timestamp("ms")),
            "timestamp_type": pa.array(columns.timestamp_types),
            "key": columns.keys.to_arrow(),
            "value": columns.values.to_arrow(),
        }
        if headers:
            found["headers"] = columns.headers_to_arrow()
        return pa.RecordBatch.from_pydict(found)

    def records(
        self,
        start: int = 0,
        end: int | None = None,
        *,
        key: "Callable[[bytes], Any] | None" = None,
        value: "Callable[[bytes], Any] | None" = None,
    ) -> list[ConsumerRecord]:
        """Return the rows from `start` to `end` as records. `key` and `value` deserialize keys and values."""
        end = len(self) if end is None else min(end, len(self))
        found: list[ConsumerRecord] = []
        for index, name in enumerate(self.topic_partitions):
            first, last = max(self.bounds[index], start), min(self.bounds[index + 1], end)
            if first < last:
                found += self._records_of(name, first, last, key, value)
        return found

    def _records_of(
        self,
        name: TopicPartition,
        first: int,
        last: int,
        key: "Callable[[bytes], Any] | None",
        value: "Callable[[bytes], Any] | None",
    ) -> "Iterator[ConsumerRecord]":
        columns = self.columns
        keys: Any = columns.gather_keys(first, last).tolist() if columns.has_keys else repeat(None, last - first)
        values: Any = columns.gather_values(first, last).tolist()
        if key is not None and columns.has_keys:
            keys = [None if item is None else key(item) for item in keys]
        if value is not None:
            values = [None if item is None else value(item) for item in values]
        headers: Any = self._headers[first:last] if columns.has_headers else repeat((), last - first)
        fields = zip(
            repeat(name.topic),
            repeat(name.partition),
            columns.offsets[first:last].tolist(),
            columns.timestamps[first:last].tolist(),
            columns.timestamp_types[first:last].tolist(),
            keys,
            values,
            headers,
            columns.leader_epochs[first:last].tolist(),
            strict=False,
        )
        # `tuple.__new__` instead of the NamedTuple constructor, which is Python code: 0.2 µs per record instead of 0.6.
        return map(_new, repeat(ConsumerRecord), fields)

    @cached_property
    def _headers(self) -> list[tuple[tuple[str, bytes | None], ...]]:
        return list(self.columns.rows_headers())
