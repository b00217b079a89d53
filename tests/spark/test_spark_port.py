"""A query is moved from `format("kafka")` to `format("ottla")`: same schema and rows, in two environments.

The other environment has PySpark 4.0.0 and Spark's connector from Maven Central. It is used if it exists, or created
with `OTTLA_SPARK_PEER=make`.
"""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from bench.spark_environments import CACHE, CONNECTOR, SparkUnavailable, peer_python
from tests.spark.kafka_format_driver import shown

SECONDS_MAX = 240


@pytest.fixture(scope="module")
def peer():
    is_there = "OTTLA_SPARK_PEER_PYTHON" in os.environ or (CACHE / "bin" / "python").exists()
    if not is_there and os.environ.get("OTTLA_SPARK_PEER") != "make":
        pytest.skip("no environment with Spark's own connector; OTTLA_SPARK_PEER=make makes one")
    try:
        return peer_python()
    except SparkUnavailable as reason:
        pytest.skip(str(reason))


def run_peer(peer, options, checkpoint):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "SPARK"))}
    environment |= {"PYSPARK_PYTHON": peer, "PYSPARK_SUBMIT_ARGS": f"--packages {CONNECTOR} pyspark-shell"}
    command = [peer, str(Path(__file__).with_name("kafka_format_driver.py")), json.dumps(options), checkpoint]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS_MAX, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def run_ours(spark, options, checkpoint, **more):
    """Return the available values."""
    found = []
    frame = spark.readStream.format("ottla").options(**options | {"startingOffsets": "earliest"} | more).load()
    frame.writeStream.foreachBatch(
        lambda batch, number: found.extend(bytes(row.value) for row in batch.collect())
    ).option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination(SECONDS_MAX)
    return found


@pytest.mark.timeout(600)
def test_same_schema_and_rows_and_separate_checkpoints(peer, spark, make_topic, produce, read_options, tmp_path):
    topic = make_topic(2, retention_ms="-1")  # the records are old
    produce(
        topic,
        [b"a", None, b""],
        0,
        key=b"k",
        start_ms=1_700_000_000_123,
        headers=[("h", b"1"), ("h", None), ("i", b"")],
    )
    produce(topic, [b"b"] * 50, 1, start_ms=1_600_000_000_999, codec="zstd")
    produce(topic, [b"c"], 0, start_ms=0)
    options = {
        "kafka.bootstrap.servers": read_options()["kafka.bootstrap.servers"],
        "subscribe": topic,
        "includeHeaders": "true",
    }
    checkpoint = str(tmp_path / "checkpoint")
    connector_offsets = run_peer(peer, options, checkpoint)
    frame = spark.read.format("ottla").options(**options).load()
    assert connector_offsets["error"] is None
    assert json.loads(frame.schema.json()) == connector_offsets["schema"]
    assert [shown(row) for row in frame.orderBy("topic", "partition", "offset").collect()] == connector_offsets["rows"]
    produce(topic, [b"new"], 1)
    with pytest.raises(
        PySparkException, match=r"(?s)written by Spark's own Kafka connector .*set option startingOffsets to"
    ) as raised:
        run_ours(spark, options, checkpoint)
    offsets_json = re.search(r"set option startingOffsets to (\S+)", str(raised.value)).group(1)
    ours = str(tmp_path / "ours")
    assert run_ours(spark, options, ours, startingOffsets=offsets_json) == [b"new"]
    assert "@ottla" in run_peer(peer, options, ours)["error"]
