"""The sink in queries: what Spark writes is read by other clients."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import functions as f


def read_all(bootstrap: str, topic: str, partitions: int) -> list[Any]:
    """Read every message of a topic with another client, by partition and offset."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reads", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    found, ended = [], 0
    deadline = time.monotonic() + 30
    while ended < partitions and time.monotonic() < deadline:
        message = consumer.poll(1.0)
        if message is None:
            continue
        if message.error():
            ended += 1
        else:
            found.append(message)
    consumer.close()
    assert ended == partitions
    return sorted(found, key=lambda message: (message.partition(), message.offset()))


@pytest.fixture
def write(bootstrap: str) -> Callable[..., None]:
    def save(frame: Any, **options: str) -> None:
        given = {"kafka.bootstrap.servers": bootstrap} | {
            name.replace("__", "."): value for name, value in options.items()
        }
        frame.write.format("ottla").options(**given).mode("append").save()

    return save


def murmur2_partition(key: bytes, count: int) -> int:
    from ottla.client.partitioner import murmur2

    return (murmur2(key) & 0x7FFF_FFFF) % count


def test_all_columns_are_written(spark: Any, bootstrap: str, make_topic: Any, write: Any) -> None:
    """Key, value, partition, headers and timestamp are written unchanged; a null value is a tombstone."""
    topic = make_topic(3)
    schema = (
        "key binary, value binary, topic string, partition int, timestamp timestamp, "
        "headers array<struct<key:string,value:binary>>"
    )
    moment = datetime(2024, 1, 2, 3, 4, 5, 678000, UTC)
    rows = [
        (b"k1", b"v1", topic, 2, moment, [("h", b"x"), ("h", None), ("", b"")]),
        (None, b"", topic, 0, moment, None),
        (b"", None, topic, 1, moment, []),
    ]
    write(spark.createDataFrame(rows, schema).coalesce(1))
    result = [(m.partition(), m.key(), m.value(), m.headers(), m.timestamp()) for m in read_all(bootstrap, topic, 3)]
    at = (1, int(moment.timestamp() * 1000))
    assert result == [
        (0, None, b"", None, at),
        (1, b"", None, None, at),
        (2, b"k1", b"v1", [("h", b"x"), ("h", None), ("", b"")], at),
    ]


def test_rows_are_partitioned_like_java_clients(spark: Any, bootstrap: str, make_topic: Any, write: Any) -> None:
    """By the hash of the key; rows of a key stay in order, and each row is written once.

    Rows without a key are spread.
    """
    topic = make_topic(5)
    frame = spark.range(0, 20_000, 1, 2).select(
        f.when(f.col("id") % 4 > 0, f.concat(f.lit("key-"), f.col("id") % 701)).alias("key"),
        f.col("id").cast("string").alias("value"),
    )
    write(frame, topic=topic)
    messages = read_all(bootstrap, topic, 5)
    assert sorted(int(m.value()) for m in messages) == list(range(20_000))
    assert all(m.partition() == murmur2_partition(m.key(), 5) for m in messages if m.key() is not None)
    last: dict[tuple[bytes, bool], int] = {}
    for message in messages:
        if message.key() is not None:
            number = int(message.value())
            task = (message.key(), number < 10_000)
            assert number > last.get(task, -1)
            last[task] = number


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_codecs(spark: Any, bootstrap: str, make_topic: Any, write: Any, codec: str) -> None:
    topic = make_topic(1)
    write(
        spark.range(3000).select(f.col("id").cast("string").alias("value")), topic=topic, kafka__compression__type=codec
    )
    assert sorted(int(m.value()) for m in read_all(bootstrap, topic, 1)) == list(range(3000))


def test_topic_column_selects_topic(spark: Any, bootstrap: str, make_topic: Any, write: Any) -> None:
    one, two = make_topic(1), make_topic(1)
    topics = f.when(f.col("id") % 2 == 0, one).otherwise(two)
    frame = spark.range(100).select(topics.alias("topic"), f.col("id").cast("string").alias("value"))
    write(frame)
    assert sorted(int(m.value()) for m in read_all(bootstrap, two, 1)) == list(range(1, 100, 2))
    assert sorted(int(m.value()) for m in read_all(bootstrap, one, 1)) == list(range(0, 100, 2))


def test_large_batches_are_split_and_large_records_rejected(
    spark: Any, bootstrap: str, make_topic: Any, write: Any
) -> None:
    """A small max.message.bytes leads to smaller batches; a record that exceeds it fails with topic and partition."""
    topic = make_topic(1, max_message_bytes="20000")
    values = spark.range(50).select(f.lpad(f.col("id").cast("string"), 9_000, "0").alias("value"))
    write(values.coalesce(1), topic=topic)
    assert [int(m.value()[-3:]) for m in read_all(bootstrap, topic, 1)] == list(range(50))
    with pytest.raises(
        Exception, match=f"(?s)partition 0 of topic '{topic}'.*MESSAGE_TOO_LARGE|MESSAGE_TOO_LARGE.*{topic}"
    ):
        write(spark.range(1).select(f.repeat(f.lit("x"), 30_000).alias("value")), topic=topic)


def test_errors_name_topic_and_partition(spark: Any, make_topic: Any, write: Any) -> None:
    topic = make_topic(2)
    frame = spark.range(1).select(f.lit("v").alias("value"), f.lit(7).alias("partition"))
    with pytest.raises(Exception, match=f"partition 7 of topic '{topic}'"):
        write(frame, topic=topic, kafka__max__block__ms="500")
    with pytest.raises(Exception, match="column 'topic' is null"):
        write(spark.range(1).select(f.lit("v").alias("value"), f.lit(None).cast("string").alias("topic")))
    with pytest.raises(Exception, match="must be string or binary"):
        write(spark.range(1).select(f.col("id").alias("value")), topic=topic)


def test_stream_writes_every_batch(
    spark: Any, bootstrap: str, make_topic: Any, checkpoint: str, tmp_path: Path
) -> None:
    """A stream from files, in micro-batches.

    After a restart an uncommitted batch is written again, and nothing is lost.
    """
    topic, source = make_topic(2), tmp_path / "source"
    source.mkdir()

    def run() -> None:
        frame = spark.readStream.schema("value string").option("maxFilesPerTrigger", "1").text(str(source))
        query = (
            frame.select(f.col("value").alias("key"), "value")
            .writeStream.format("ottla")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("topic", topic)
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    for number in range(3):
        (source / f"{number}.txt").write_text("".join(f"{number}-{line}\n" for line in range(50)))
    run()
    (source / "3.txt").write_text("".join(f"3-{line}\n" for line in range(50)))
    run()
    requested = sorted(f"{number}-{line}".encode() for number in range(4) for line in range(50))
    assert sorted(m.value() for m in read_all(bootstrap, topic, 2)) == requested
    last = max(int(path.name) for path in (Path(checkpoint) / "commits").iterdir() if path.name.isdigit())
    for path in (Path(checkpoint) / "commits").glob(f"*{last}*"):
        path.unlink()  # as if the driver had died before the commit
    run()
    again = sorted(m.value() for m in read_all(bootstrap, topic, 2))
    assert sorted(set(again)) == requested
    assert len(again) == len(requested) + 50
