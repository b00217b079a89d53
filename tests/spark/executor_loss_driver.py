"""A driver on a cluster that counts values with a stateful query whose tasks kill their executor once."""

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import functions as f

import ottla.spark
from tests.spark.counting_driver import save_counts


def kill_once(at: bytes, mark: str) -> Any:
    """Return a function that passes values on; at one value it kills the executor, once, and writes a file."""

    def pass_on(value: bytes) -> bytes:
        import json
        import os
        import signal
        from pathlib import Path

        if value == at and not Path(mark).exists():
            # this process was forked by a daemon that the executor's JVM started
            java = int(Path(f"/proc/{os.getppid()}/stat").read_text().rsplit(")", 1)[1].split()[1])
            command = Path(f"/proc/{java}/cmdline").read_text().split("\0")
            Path(mark).write_text(json.dumps({"pid": java, "command": command}))
            if any("CoarseGrainedExecutorBackend" in word for word in command):
                os.kill(java, signal.SIGKILL)
        return value

    return pass_on


def main() -> None:
    master, options, checkpoint, directory, at, mark = sys.argv[1:]
    spark = ottla.spark.session(
        master=master,
        config={
            "spark.ui.enabled": "false",
            "spark.executor.cores": "1",
            "spark.executor.memory": "512m",
            "spark.cores.max": "2",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.shuffle.partitions": "2",
        },
    )
    passed = f.udf(kill_once(at.encode(), mark), "binary", useArrow=False)("value").alias("value")
    counted = (
        spark.readStream.format("ottla").options(**json.loads(options)).load().select(passed).groupBy("value").count()
    )
    counted.writeStream.outputMode("complete").foreachBatch(save_counts(Path(directory))).option(
        "checkpointLocation", checkpoint
    ).trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
