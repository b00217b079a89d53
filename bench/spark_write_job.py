"""One environment's part of `bench.spark_write`: it knows PySpark only, as it runs in the peer's environment too."""

import json
import sys
import time


def main() -> None:
    format_name, records, value_bytes, has_headers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "headers"
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as f

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.driver.memory", "4g")
    spark = builder.config("spark.sql.execution.arrow.maxBytesPerBatch", "2147483647").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    if format_name == "ottla":
        from ottla.spark import register

        register(spark)
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
