"""What a write makes of its columns and options, before any task runs."""

from typing import Any

import pytest

from ottla.spark.options import OptionError, UseCase
from ottla.spark.sink import batch_writer
from ottla.spark.sink_plan import SinkPlan, plan_sink
from ottla.spark.values_ddl import parse_ddl

SERVER = {"kafka.bootstrap.servers": "127.0.0.1:1"}
ALL = (
    "key binary, value string, topic string, partition int, timestamp timestamp, "
    "headers array<struct<key:string,value:binary>>, offset bigint, timestampType int"
)


def plan(columns: str, **options: str) -> SinkPlan:
    given = {name.replace("__", "."): value for name, value in options.items()}
    return plan_sink(parse_ddl(columns, option="columns"), SERVER | given, UseCase.WRITE)


def test_columns_are_known_by_their_names() -> None:
    """Those of a read can be written as they are; others are passed over, as by Spark's connector."""
    made = plan(ALL)
    assert made.topic is None
    assert made.columns == ("key", "value", "topic", "partition", "headers", "timestamp")
    assert plan("VALUE string, other int", topic="t").columns == ("value",)


def test_the_option_goes_before_the_column() -> None:
    made = plan(ALL, topic="t")
    assert (made.topic, "topic" in made.columns) == ("t", False)


def test_configs_are_the_clients() -> None:
    made = dict(plan(ALL, kafka__compression__type="zstd", kafka__acks="1").kafka)
    assert made == {
        "acks": "1",
        "batch.size": "262144",
        "bootstrap.servers": "127.0.0.1:1",
        "client.id": "ottla-spark",
        "compression.type": "zstd",
    }


@pytest.mark.parametrize(
    ("columns", "options", "why"),
    [
        ("value string", {}, "neither an option 'topic' nor a column 'topic'"),
        ("key string", {"topic": "t"}, "no column 'value'"),
        ("value int", {"topic": "t"}, "Column 'value' is int, but must be string or binary; option valueFormat"),
        ("key bigint, value string", {"topic": "t"}, "Column 'key' is bigint"),
        ("topic int, value string", {}, "Column 'topic' is int, but must be string"),
        ("partition bigint, value string", {"topic": "t"}, "Column 'partition' is bigint, but must be int"),
        ("timestamp bigint, value string", {"topic": "t"}, "Column 'timestamp' is bigint, but must be timestamp"),
        ("headers array<string>, value string", {"topic": "t"}, "Column 'headers' is array<string>"),
        ("value string, Value string", {"topic": "t"}, "two columns 'value'"),
        ("value string", {"topic": " "}, "Option topic is empty"),
        ("value string", {"topic": "t", "topc": "t"}, "Did you mean topic"),
        ("value string", {"topic": "t", "kafka.acks": "7"}, "acks must be"),
        ("value string", {"topic": "t", "kafka.value.serializer": "x"}, "kafka.value.serializer is not taken"),
        ("value string", {"topic": "t", "valueFormat": "xml"}, "valueFormat must be one of"),
        ("value string", {"topic": "t", "valueFormat": "json"}, "Column 'value' is string; format json writes structs"),
        ("value string", {"topic": "t", "valueSchema": "a int"}, "valueSchema needs valueFormat"),
        ("key string", {"topic": "t", "valueFormat": "json"}, "no other that could become its fields"),
        ("value struct<a:int>", {"topic": "t", "valueFormat": "protobuf"}, "Option valueSchema is missing"),
    ],
)
def test_what_cannot_be_written_is_refused(columns: str, options: dict[str, str], why: str) -> None:
    with pytest.raises(OptionError, match=why):
        plan_sink(parse_ddl(columns, option="columns"), SERVER | options, UseCase.WRITE)


def test_brokers_must_be_named() -> None:
    with pytest.raises(OptionError, match=r"kafka\.bootstrap\.servers"):
        plan_sink(parse_ddl("value string", option="columns"), {"topic": "t"}, UseCase.WRITE)


def test_topics_are_not_overwritten() -> None:
    with pytest.raises(OptionError, match="append"):
        batch_writer(parse_ddl("value string", option="columns"), SERVER | {"topic": "t"}, True)


def test_columns_beside_the_value_become_its_fields() -> None:
    """With a format and without a column `value`, all columns that mean nothing else are written."""
    made: Any = plan("key string, id bigint, name string", topic="t", valueFormat="json").value
    assert (made.columns, made.is_packed) == (("id", "name"), True)
