"""Spark driver of `bench.spark_write`: reads requests as lines of JSON and responds with durations."""

import json
import sys
import time

from bench.spark_session import session


def main() -> None:
    format_name, records, value_bytes, has_headers = (
        sys.argv[1],
        int(sys.argv[2]),
        int(sys.argv[3]),
        sys.argv[4] == "headers",
    )
    spark = session(format_name, memory="4g")
    from pyspark.sql import functions as f

    digits = f.repeat(f.sha2(f.col("id").cast("string"), 256), value_bytes // 64 + 1)
    columns = [
        f.col("id").cast("string").cast("binary").alias("key"),
        f.substring(digits, 1, value_bytes).cast("binary").alias("value"),
    ]
    if has_headers:
        pair = f.struct(f.lit("trace").alias("key"), f.col("id").cast("string").cast("binary").alias("value"))
        columns.append(f.array(pair, pair).alias("headers"))
    # Cached, so that only the write is measured.
    frame = spark.range(0, records, 1, 2).select(*columns).cache()
    frame.count()
    for line in sys.stdin:
        request = json.loads(line)
        started = time.perf_counter()
        frame.write.format(format_name).options(**request["options"]).mode("append").save()
        print(json.dumps({"seconds": time.perf_counter() - started}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
