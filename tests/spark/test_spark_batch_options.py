"""Every option of a batch read, as in Spark's connector."""

import json

import pytest

from ottla.spark.errors import DataLossError, SourceError
from ottla.spark.offset_options import topics_of
from ottla.spark.offset_reader import OffsetReader
from ottla.spark.options import OptionError, UseCase, parse_options
from tests.spark.readers import batch_reader, ranges_of, read, values


def test_rows_have_all_fields_of_records(make_topic, produce, read_options):
    topic = make_topic()
    produce(topic, [b"v", None], key=b"k", start_ms=1_700_000_000_123, headers=[("a", b"1"), ("a", None)])
    produce(topic, [b"w"], start_ms=1_700_000_000_500)
    rows = read(read_options(topic, includeHeaders="true"))
    from datetime import UTC, datetime

    def at(milliseconds):
        return datetime.fromtimestamp(milliseconds // 1000, UTC).replace(microsecond=milliseconds % 1000 * 1000)

    pairs = [{"key": "a", "value": b"1"}, {"key": "a", "value": None}]
    assert rows == [
        {
            "key": b"k",
            "value": b"v",
            "topic": topic,
            "partition": 0,
            "offset": 0,
            "timestamp": at(1_700_000_000_123),
            "timestampType": 0,
            "headers": pairs,
        },
        {
            "key": b"k",
            "value": None,
            "topic": topic,
            "partition": 0,
            "offset": 1,
            "timestamp": at(1_700_000_000_124),
            "timestampType": 0,
            "headers": pairs,
        },
        {
            "key": None,
            "value": b"w",
            "topic": topic,
            "partition": 0,
            "offset": 2,
            "timestamp": at(1_700_000_000_500),
            "timestampType": 0,
            "headers": None,
        },
    ]


def test_no_headers_column_without_include_headers(make_topic, produce, read_options):
    topic = make_topic()
    produce(topic, [b"v"], headers=[("a", b"1")])
    assert list(read(read_options(topic))[0]) == [
        "key",
        "value",
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestampType",
    ]


def test_log_append_time_has_its_timestamp_type(make_topic, produce, read_options):
    topic = make_topic(message_timestamp_type="LogAppendTime")
    produce(topic, [b"v"], start_ms=1)
    row = read(read_options(topic))[0]
    assert (row["timestampType"], row["timestamp"].year > 2000) == (1, True)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_all_codecs(make_topic, produce, read_options, codec):
    topic = make_topic()
    requested = [b"%d-" % index * 20 for index in range(500)]
    produce(topic, requested, codec=codec, headers=[("h", b"x")])
    rows = read(read_options(topic, includeHeaders="true"))
    assert values(rows) == requested
    assert {json.dumps([(pair["key"], pair["value"].decode()) for pair in row["headers"]]) for row in rows} == {
        '[["h", "x"]]'
    }


# Topics


def test_subscribe_several_topics(make_topic, produce, read_options):
    one, two = make_topic(), make_topic()
    produce(one, [b"1"])
    produce(two, [b"2"])
    assert values(read(read_options(f" {one} ,{two},"))) == [b"1", b"2"]


def test_subscribe_pattern_is_found_anywhere_in_names(make_topic, produce, read_options, topic_names):
    """As in Spark's connector, with Java's syntax."""
    stem = topic_names()
    for name in (f"{stem}.a", f"{stem}.ab", f"pre-{stem}.a", f"{stem}.1"):
        produce(make_topic(name=name), [name.removeprefix(stem).encode()])
    assert values(read(read_options(subscribePattern=rf"{stem}\.a"))) == [f"pre-{stem}.a".encode(), b".a", b".ab"]
    assert values(read(read_options(subscribePattern=rf"^{stem}\.[ab]$"))) == [b".a"]
    assert values(read(read_options(subscribePattern=rf"{stem}\.\p{{Digit}}"))) == [b".1"]


def test_assign_partitions(make_topic, produce, read_options):
    topic = make_topic(3)
    for partition in range(3):
        produce(topic, [b"%d" % partition], partition)
    assert values(read(read_options(assign=json.dumps({topic: [0, 2]})))) == [b"0", b"2"]


def test_pattern_without_match_reads_nothing(read_options):
    assert read(read_options(subscribePattern="no-such-.*")) == []


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({}, "No topics to read; set one of the options subscribe"),
        ({"subscribe": "a", "subscribePattern": "b"}, "Options subscribe and subscribePattern exclude each other"),
        ({"subscribe": " , "}, "Option subscribe names no topic"),
        ({"subscribePattern": "("}, "Option subscribePattern is not a valid regular expression"),
        ({"subscribePattern": r"\p{Han}"}, "Java's .p{Han} is not supported; use a class such as"),
        ({"assign": "[1]"}, "Option assign must be JSON such as"),
        ({"assign": "{}"}, "Option assign names no partition"),
    ],
)
def test_exactly_one_topic_option_is_required(read_options, more, message):
    with pytest.raises(OptionError, match=message.replace("(", "[(]")):
        batch_reader(read_options(**more))


def test_missing_topics_and_partitions_are_named(make_topic, read_options):
    with pytest.raises(SourceError, match="Topic 'no-such-topic' in option subscribe does not exist"):
        read(read_options("no-such-topic"))
    topic = make_topic()
    with pytest.raises(SourceError, match=f"Topic '{topic}' has no partition 7, which is in option assign"):
        read(read_options(assign=json.dumps({topic: [0, 7]})))


def test_unreachable_brokers_are_named(read_options):
    with pytest.raises(SourceError, match=r"brokers of option kafka.bootstrap.servers [(]127.0.0.1:1[)] run"):
        read(read_options("a", kafka__bootstrap__servers="127.0.0.1:1"))


def test_first_contact_has_ten_seconds_and_later_calls_a_minute(numbered, read_options, monkeypatch):
    """A wrong address fails soon, while a query survives a broker's restart."""
    given = read_options(numbered)
    del given["kafka.default.api.timeout.ms"]
    options = parse_options(given, UseCase.READ)
    with OffsetReader(options, topics_of(options)) as offset_reader:
        assert offset_reader._admin.timeout_ms == 10_000
        offset_reader.partitions()
        assert offset_reader._admin.timeout_ms == 60_000
    options = parse_options(given | {"kafka.default.api.timeout.ms": "20000"}, UseCase.READ)
    with OffsetReader(options, topics_of(options)) as offset_reader:
        assert offset_reader._admin.timeout_ms == 20_000


# Start and end


@pytest.fixture
def numbered(make_topic, produce):
    """A topic with two partitions of ten values each, one millisecond apart from 1,000,000,000,000 on."""
    topic = make_topic(2)
    for partition in range(2):
        produce(topic, [b"%d-%d" % (partition, index) for index in range(10)], partition, start_ms=1_000_000_000_000)
    return topic


def between(*bounds):
    return [
        b"%d-%d" % (partition, index) for partition, (first, last) in enumerate(bounds) for index in range(first, last)
    ]


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [
        ({}, {}, ((0, 10), (0, 10))),
        ({"startingOffsets": "earliest"}, {"endingOffsets": "latest"}, ((0, 10), (0, 10))),
        ({"startingOffsets": {"0": 3, "1": -2}}, {"endingOffsets": {"0": 7, "1": -1}}, ((3, 7), (0, 10))),
        ({"startingTimestamp": "1000000000004"}, {"endingTimestamp": "1000000000006"}, ((4, 6), (4, 6))),
        (
            {"startingOffsetsByTimestamp": {"0": 1_000_000_000_002, "1": 0}},
            {"endingOffsetsByTimestamp": {"0": 1_000_000_000_003, "1": 2 * 10**12}},
            ((2, 3), (0, 10)),
        ),
        (
            {
                "startingTimestamp": "1000000000008",
                "startingOffsetsByTimestamp": {"0": 0, "1": 0},
                "startingOffsets": "earliest",
            },
            {},
            ((8, 10), (8, 10)),
        ),
        (
            {"startingTimestamp": str(3 * 10**12), "startingOffsetsByTimestampStrategy": "latest"},
            {},
            ((10, 10), (10, 10)),
        ),
        ({}, {"endingTimestamp": str(3 * 10**12)}, ((0, 10), (0, 10))),
    ],
)
def test_start_and_end_of_read(numbered, read_options, start, end, found):
    given = {
        name: json.dumps({numbered: value}) if isinstance(value, dict) else value
        for name, value in (start | end).items()
    }
    assert values(read(read_options(numbered, **given))) == between(*found)


def test_timestamp_after_last_record_is_error_by_default(numbered, read_options):
    with pytest.raises(
        SourceError, match=r"startingTimestamp: no record of .*-0 is at or after 3000000000000.*ByTimestampStrategy"
    ):
        read(read_options(numbered, startingTimestamp=3 * 10**12))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("startingOffsets", "latest", "startingOffsets of a batch read cannot be latest"),
        ("startingOffsets", '{"t":{"0":-1}}', "startingOffsets of a batch read cannot be latest"),
        ("endingOffsets", "earliest", "endingOffsets cannot be earliest"),
        ("endingOffsets", '{"t":{"0":-2}}', "endingOffsets cannot be earliest"),
        ("startingOffsets", "first", "startingOffsets must be earliest, latest or JSON such as"),
        ("startingOffsets", '{"t":{"0":-3}}', "startingOffsets has offset -3 for t-0"),
        ("startingOffsets", '{"t":{"0":"5"}}', "startingOffsets must be earliest"),
        ("startingOffsetsByTimestamp", "earliest", "startingOffsetsByTimestamp must be JSON such as"),
        ("startingOffsetsByTimestamp", '{"t":{"0":-1}}', "startingOffsetsByTimestamp has a negative timestamp for t-0"),
        ("startingTimestamp", "now", "startingTimestamp must be an integer"),
        ("startingOffsetsByTimestampStrategy", "nearest", "must be one of error, latest"),
        ("failOnDataLoss", "maybe", "failOnDataLoss must be true or false"),
        ("minPartitions", "0", "minPartitions must be at least 1"),
        ("maxRecordsPerPartition", "many", "maxRecordsPerPartition must be an integer"),
        ("startingOffset", "earliest", "no option 'startingoffset'. Did you mean startingOffsets"),
        ("isolationLevel", "dirty", "isolationLevel must be one of read_uncommitted, read_committed"),
        (
            "kafka.auto.offset.reset",
            "earliest",
            "kafka.auto.offset.reset cannot be set: use startingOffsets",
        ),
        ("kafka.enable.auto.commit", "true", "kafka.enable.auto.commit cannot be set"),
        ("kafka.key.deserializer", "x", "kafka.key.deserializer cannot be set"),
        ("kafka.value.deserializer", "x", "kafka.value.deserializer cannot be set"),
        ("kafka.interceptor.classes", "x", "kafka.interceptor.classes cannot be set"),
        ("kafka.fetch.max.byte", "1", "has no config 'fetch.max.byte'. Did you mean fetch.max.bytes"),
    ],
)
def test_invalid_option_is_named(read_options, name, value, message):
    with pytest.raises(OptionError, match=message):
        batch_reader(read_options("t") | {name: value})


def test_bootstrap_servers_are_required():
    with pytest.raises(OptionError, match=r"Option kafka.bootstrap.servers is missing"):
        batch_reader({"subscribe": "t"})


def test_all_partitions_need_an_offset(numbered, read_options):
    with pytest.raises(
        OptionError, match=f"startingOffsets must have every partition that is read; missing: {numbered}-1"
    ):
        read(read_options(numbered, startingOffsets=json.dumps({numbered: {"0": 1}})))
    with pytest.raises(OptionError, match=f"startingOffsets has {numbered}-2, which is not read"):
        read(read_options(numbered, startingOffsets=json.dumps({numbered: {"0": 1, "1": 1, "2": 1}})))


def test_deleted_offsets_are_data_loss_by_default(numbered, admin, read_options):
    admin.delete_records({(numbered, 0): 6})
    start = json.dumps({numbered: {"0": 2, "1": 8}})
    with pytest.raises(
        DataLossError,
        match=f"startingOffsets has offset 2 for {numbered}-0, whose offsets range from 6 to 10.*failOnDataLoss",
    ):
        read(read_options(numbered, startingOffsets=start))
    assert values(read(read_options(numbered, startingOffsets=start, failOnDataLoss="false"))) == between(
        (6, 10), (8, 10)
    )


def test_offsets_deleted_between_planning_and_reading(numbered, admin, read_options):
    """The broker reports it to the task, which fails or continues at the log start offset."""
    from tests.spark.readers import rows_of

    careful, careless = (
        batch_reader(read_options(numbered)),
        batch_reader(read_options(numbered, failOnDataLoss="false")),
    )
    planned = careful.partitions()
    admin.delete_records({(numbered, 0): 4, (numbered, 1): 10})
    with pytest.raises(DataLossError, match=f"Offsets 0 to 3 of {numbered}-0 were deleted by retention"):
        rows_of(careful, planned)
    assert values(rows_of(careless, planned)) == between((4, 10), (0, 0))


def test_end_after_last_record(numbered, read_options):
    end = json.dumps({numbered: {"0": 50, "1": 2}})
    with pytest.raises(DataLossError, match="endingOffsets has offset 50"):
        read(read_options(numbered, endingOffsets=end))
    assert values(read(read_options(numbered, endingOffsets=end, failOnDataLoss="false"))) == between((0, 10), (0, 2))


# Tasks


def test_one_task_per_non_empty_partition(make_topic, produce, read_options):
    topic = make_topic(3)
    produce(topic, [b"x"] * 4, 1)
    assert ranges_of(batch_reader(read_options(topic)).partitions()) == [(topic, 1, 0, 4)]


def test_min_partitions_and_max_records_split(numbered, read_options):
    assert ranges_of(batch_reader(read_options(numbered, minPartitions=4)).partitions()) == [
        (numbered, 0, 0, 5),
        (numbered, 0, 5, 10),
        (numbered, 1, 0, 5),
        (numbered, 1, 5, 10),
    ]
    assert ranges_of(batch_reader(read_options(numbered, maxRecordsPerPartition=4)).partitions()) == [
        (numbered, 0, 0, 3),
        (numbered, 0, 3, 6),
        (numbered, 0, 6, 10),
        (numbered, 1, 0, 3),
        (numbered, 1, 3, 6),
        (numbered, 1, 6, 10),
    ]
    assert values(read(read_options(numbered, maxRecordsPerPartition=3))) == between((0, 10), (0, 10))


def test_small_responses_are_combined(make_topic, produce, read_options):
    """Regardless of fetch sizes and compression."""
    topic = make_topic()
    requested = [b"%06d" % index * 50 for index in range(3000)]
    produce(topic, requested, codec="zstd")
    assert (
        values(read(read_options(topic, kafka__max__partition__fetch__bytes=20_000, kafka__fetch__max__bytes=20_000)))
        == requested
    )


def test_streaming_options_are_ignored(numbered, read_options):
    options = read_options(
        numbered, maxOffsetsPerTrigger=1, minOffsetsPerTrigger=5, maxTriggerDelay="1m", groupIdPrefix="p"
    )
    options["topic"] = "that-of-a-sink"
    assert values(read(options)) == between((0, 10), (0, 10))


def test_task_times_out(numbered, read_options):
    """The broker is unreachable."""
    from tests.spark.readers import rows_of

    reader = batch_reader(read_options(numbered, kafkaConsumer__pollTimeoutMs=200))
    planned = reader.partitions()
    reader._options.kafka["bootstrap.servers"] = "127.0.0.1:1"
    with pytest.raises(
        SourceError, match=rf"No record of {numbered}-0 from offset 0 arrived within 0.2 s \(option kafkaConsumer.poll"
    ):
        rows_of(reader, planned)


def test_retriable_errors_are_retried(read_options, monkeypatch):
    """Retriable errors are retried fetchOffset.numRetries times."""
    from ottla.base.errors import ErrorCode
    from ottla.client.errors import broker_error
    from ottla.spark.offset_options import topics_of
    from ottla.spark.offset_reader import OffsetReader
    from ottla.spark.options import UseCase, parse_options

    slept, requests = [], []
    monkeypatch.setattr("ottla.spark.offset_reader.time.sleep", slept.append)
    options = parse_options(read_options("t", fetchOffset__numRetries=2, fetchOffset__retryIntervalMs=70), UseCase.READ)

    def call():
        requests.append(1)
        raise broker_error(ErrorCode.LEADER_NOT_AVAILABLE)

    with (
        OffsetReader(options, topics_of(options)) as offset_reader,
        pytest.raises(SourceError, match="Looking failed: LEADER_NOT_AVAILABLE"),
    ):
        offset_reader._call("Looking", call)
    assert (len(requests), slept) == (3, [0.07, 0.07])
