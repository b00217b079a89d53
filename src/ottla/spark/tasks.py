"""The read task of an executor: reads one range of offsets and yields Arrow batches."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import InputPartition

from ottla.client.errors import ClientError
from ottla.spark.client_settings import consumer_settings
from ottla.spark.errors import DataLossError, SourceError, wrap_client_error
from ottla.spark.options import Options
from ottla.spark.ranges import OffsetRange
from ottla.spark.worker_process import freeze_imported_objects

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class RangePartition(InputPartition):
    """A range for one task."""

    def __init__(self, offset_range: OffsetRange) -> None:
        super().__init__(tuple(offset_range))

    @property
    def range(self) -> OffsetRange:
        return OffsetRange(*self.value)


def read_range(offset_range: OffsetRange, schema: "StructType", options: Options, raw: dict[str, str]) -> Iterator[Any]:
    """Yield the records of a range. Missing offsets fail the task, or are skipped with `failOnDataLoss=false`."""
    from pyspark.sql.pandas.types import to_arrow_schema

    from ottla.spark.arrow_batches import ArrowDecoder
    from ottla.spark.data_source import record_schema
    from ottla.spark.prefetch import Prefetcher
    from ottla.spark.range_fetcher import RangeFetcher
    from ottla.wire.errors import MalformedMessage

    settings = consumer_settings(options)
    record = record_schema(include_headers=options["includeHeaders"])
    convert = _value_decoder(schema, record, options, raw)
    decoder = ArrowDecoder(
        to_arrow_schema(record, timezone="UTC"),
        offset_range,
        read_committed=settings.get("isolation.level") == "read_committed",
        check_crcs=settings.get("check.crcs", "true").strip().lower() == "true",
    )
    try:
        with RangeFetcher(
            settings, offset_range, wait_seconds_max=options["kafkaConsumer.pollTimeoutMs"] / 1000
        ) as fetch:
            responses = _responses(fetch, offset_range, options["failOnDataLoss"])
            decoded = (columns for fetched in responses for columns in decoder.columns_of(fetched))
            with Prefetcher(decoded, fetch.interrupt) as ahead:
                for columns in ahead:
                    for batch in decoder.batches_of(columns):
                        yield batch if convert is None else convert(batch)
        freeze_imported_objects()
    except MalformedMessage as error:
        raise SourceError(
            f"{offset_range.topic}-{offset_range.partition} is corrupt between offsets {offset_range.start} and "
            f"{offset_range.end}: {error}. Skip it with startingOffsets and endingOffsets, or elect another replica."
        ) from error
    except ClientError as error:
        raise wrap_client_error(
            error, options.kafka["bootstrap.servers"], f"Reading {offset_range.topic}-{offset_range.partition}"
        ) from error


def _responses(fetch: Any, offset_range: OffsetRange, fail_on_data_loss: bool) -> Iterator[Any]:
    from ottla.spark.range_fetcher import OffsetsOutOfRange, TopicDeleted

    name = f"{offset_range.topic}-{offset_range.partition}"
    while True:
        try:
            yield from fetch.responses()
            return
        except TopicDeleted:
            if fail_on_data_loss:
                raise DataLossError(
                    f"Topic {offset_range.topic!r} no longer exists: it was deleted during the read."
                ) from None
            return
        except OffsetsOutOfRange as error:
            if error.log_start_offset is None:
                if fail_on_data_loss:
                    raise DataLossError(
                        f"Offset {error.offset} of {name} is after its end: the topic was recreated, or its log was "
                        "truncated."
                    ) from None
                return
            if fail_on_data_loss:
                raise DataLossError(
                    f"Offsets {error.offset} to {min(error.log_start_offset, offset_range.end) - 1} of {name} were "
                    "deleted by retention before they were read."
                ) from None
            if error.log_start_offset >= offset_range.end:
                return
            fetch.seek(error.log_start_offset)


def _value_decoder(schema: "StructType", record: "StructType", options: Options, raw: dict[str, str]) -> Any:
    """Return the decoder of keys and values, or None if no format is given."""
    if not options.is_given("keyFormat") and not options.is_given("valueFormat"):
        if schema != record:
            raise SourceError(
                "The columns are fixed, as in Spark's Kafka connector; remove schema(...), and use select for a subset."
            )
        return None
    from ottla.spark.values import batch_decoder

    return batch_decoder(schema, raw)
