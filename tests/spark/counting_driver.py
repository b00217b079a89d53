"""A separate driver process, to be killed: a stateful query that saves its counts in each micro-batch."""

import json
import sys
from pathlib import Path
from typing import Any

import ottla.spark


def save_counts(directory: Path) -> Any:
    """Return a function that writes the counts of a micro-batch; a repeated one replaces its file."""

    def write(batch: Any, number: int) -> None:
        counts = {bytes(row.value).decode(): row["count"] for row in batch.collect()}
        fresh = directory / f".{number}"
        fresh.write_text(json.dumps(counts))
        fresh.rename(directory / f"{number}.json")

    return write


def counting(spark: Any, options: dict[str, str], checkpoint: str, directory: Path) -> Any:
    frame = spark.readStream.format("ottla").options(**options).load()
    return (
        frame.groupBy("value")
        .count()
        .writeStream.outputMode("complete")
        .foreachBatch(save_counts(directory))
        .option("checkpointLocation", checkpoint)
    )


def main() -> None:
    options, checkpoint, directory = sys.argv[1:]
    spark = ottla.spark.session(
        master="local[2]", config={"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
    )
    counting(spark, json.loads(options), checkpoint, Path(directory)).start().awaitTermination()


if __name__ == "__main__":
    main()
