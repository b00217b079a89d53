"""A Spark driver that is told by lines of JSON what to read, and responses with how long it took. Both environments do the same, by two
formats."""

import json
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from bench.spark_session import session

SECONDS_MAX = 300


def read_batch(spark: Any, format_name: str, options: dict[str, str]) -> dict[str, Any]:
    began = time.perf_counter()
    spark.read.format(format_name).options(**options).load().write.format("noop").mode("overwrite").save()
    return {"seconds": time.perf_counter() - began}


def read_available(spark: Any, format_name: str, options: dict[str, str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as checkpoint:
        began = time.perf_counter()
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
        return {"seconds": time.perf_counter() - began}


def count_rows(spark: Any, format_name: str, options: dict[str, str]) -> dict[str, Any]:
    return {"rows": spark.read.format(format_name).options(**options).load().count()}


def wait_for_rows(spark: Any, format_name: str, options: dict[str, str], rows: int) -> dict[str, Any]:
    """A query that runs on; another process writes a record when it is told that the one before was read."""
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
    works: dict[str, Callable[..., dict[str, Any]]] = {
        "batch": read_batch,
        "available": read_available,
        "count": count_rows,
        "rows": wait_for_rows,
    }
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(works[asked.pop("what")](spark, format_name, **asked)), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
