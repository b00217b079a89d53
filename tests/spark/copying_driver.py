"""A separate driver process, to be killed: copies a topic to another, and hangs within a task of the sink."""

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import functions as f

import ottla.spark

HOLD_SECONDS_MAX = 120


def hang_once(at: bytes, mark: Path) -> Any:
    """Return a function that passes values on; the first task to reach one value writes a file and hangs."""

    def pass_on(value: bytes) -> bytes:
        import time

        if value == at and not mark.exists():
            mark.touch()
            deadline = time.monotonic() + HOLD_SECONDS_MAX
            while time.monotonic() < deadline:
                time.sleep(0.1)
            raise TimeoutError("this driver was not killed")
        return value

    return pass_on


def copying(spark: Any, options: dict[str, str], topic: str, checkpoint: str, held: Any) -> Any:
    passed = f.udf(held, "binary", useArrow=False)("value").alias("value")
    frame = spark.readStream.format("ottla").options(**options).load().select(passed)
    return (
        frame.writeStream.format("ottla")
        .option("kafka.bootstrap.servers", options["kafka.bootstrap.servers"])
        .option("topic", topic)
        .option("checkpointLocation", checkpoint)
    )


def main() -> None:
    options, topic, checkpoint, at, mark = sys.argv[1:]
    spark = ottla.spark.session(master="local[2]", config={"spark.ui.enabled": "false"})
    copying(
        spark, json.loads(options), topic, checkpoint, hang_once(at.encode(), Path(mark))
    ).start().awaitTermination()


if __name__ == "__main__":
    main()
