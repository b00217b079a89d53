"""Spark driver of `bench.spark_read`: reads requests as lines of JSON and responds with durations."""

import json
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from bench.spark_session import session

SECONDS_MAX = 300


def read_batch(spark: Any, format_name: str, options: dict[str, str]) -> dict[str, Any]:
    started = time.perf_counter()
    spark.read.format(format_name).options(**options).load().write.format("noop").mode("overwrite").save()
    return {"seconds": time.perf_counter() - started}


def read_available(spark: Any, format_name: str, options: dict[str, str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as checkpoint:
        started = time.perf_counter()
        query = (
            spark.readStream.format(format_name)
            .options(**options)
            .load()
            .writeStream.format("noop")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return {"seconds": time.perf_counter() - started}


def count_rows(spark: Any, format_name: str, options: dict[str, str]) -> dict[str, Any]:
    return {"rows": spark.read.format(format_name).options(**options).load().count()}


def wait_for_rows(spark: Any, format_name: str, options: dict[str, str], rows: int) -> dict[str, Any]:
    """Run a streaming query until `rows` micro-batches with one row each, written by another process, are done."""
    with tempfile.TemporaryDirectory() as checkpoint:
        query = (
            spark.readStream.format(format_name)
            .options(**options)
            .load()
            .writeStream.format("noop")
            .option("checkpointLocation", checkpoint)
            .start()
        )
        deadline = time.monotonic() + SECONDS_MAX
        found: list[float] = []
        seen = -1
        while len(found) < rows and time.monotonic() < deadline:
            for progress in query.recentProgress:
                if progress["batchId"] > seen and progress["numInputRows"] == 1:
                    found.append(progress["durationMs"]["triggerExecution"])
                    seen = progress["batchId"]
            time.sleep(0.02)
        query.stop()
    return {"milliseconds": found}


def main() -> None:
    (format_name,) = sys.argv[1:]
    spark = session(format_name, memory="2g")
    jobs: dict[str, Callable[..., dict[str, Any]]] = {
        "batch": read_batch,
        "available": read_available,
        "count": count_rows,
        "rows": wait_for_rows,
    }
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(jobs[request.pop("what")](spark, format_name, **request)), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
