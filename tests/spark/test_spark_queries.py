"""Queries in a real Spark: rows, schemas, restarts from checkpoints, group progress, and errors as users see them."""

import json
import re
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

import ottla.spark
from tests.spark.readers import marked

KAFKA_SCHEMA = (
    "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int,"
    "headers:array<struct<key:string,value:binary>>>"
)


@pytest.fixture
def frame(spark, read_options):
    return lambda topic, **more: spark.read.format("ottla").options(**read_options(topic, **more)).load()


@pytest.fixture
def stream(spark, read_options):
    return lambda topic, **more: (
        spark.readStream.format("ottla").options(**read_options(topic, startingOffsets="earliest") | more).load()
    )


def collected(spark, query_name):
    return sorted((row.partition, row.offset, bytes(row.value)) for row in spark.table(query_name).collect())


def run_to_end(frame, checkpoint, rows):
    """Run with AvailableNow; append the rows of each micro-batch to `rows`."""

    def take(batch, number):
        rows.extend((number, row.partition, row.offset, bytes(row.value)) for row in batch.collect())

    query = (
        frame.writeStream.foreachBatch(take).option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    )
    query.awaitTermination(120)
    assert query.exception() is None
    return query


def test_batch_read_in_spark(spark, make_topic, produce, frame):
    topic = make_topic(2)
    produce(topic, [b"%d" % index for index in range(1000)], 0, key=b"k", headers=[("h", b"1")], codec="lz4")
    produce(topic, [b"%d" % index for index in range(500)], 1)
    found = frame(topic, includeHeaders="true")
    assert found.schema.simpleString() == KAFKA_SCHEMA
    assert all(field.nullable for field in found.schema)
    counted = (
        found.groupBy("partition")
        .agg(
            F.count("*").alias("rows"),
            F.sum(F.col("value").cast("string").cast("int")).alias("total"),
            F.max(F.size("headers")).alias("headers"),
        )
        .orderBy("partition")
        .collect()
    )
    assert [tuple(row) for row in counted] == [(0, 1000, 499_500, 1), (1, 500, 124_750, None)]
    assert found.where("partition = 0").selectExpr(
        "headers[0].key", "headers[0].value", "cast(key as string)"
    ).distinct().collect() == [("h", bytearray(b"1"), "k")]


def test_format_name_works_without_registering(spark, read_options, make_topic, produce):
    """Spark finds the module `pyspark_ottla` automatically."""
    topic = make_topic()
    produce(topic, [b"x"])
    fresh = spark.newSession()
    assert fresh.read.format("ottla").options(**read_options(topic)).load().count() == 1


def test_empty_topics_and_empty_micro_batches(spark, make_topic, frame, stream, checkpoint):
    topic = make_topic()
    assert frame(topic).count() == 0
    rows = []
    run_to_end(stream(topic), checkpoint, rows)
    assert rows == []


def test_stream_continues_from_checkpoint(make_topic, produce, stream, checkpoint):
    topic = make_topic(2)
    produce(topic, [b"a", b"b", b"c"], 0)
    rows = []
    run_to_end(stream(topic, maxOffsetsPerTrigger="2"), checkpoint, rows)
    assert rows == [(0, 0, 0, b"a"), (0, 0, 1, b"b"), (1, 0, 2, b"c")]
    run_to_end(stream(topic), checkpoint, rows)
    assert len(rows) == 3
    produce(topic, [b"d"], 1)
    query = run_to_end(stream(topic), checkpoint, rows)
    assert rows[3:] == [(2, 1, 0, b"d")]
    end = query.lastProgress["sources"][0]["endOffset"]
    assert (json.loads(end) if isinstance(end, str) else end) == marked({topic: {"0": 3, "1": 1}})


def test_checkpointed_offsets_have_connector_format(make_topic, produce, stream, checkpoint):
    topic = make_topic(2)
    produce(topic, [b"a"], 1)
    run_to_end(stream(topic), checkpoint, [])
    assert json.loads(Path(checkpoint, "offsets", "0").read_text().splitlines()[-1]) == marked(
        {topic: {"0": 0, "1": 1}}
    )


@pytest.mark.parametrize("is_committed", [True, False])
def test_checkpoint_of_spark_connector_is_rejected(make_topic, produce, stream, checkpoint, is_committed):
    """A checkpoint with the connector's offsets; following the message's advice, the query continues."""
    topic = make_topic()
    produce(topic, [b"a", b"b"])
    run_to_end(stream(topic, maxOffsetsPerTrigger="1"), checkpoint, [])
    for log in Path(checkpoint, "offsets").glob("[0-9]*"):
        *head, offsets = log.read_text().splitlines()
        connector_offsets = {name: result for name, result in json.loads(offsets).items() if name == topic}
        log.write_text("\n".join([*head, json.dumps(connector_offsets, separators=(",", ":"))]))
        log.with_name(f".{log.name}.crc").unlink(missing_ok=True)
    if not is_committed:
        for commit in Path(checkpoint, "commits").glob("*1*"):
            commit.unlink()
    produce(topic, [b"c"])
    with pytest.raises(
        PySparkException, match=r"(?s)written by Spark's own Kafka connector .*set option startingOffsets to .*"
    ) as raised:
        run_to_end(stream(topic), checkpoint, [])
    rows: list = []
    offsets_json = re.search(r"set option startingOffsets to (\S+)", str(raised.value)).group(1)
    run_to_end(stream(topic, startingOffsets=offsets_json), f"{checkpoint}-new", rows)
    assert [row[3] for row in rows] == ([b"c"] if is_committed else [b"b", b"c"])


def test_tracked_run_leaves_no_lag(make_topic, produce, admin, stream, checkpoint, topic_names):
    from ottla.client import TopicPartition

    topic, group = make_topic(), topic_names()
    produce(topic, [b"a", b"b", b"c"])
    query = (
        stream(topic, groupId=group, maxOffsetsPerTrigger="2")
        .writeStream.format("noop")
        .option("checkpointLocation", checkpoint)
    )
    tracked = ottla.spark.track(query.trigger(availableNow=True).start())
    assert tracked.awaitTermination(120)
    assert admin.list_group_offsets(group)[TopicPartition(topic, 0)].offset == 3
    assert tracked.lastProgress["numInputRows"] == 1


def test_sources_of_one_query_have_separate_groups(spark, make_topic, produce, admin, stream, checkpoint, topic_names):
    from ottla.client import TopicPartition

    one, two, group, other = make_topic(), make_topic(), topic_names(), topic_names()
    produce(one, [b"a"])
    produce(two, [b"b", b"c"])
    both = stream(one, groupId=group).union(stream(two, groupId=other))
    tracked = ottla.spark.track(
        both.writeStream.format("noop").option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    )
    tracked.awaitTermination(120)
    assert {
        name: {partition: result.offset for partition, result in admin.list_group_offsets(name).items()}
        for name in (group, other)
    } == {group: {TopicPartition(one, 0): 1}, other: {TopicPartition(two, 0): 2}}


def test_windowed_count(spark, make_topic, produce, stream, checkpoint):
    topic = make_topic()
    produce(topic, [b"a", b"b", b"a"] * 10, start_ms=1_700_000_000_000)
    counted = (
        stream(topic)
        .withWatermark("timestamp", "1 second")
        .groupBy(F.window("timestamp", "10 seconds"), "value")
        .count()
        .writeStream.format("memory")
        .queryName("windowed")
        .outputMode("complete")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    counted.awaitTermination(120)
    assert sorted((bytes(row.value), row["count"]) for row in spark.table("windowed").collect()) == [
        (b"a", 20),
        (b"b", 10),
    ]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"startingOffset": "earliest"}, "Did you mean startingOffsets"),
        ({"subscribe": "no-such-topic"}, "Topic 'no-such-topic' in option subscribe does not exist"),
        (
            {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.default.api.timeout.ms": "500"},
            "kafka.bootstrap.servers [(]127.0.0.1:1[)]",
        ),
        ({"minPartitions": "none"}, "minPartitions must be an integer"),
    ],
)
def test_errors_reach_the_user(spark, read_options, more, message):
    with pytest.raises(PySparkException, match=message):
        spark.read.format("ottla").options(**read_options("t") | more).load().count()


def test_streaming_errors_reach_the_user(spark, make_topic, stream, checkpoint):
    query = stream("no-such-topic").writeStream.format("noop").option("checkpointLocation", checkpoint).start()
    with pytest.raises(PySparkException, match="Topic 'no-such-topic' in option subscribe does not exist"):
        query.awaitTermination(60)


def test_user_schema_is_rejected(spark, read_options, make_topic, produce):
    topic = make_topic()
    produce(topic, [b"x"])
    with pytest.raises(PySparkException, match=r"remove schema\(\.\.\.\), and use select"):
        spark.read.format("ottla").schema("a int").options(**read_options(topic)).load().count()
