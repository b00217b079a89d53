"""Runs Spark's Kafka connector in its own environment: prints schema and rows, and creates or reads a checkpoint."""

import json
import sys
from typing import Any


def shown(row: Any) -> list[Any]:
    """Convert a row to JSON types, with bytes in hexadecimal."""
    return [
        [[pair.key, None if pair.value is None else bytes(pair.value).hex()] for pair in field]
        if isinstance(field, list)
        else bytes(field).hex()
        if isinstance(field, bytearray | bytes)
        else str(field)
        for field in row
    ]


def main() -> None:
    from pyspark.sql import SparkSession

    options, checkpoint = json.loads(sys.argv[1]), sys.argv[2]
    builder = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
    )
    spark = builder.getOrCreate()
    frame = spark.read.format("kafka").options(**options).load()
    rows = [shown(row) for row in frame.orderBy("topic", "partition", "offset").collect()]
    query_error = None
    started = (
        spark.readStream.format("kafka")
        .options(**options, startingOffsets="earliest")
        .load()
        .writeStream.format("noop")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    try:
        started.awaitTermination()
    except Exception as error:  # any error is reported to the test
        query_error = str(error)
    print(json.dumps({"schema": json.loads(frame.schema.json()), "rows": rows, "error": query_error}))
    spark.stop()


if __name__ == "__main__":
    main()
