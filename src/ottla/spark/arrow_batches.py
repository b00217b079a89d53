"""Fetch responses as Arrow record batches with Spark's columns, built from arrays without per-record Python code."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ottla.client.fetcher import CompletedFetch
from ottla.spark.ranges import OffsetRange
from ottla.wire.column_decoding import FetchedBatches, FetchedPartition

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ottla.wire.columns import RecordColumns

DECODED_BYTES_MAX = 16 << 20
"""Limit of bytes decoded at a time. Compressed responses may be much larger and are decoded in pieces."""
INITIAL_GROWTH = 64.0
"""Assumed expansion of compressed batches before the first one is decoded."""
ROWS_MAX = 65_536
BATCH_BYTES_MAX = 2 << 20
"""Limit of one batch sent to Spark, which keeps two of them off-heap."""


class ArrowDecoder:
    """Builds batches of one partition's records. `schema` is exactly what Spark expects."""

    def __init__(self, schema: Any, offset_range: OffsetRange, *, read_committed: bool, check_crcs: bool) -> None:
        self._schema = schema
        self._range = offset_range
        self._read_committed = read_committed
        self._check_crcs = check_crcs
        self._repeated: dict[str, Any] = {}
        self._growth = INITIAL_GROWTH
        """Expansion of compressed records, measured on recent pieces."""

    def columns_of(self, fetched: CompletedFetch) -> "Iterator[RecordColumns]":
        """Decompress and parse the records of one response. Raises MalformedMessage if a batch is corrupt."""
        fetched_from = FetchedPartition(fetched.records, max(fetched.fetch_offset, self._range.start), fetched.aborted)
        batches = FetchedBatches([fetched_from], read_committed=self._read_committed, check_crcs=self._check_crcs)
        first = 0
        while first < len(batches):
            end = batches.piece_end(first, DECODED_BYTES_MAX, self._growth)
            columns = batches.decode(first, end)
            compressed_bytes = batches.compressed_bytes(first, end)
            if compressed_bytes:
                self._growth = max(len(columns.data) / compressed_bytes, self._growth / 2, 1.0)
            first = end
            yield columns

    def batches_of(self, columns: "RecordColumns") -> Iterator[Any]:
        """Yield Arrow batches of the records in the range."""
        rows = len(columns)
        if rows and columns.offsets[-1] >= self._range.end:
            rows = int(columns.offsets.searchsorted(self._range.end))
        if not rows:
            return
        batch = self._batch(columns)
        step = max(min(ROWS_MAX, int(rows * BATCH_BYTES_MAX / max(batch.nbytes, 1))), 1)
        for first in range(0, rows, step):
            yield batch.slice(first, min(step, rows - first))

    def _batch(self, columns: "RecordColumns") -> Any:
        import numpy as np
        import pyarrow as pa

        rows, schema = len(columns), self._schema
        arrays = [
            columns.keys.to_arrow() if columns.has_keys else pa.nulls(rows, pa.binary()),
            columns.values.to_arrow(),
            self._repeat("topic", self._range.topic, rows),
            self._repeat("partition", self._range.partition, rows),
            _numbers(schema.field("offset").type, columns.offsets),
            _numbers(schema.field("timestamp").type, columns.timestamps * 1000),
            _numbers(schema.field("timestampType").type, columns.timestamp_types.astype(np.int32)),
        ]
        if "headers" in schema.names:
            arrays.append(_headers(schema.field("headers").type, columns))
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _repeat(self, name: str, value: Any, rows: int) -> Any:
        """Return a column with one repeated value, cached at the largest length requested so far."""
        import pyarrow as pa

        column = self._repeated.get(name)
        if column is None or len(column) < rows:
            column = self._repeated[name] = pa.repeat(pa.scalar(value, self._schema.field(name).type), rows)
        return column[:rows]


def _numbers(arrow_type: Any, numbers: "NDArray[np.integer[Any]]") -> Any:
    import pyarrow as pa

    return pa.Array.from_buffers(arrow_type, len(numbers), [None, pa.py_buffer(numbers)], 0)


def _headers(arrow_type: Any, columns: "RecordColumns") -> Any:
    """Headers column, null for records without headers, as in Spark's connector."""
    import numpy as np
    import pyarrow as pa

    if not columns.has_headers:
        return pa.nulls(len(columns), arrow_type)
    found = columns.headers
    pairs = pa.StructArray.from_arrays(
        [found.keys.to_arrow("string"), found.values.to_arrow()], fields=list(arrow_type.value_type)
    )
    has_some = columns.header_counts > 0
    validity = pa.py_buffer(np.packbits(has_some, bitorder="little"))
    offsets = pa.py_buffer(found.offsets.astype(np.int32))
    return pa.Array.from_buffers(
        arrow_type, len(columns), [validity, offsets], len(columns) - int(has_some.sum()), children=[pairs]
    )
