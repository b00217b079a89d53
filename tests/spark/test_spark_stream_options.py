"""Every option of a streaming read, and the sequence of micro-batches."""

import json
import pickle

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from ottla.spark.errors import DataLossError, SourceError
from ottla.spark.options import OptionError
from tests.spark.readers import marked, micro_batch, ranges_of, rows_of, stream_reader, values


@pytest.fixture
def reader_of(read_options):
    """Create readers that are stopped after the test, as Spark does."""
    created = []

    def make(topic=None, **more):
        created.append(stream_reader(read_options(topic, **more)))
        return created[-1]

    yield make
    for reader in created:
        reader.stop()


def test_offsets_have_connector_json_format(make_topic, produce, reader_of):
    """Sorted by topic, then by partition as text, after a marker of the source."""
    topic = make_topic(11)
    produce(topic, [b"x"], 10)
    start = reader_of(topic, startingOffsets="earliest").initialOffset()
    zeros = ",".join(f'"{index}":0' for index in range(11))
    assert json.dumps(start, separators=(",", ":")) == f'{{"@ottla":1,"{topic}":{{{zeros}}}}}'


def test_start_at_earliest(make_topic, produce, reader_of):
    topic = make_topic()
    produce(topic, [b"a", b"b"])
    reader = reader_of(topic, startingOffsets="earliest")
    end, found = micro_batch(reader, reader.initialOffset())
    assert (end, found) == (marked({topic: {"0": 2}}), [b"a", b"b"])
    assert micro_batch(reader, end) == (end, [])
    produce(topic, [b"c"])
    assert micro_batch(reader, end) == (marked({topic: {"0": 3}}), [b"c"])


def test_starts_at_latest_by_default(make_topic, produce, reader_of):
    topic = make_topic()
    produce(topic, [b"a"])
    reader = reader_of(topic)
    start = reader.initialOffset()
    produce(topic, [b"b"])
    assert micro_batch(reader, start) == (start, [])  # the first micro-batch of a time-dependent start is empty
    assert micro_batch(reader, start) == (marked({topic: {"0": 2}}), [b"b"])


def test_repeated_first_micro_batch_loses_nothing(make_topic, produce, reader_of):
    """A restart before its commit resolves the start again, to other offsets."""
    topic = make_topic()
    first = reader_of(topic)
    start = first.initialOffset()
    end = first.latestOffset(start, ReadAllAvailable())
    produce(topic, [b"a", b"b"])
    second = reader_of(topic)
    later = second.initialOffset()
    assert later == marked({topic: {"0": 2}})
    assert second.partitions(later, end) == []
    assert micro_batch(second, end)[1] == []
    assert micro_batch(second, end) == (later, [b"a", b"b"])


@pytest.mark.parametrize(
    ("given", "start"),
    [
        ({"startingOffsets": {"0": 1, "1": -1}}, {"0": 1, "1": 3}),
        ({"startingOffsets": {"0": -2, "1": 2}}, {"0": 0, "1": 2}),
        ({"startingTimestamp": "1000000000001"}, {"0": 1, "1": 1}),
        (
            {"startingOffsetsByTimestamp": {"0": 0, "1": 1_000_000_000_002}, "startingOffsets": "latest"},
            {"0": 0, "1": 2},
        ),
        ({"startingTimestamp": str(2 * 10**12), "startingOffsetsByTimestampStrategy": "latest"}, {"0": 3, "1": 3}),
    ],
)
def test_start_of_stream(make_topic, produce, reader_of, given, start):
    topic = make_topic(2)
    for partition in range(2):
        produce(topic, [b"x"] * 3, partition, start_ms=1_000_000_000_000)
    more = {name: json.dumps({topic: value}) if isinstance(value, dict) else value for name, value in given.items()}
    assert reader_of(topic, **more).initialOffset() == marked({topic: start})


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"endingOffsets": "latest"}, "Option endingOffsets does not apply to a streaming read"),
        ({"endingTimestamp": "1"}, "Option endingTimestamp does not apply to a streaming read"),
        ({"endingOffsetsByTimestamp": "{}"}, "Option endingOffsetsByTimestamp does not apply to a streaming read"),
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger must be at least 1"),
        (
            {"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"},
            "minOffsetsPerTrigger [(]9[)] is more than maxOffsetsPerTrigger [(]8[)]",
        ),
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay must be a duration such as 15m"),
        ({"groupId": "a", "kafka.group.id": "b"}, "groupId and kafka.group.id conflict"),
        (
            {"isolationLevel": "read_committed", "kafka.isolation.level": "read_uncommitted"},
            "isolationLevel and kafka.isolation.level conflict",
        ),
    ],
)
def test_invalid_option_is_named(reader_of, more, message):
    with pytest.raises(OptionError, match=message):
        reader_of("t", **{name.replace(".", "__"): value for name, value in more.items()})


def test_max_offsets_are_shared_by_backlog(make_topic, produce, reader_of):
    topic = make_topic(3)
    produce(topic, [b"x"] * 90, 0)
    produce(topic, [b"x"] * 10, 1)
    reader = reader_of(topic, startingOffsets="earliest", maxOffsetsPerTrigger=10)
    assert reader.getDefaultReadLimit() == ReadMaxRows(10)
    start = reader.initialOffset()
    assert reader.latestOffset(start, ReadMaxRows(10)) == marked({topic: {"0": 9, "1": 1, "2": 0}})
    assert reader.latestOffset(start, ReadAllAvailable()) == marked({topic: {"0": 90, "1": 10, "2": 0}})  # Trigger.Once
    ends, count = start, 0
    while (end := reader.latestOffset(ends, ReadMaxRows(10))) != ends:
        count += sum(end[topic].values()) - sum(ends[topic].values())
        ends = end
    assert (ends, count) == (marked({topic: {"0": 90, "1": 10, "2": 0}}), 100)


def test_min_offsets_wait_until_delay_expires(make_topic, produce, reader_of, monkeypatch):
    topic = make_topic()
    now = [100.0]
    monkeypatch.setattr("ottla.spark.stream_source.time.monotonic", lambda: now[0])
    reader = reader_of(topic, startingOffsets="earliest", minOffsetsPerTrigger=5, maxTriggerDelay="2m")
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMinRows(5)
    start = reader.initialOffset()
    produce(topic, [b"x"])
    first = reader.latestOffset(start, limit)
    assert first == marked({topic: {"0": 1}})  # the first trigger does not wait
    produce(topic, [b"x"] * 4)
    now[0] += 119
    assert reader.latestOffset(first, limit) == first
    now[0] += 1
    second = reader.latestOffset(first, limit)
    assert second == marked({topic: {"0": 5}})
    produce(topic, [b"x"] * 5)
    assert reader.latestOffset(second, limit) == marked({topic: {"0": 10}})


def test_available_now_ends_at_initial_end_offsets(make_topic, produce, reader_of):
    topic = make_topic()
    produce(topic, [b"a", b"b", b"c"])
    reader = reader_of(topic, startingOffsets="earliest", maxOffsetsPerTrigger=2, minOffsetsPerTrigger=2)
    reader.prepareForTriggerAvailableNow()
    produce(topic, [b"d"])
    end, found = micro_batch(reader, reader.initialOffset(), ReadMaxRows(2))
    assert found == [b"a", b"b"]
    end, found = micro_batch(reader, end, ReadMaxRows(2))
    assert found == [b"c"]
    assert micro_batch(reader, end, ReadMaxRows(2)) == (end, [])


def test_new_partitions_are_read_from_start(make_topic, produce, admin, reader_of):
    topic = make_topic()
    reader = reader_of(topic, startingOffsets="latest", maxOffsetsPerTrigger=100)
    start = reader.initialOffset()
    reader.latestOffset(start, ReadMaxRows(100))
    admin.create_partitions({topic: 2})
    produce(topic, [b"a"], 0)
    produce(topic, [b"b", b"c"], 1)
    assert micro_batch(reader, start, ReadMaxRows(100)) == (marked({topic: {"0": 1, "1": 2}}), [b"a", b"b", b"c"])


def test_new_topics_of_a_pattern_are_found(make_topic, produce, reader_of, topic_names):
    stem = topic_names()
    one = make_topic(name=f"{stem}.1")
    reader = reader_of(subscribePattern=rf"{stem}\..*", startingOffsets="earliest")
    start = reader.initialOffset()
    two = make_topic(name=f"{stem}.2")
    produce(two, [b"a"])
    assert micro_batch(reader, start) == (marked({one: {"0": 0}, two: {"0": 1}}), [b"a"])


def test_deleted_topic_is_reported(make_topic, produce, admin, reader_of):
    topic, other = make_topic(), make_topic()
    produce(topic, [b"a"])
    careful = reader_of(f"{topic},{other}", startingOffsets="earliest")
    careless = reader_of(f"{topic},{other}", startingOffsets="earliest", failOnDataLoss="false")
    start = careful.initialOffset()
    assert careless.initialOffset() == start
    admin.delete_topics([topic])
    produce(other, [b"b"])
    with pytest.raises(DataLossError, match=f"{topic}-0 no longer exists: the topic was deleted.*failOnDataLoss"):
        careful.latestOffset(start, ReadAllAvailable())
    assert micro_batch(careless, start) == (marked({other: {"0": 1}}), [b"b"])
    with pytest.raises(SourceError, match=f"Topic '{topic}' in option subscribe does not exist"):
        reader_of(topic).initialOffset()


def test_recreated_topic_is_reported(make_topic, produce, admin, reader_of):
    topic = make_topic()
    produce(topic, [b"a", b"b", b"c"])
    running = reader_of(topic, startingOffsets="earliest")
    end, _ = micro_batch(running, running.initialOffset())
    admin.delete_topics([topic])
    make_topic(name=topic)
    produce(topic, [b"d"])
    with pytest.raises(DataLossError, match=f"Topic '{topic}' was deleted and recreated while the query ran"):
        running.latestOffset(end, ReadAllAvailable())
    restarted = reader_of(topic)
    with pytest.raises(
        DataLossError,
        match=f"{topic}-0 was read up to offset 3 and now ends at 1: the topic was deleted and recreated",
    ):
        restarted.partitions(end, restarted.latestOffset(end, ReadAllAvailable()))
    careless = reader_of(topic, failOnDataLoss="false")
    assert micro_batch(careless, end) == (marked({topic: {"0": 1}}), [b"d"])


def test_deleted_offsets_are_reported_by_task(make_topic, produce, admin, reader_of):
    topic = make_topic()
    produce(topic, [b"a", b"b", b"c"])
    reader = reader_of(topic, startingOffsets="earliest")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    planned = reader.partitions(start, end)
    admin.delete_records({(topic, 0): 2})
    with pytest.raises(DataLossError, match=f"Offsets 0 to 1 of {topic}-0 were deleted by retention"):
        rows_of(reader, planned)
    careless = reader_of(topic, failOnDataLoss="false")
    assert values(rows_of(careless, planned)) == [b"c"]


def test_min_partitions_and_max_records_split(make_topic, produce, reader_of):
    topic = make_topic()
    produce(topic, [b"x"] * 10)
    start, end = marked({topic: {"0": 0}}), marked({topic: {"0": 10}})
    assert ranges_of(reader_of(topic, minPartitions=3).partitions(start, end)) == [
        (topic, 0, 0, 3),
        (topic, 0, 3, 6),
        (topic, 0, 6, 10),
    ]
    assert ranges_of(reader_of(topic, maxRecordsPerPartition=5).partitions(start, end)) == [
        (topic, 0, 0, 5),
        (topic, 0, 5, 10),
    ]


def test_progress_is_committed_to_the_group(make_topic, produce, admin, reader_of, topic_names):
    from ottla.client import TopicPartition

    topic = make_topic(2)
    for name in ("groupId", "kafka__group__id"):
        group = topic_names()
        reader_of(topic, **{name: group}).commit(marked({topic: {"0": 3, "1": 5}}))
        found = {partition: result.offset for partition, result in admin.list_group_offsets(group).items()}
        assert found == {TopicPartition(topic, 0): 3, TopicPartition(topic, 1): 5}


def test_rejected_commit_does_not_end_query(make_topic, bootstrap, produce, reader_of, topic_names):
    """The group has members of its own, and only they may commit."""
    from ottla.client import Consumer

    topic, group = make_topic(), topic_names()
    with Consumer(bootstrap_servers=bootstrap, group_id=group) as consumer:
        consumer.subscribe([topic])
        while not consumer.assignment:
            consumer.poll(0.1)
        with pytest.warns(UserWarning, match=f"was not committed to group '{group}'"):
            reader_of(topic, groupId=group).commit(marked({topic: {"0": 0}}))


def test_checkpoint_of_another_source_is_rejected(make_topic, reader_of):
    reader = reader_of(make_topic())
    with pytest.raises(OptionError, match=r"The checkpoint has no topic offsets but .*separate checkpointLocation"):
        reader.latestOffset({"offset": 5}, ReadAllAvailable())


def test_checkpoint_of_spark_connector_is_rejected(make_topic, reader_of):
    """Regardless of where a restart finds it: at the end of a repeated micro-batch or at the start of the next."""
    topic = make_topic()
    connector_offsets = {topic: {"0": 23}}
    reader = reader_of(topic)
    message = (
        r"written by Spark's own Kafka connector .*new checkpointLocation.*set option startingOffsets to "
        rf'{{"{topic}":{{"0":23}}}}$'
    )
    for calls in (
        lambda: reader.latestOffset(connector_offsets, ReadAllAvailable()),
        lambda: reader.partitions(reader.initialOffset(), connector_offsets),
    ):
        with pytest.raises(OptionError, match=message):
            calls()
    with pytest.raises(
        OptionError, match=r"another version of Ottla [(]its offsets are of format 2, this version supports 1[)]"
    ):
        reader.latestOffset(connector_offsets | {"@ottla": 2}, ReadAllAvailable())


def test_stream_can_start_at_checkpointed_offsets(make_topic, produce, reader_of):
    topic = make_topic()
    produce(topic, [b"a", b"b"])
    begun = marked({topic: {"0": 1}})
    assert reader_of(topic, startingOffsets=json.dumps(begun)).initialOffset() == begun


def test_latest_offset_is_reported(make_topic, produce, reader_of):
    topic = make_topic()
    reader = reader_of(topic)
    assert reader.reportLatestOffset() is None
    reader.initialOffset()
    produce(topic, [b"a"])
    assert reader.reportLatestOffset() == marked({topic: {"0": 1}})
    assert pickle.loads(pickle.dumps(reader)).reportLatestOffset() is None


def test_process_ends_quietly_when_spark_closes_its_connection(make_topic, reader_of, monkeypatch):
    """PySpark stops the reader while the error is handled, and would then print a stack trace."""
    codes = []
    monkeypatch.setattr("os._exit", codes.append)
    reader = reader_of(make_topic())
    try:
        raise EOFError
    except EOFError:
        reader.stop()
    assert codes == [0]
    reader.stop()
    assert codes == [0]
