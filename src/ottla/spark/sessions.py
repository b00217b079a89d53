"""Spark sessions that are ready: a Java is found, workers run this Python, the data source is known and progress is told to groups."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHECKPOINTS = "spark.sql.streaming.checkpointFileManagerClass"
CHECKPOINTS_LOCAL = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
"""It renames files without a process for each of them: on a local file system a micro-batch of one row takes half the time."""
COMMON_DEFAULTS = {
    # Rows with nested columns (headers) reach the sink in batches by their number, not in pieces of a few kilobytes.
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
}


def session(
    app_name: str = "ottla", *, master: str | None = None, config: Mapping[str, str] | None = None
) -> "SparkSession":
    """The session of this process, made if there is none: one is shared by all queries, as the first of a new one takes seconds.

    `master` is any that Spark knows, `local[*]` unless given. `config` are Spark's own, before those that are set here.
    """
    master_url = master or os.environ.get("SPARK_MASTER") or "local[*]"
    prepare_environment(master_url)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(app_name)
    if SparkSession.getActiveSession() is None or master is not None or config:
        builder = builder.master(master_url)
        for name, value in (defaults(master_url) | dict(config or {})).items():
            builder = builder.config(name, value)
    spark = builder.getOrCreate()
    register(spark)
    return spark


def defaults(master: str) -> dict[str, str]:
    """What a session has unless told otherwise."""
    if not master.startswith("local"):
        return dict(COMMON_DEFAULTS)
    cores = os.cpu_count() or 1
    return (
        COMMON_DEFAULTS
        | {
            CHECKPOINTS: CHECKPOINTS_LOCAL,
            "spark.python.unix.domain.socket.enabled": "true",  # between Spark and its Python workers: a tenth faster than TCP
            "spark.sql.shuffle.partitions": str(
                max(cores, 2)
            ),  # 200, as on a cluster, take seconds in each micro-batch
            "spark.ui.showConsoleProgress": "false",
        }
    )


def register(spark: "SparkSession") -> "SparkSession":
    """Let a session that was made elsewhere know the data source, and tell groups of its queries' progress."""
    from ottla.spark.data_source import OttlaDataSource
    from ottla.spark.progress import listen

    spark.dataSource.register(OttlaDataSource)
    listen(spark)
    return spark


def prepare_environment(master: str) -> None:
    """Before the first session of a process: where its Java and its workers' Python are. What is set already stays."""
    import pyspark
    from pyspark import SparkContext

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        return  # its Java runs already
    from ottla.spark.java import cache_directory, find_java_home
    from ottla.spark.spark_home import home_without_archive

    os.environ["JAVA_HOME"] = str(find_java_home(dict(os.environ)))
    if master.startswith("local") and "local-cluster" not in master and "SPARK_HOME" not in os.environ:
        os.environ["SPARK_HOME"] = str(
            home_without_archive(Path(pyspark.__file__).parent, cache_directory(dict(os.environ)))
        )
