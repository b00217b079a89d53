"""One environment's part of `bench.spark_write`: it knows PySpark only, as it runs in the peer's environment too; that with `ottla` has
Ottla's own session."""

import json
import sys
import time
from typing import Any


def session(format_name: str) -> Any:
    config = {"spark.ui.enabled": "false", "spark.driver.memory": "4g"}
    if format_name == "ottla":
        import ottla.spark

        spark = ottla.spark.session("bench", master="local[2]", config=config)
    else:
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local[2]").config("spark.sql.execution.arrow.maxBytesPerBatch", "2147483647")
        for name, value in config.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def main() -> None:
    format_name, records, value_bytes, has_headers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "headers"
    spark = session(format_name)
    from pyspark.sql import functions as f

    digits = f.repeat(f.sha2(f.col("id").cast("string"), 256), value_bytes // 64 + 1)
    columns = [f.col("id").cast("string").cast("binary").alias("key"), f.substring(digits, 1, value_bytes).cast("binary").alias("value")]
    if has_headers:
        pair = f.struct(f.lit("trace").alias("key"), f.col("id").cast("string").cast("binary").alias("value"))
        columns.append(f.array(pair, pair).alias("headers"))
    # Made before and kept in memory: what is measured is the write.
    frame = spark.range(0, records, 1, 2).select(*columns).cache()
    frame.count()
    for line in sys.stdin:
        asked = json.loads(line)
        began = time.perf_counter()
        frame.write.format(format_name).options(**asked["options"]).mode("append").save()
        print(json.dumps({"seconds": time.perf_counter() - began}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
