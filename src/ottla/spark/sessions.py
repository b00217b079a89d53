"""Spark sessions with everything set up: Java, Python for workers, the data source, and progress listeners."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHECKPOINTS = "spark.sql.streaming.checkpointFileManagerClass"
CHECKPOINTS_LOCAL = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
"""Renames files without spawning a process: on a local file system, a micro-batch of one row takes half the time."""
COMMON_DEFAULTS = {
    # Send rows with nested columns (headers) to the sink in batches limited by row count, not in pieces of a few
    # kilobytes.
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
}


def session(
    app_name: str = "ottla", *, master: str | None = None, config: Mapping[str, str] | None = None
) -> "SparkSession":
    """Return the session of this process, created on first use.

    Queries share it, since the first query of a new session takes seconds. `master` is any Spark master URL,
    `local[*]` by default. `config` has Spark configs that override the defaults set here.
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
    """Return the default configs of a session."""
    if not master.startswith("local"):
        return dict(COMMON_DEFAULTS)
    cores = os.cpu_count() or 1
    return COMMON_DEFAULTS | {
        CHECKPOINTS: CHECKPOINTS_LOCAL,
        "spark.python.unix.domain.socket.enabled": "true",  # between Spark and its Python workers; 10 % faster than TCP
        "spark.sql.shuffle.partitions": str(max(cores, 2)),  # the default of 200 takes seconds per micro-batch
        "spark.ui.showConsoleProgress": "false",
    }


def register(spark: "SparkSession") -> "SparkSession":
    """Register the data source with an existing session, and commit its queries' progress to groups."""
    from ottla.spark.data_source import OttlaDataSource
    from ottla.spark.progress import listen

    spark.dataSource.register(OttlaDataSource)
    listen(spark)
    return spark


def prepare_environment(master: str) -> None:
    """Set the paths of Java and of the workers' Python before the first session, unless they are set."""
    import pyspark
    from pyspark import SparkContext

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        return  # the JVM is running
    from ottla.spark.java import cache_directory, find_java_home
    from ottla.spark.spark_home import home_without_archive

    os.environ["JAVA_HOME"] = str(find_java_home(dict(os.environ)))
    if master.startswith("local") and "local-cluster" not in master and "SPARK_HOME" not in os.environ:
        os.environ["SPARK_HOME"] = str(
            home_without_archive(Path(pyspark.__file__).parent, cache_directory(dict(os.environ)))
        )
