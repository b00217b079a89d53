"""The data source `ottla`. Spark creates and pickles one per read or write, and gets the reader or writer from it."""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ottla.spark.options import UseCase, is_given, parse_options

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )

NAME = "ottla"


class OttlaDataSource(DataSource):
    """`options` are the query's options by Spark's names. Readers and writers are imported on demand."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        """The schema of Spark's Kafka connector.

        With `keyFormat` or `valueFormat`, decoded columns replace the bytes.
        """
        options = parse_options(self.options, UseCase.ANY_READ)
        schema = record_schema(include_headers=options["includeHeaders"])
        if any(is_given(self.options, name) for name in ("keyFormat", "valueFormat", "keySchema", "valueSchema")):
            from ottla.spark.values import source_schema

            return source_schema(schema, self.options)
        return schema

    def reader(self, schema: StructType) -> "DataSourceReader":
        from ottla.spark.batch_source import BatchReader

        return BatchReader(schema, self.options)

    def streamReader(self, schema: StructType) -> "DataSourceStreamReader":
        from ottla.spark.stream_source import StreamReader

        return StreamReader(schema, self.options)

    def writer(self, schema: StructType, overwrite: bool) -> "DataSourceWriter":
        from ottla.spark.sink import batch_writer

        return batch_writer(schema, self.options, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> "DataSourceStreamWriter":
        from ottla.spark.sink import stream_writer

        return stream_writer(schema, self.options, overwrite)


def record_schema(*, include_headers: bool) -> StructType:
    """Return the columns of records. All are nullable, as in Spark's connector."""
    fields = [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
    if include_headers:
        pair = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
        fields.append(StructField("headers", ArrayType(pair)))
    return StructType(fields)
