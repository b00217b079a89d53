"""Planning of a write from columns and options, before any task runs."""

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


def test_columns_are_matched_by_name() -> None:
    """Columns of a read can be written unchanged; others are ignored, as in Spark's connector."""
    created = plan(ALL)
    assert created.topic is None
    assert created.columns == ("key", "value", "topic", "partition", "headers", "timestamp")
    assert plan("VALUE string, other int", topic="t").columns == ("value",)


def test_topic_option_overrides_column() -> None:
    created = plan(ALL, topic="t")
    assert (created.topic, "topic" in created.columns) == ("t", False)


def test_client_configs_are_passed_on() -> None:
    created = dict(plan(ALL, kafka__compression__type="zstd", kafka__acks="1").kafka)
    assert created == {
        "acks": "1",
        "batch.size": "262144",
        "bootstrap.servers": "127.0.0.1:1",
        "client.id": "ottla-spark",
        "compression.type": "zstd",
    }


@pytest.mark.parametrize(
    ("columns", "options", "why"),
    [
        ("value string", {}, "No topic to write to"),
        ("key string", {"topic": "t"}, "Column 'value' is missing"),
        ("value int", {"topic": "t"}, "Column 'value' is int, but must be string or binary; option valueFormat"),
        ("key bigint, value string", {"topic": "t"}, "Column 'key' is bigint"),
        ("topic int, value string", {}, "Column 'topic' is int, but must be string"),
        ("partition bigint, value string", {"topic": "t"}, "Column 'partition' is bigint, but must be int"),
        ("timestamp bigint, value string", {"topic": "t"}, "Column 'timestamp' is bigint, but must be timestamp"),
        ("headers array<string>, value string", {"topic": "t"}, "Column 'headers' is array<string>"),
        ("value string, Value string", {"topic": "t"}, "Duplicate column 'value'"),
        ("value string", {"topic": " "}, "Option topic is empty"),
        ("value string", {"topic": "t", "topc": "t"}, "Did you mean topic"),
        ("value string", {"topic": "t", "kafka.acks": "7"}, "acks must be"),
        ("value string", {"topic": "t", "kafka.value.serializer": "x"}, "kafka.value.serializer cannot be set"),
        ("value string", {"topic": "t", "valueFormat": "xml"}, "valueFormat must be one of"),
        ("value string", {"topic": "t", "valueFormat": "json"}, "Column 'value' is string; format json writes structs"),
        ("value string", {"topic": "t", "valueSchema": "a int"}, "valueSchema needs valueFormat"),
        ("key string", {"topic": "t", "valueFormat": "json"}, "no other columns could become its fields"),
        ("value struct<a:int>", {"topic": "t", "valueFormat": "protobuf"}, "Option valueSchema is missing"),
    ],
)
def test_invalid_write_is_rejected(columns: str, options: dict[str, str], why: str) -> None:
    with pytest.raises(OptionError, match=why):
        plan_sink(parse_ddl(columns, option="columns"), SERVER | options, UseCase.WRITE)


def test_sink_requires_bootstrap_servers() -> None:
    with pytest.raises(OptionError, match=r"kafka\.bootstrap\.servers"):
        plan_sink(parse_ddl("value string", option="columns"), {"topic": "t"}, UseCase.WRITE)


def test_overwrite_is_rejected() -> None:
    with pytest.raises(OptionError, match="append"):
        batch_writer(parse_ddl("value string", option="columns"), SERVER | {"topic": "t"}, True)


def test_other_columns_become_fields_of_value() -> None:
    """With a format and without a column `value`, all other columns become its fields."""
    created: Any = plan("key string, id bigint, name string", topic="t", valueFormat="json").value
    assert (created.columns, created.is_packed) == (("id", "name"), True)
