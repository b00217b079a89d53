"""The Spark session of the benchmarks. In the peer's environment, it needs only PySpark."""

from typing import Any

STREAMING = "org.apache.spark.sql.execution.streaming"
PEER_CONFIG = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
    "spark.sql.streaming.checkpointFileManagerClass": f"{STREAMING}.FileSystemBasedCheckpointFileManager",
}
"""Configs of Ottla's session that affect the measurement."""


def session(format_name: str, *, memory: str) -> Any:
    config = {"spark.ui.enabled": "false", "spark.driver.memory": memory}
    if format_name == "ottla":
        import ottla.spark

        spark = ottla.spark.session("bench", master="local[2]", config=config)
    else:
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local[2]").appName("bench")
        for name, value in (PEER_CONFIG | config).items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
