"""Formats in queries: written by the sink and read by the source, with given or registered schemas."""

import base64
import io
import json
from collections.abc import Iterator
from typing import Any

import fastavro
import pytest
from pyspark.sql import functions as f

from tests.spark.readers import read
from tests.spark.registry_server import RegistryServer, registry_server
from tests.spark.test_spark_values_codecs import AVRO, proto_file, proto_set

DDL = "id bigint, name string, tags array<string>, place struct<city:string>"
SIMPLE = json.dumps({"type": "record", "name": "R", "namespace": "n", "fields": [{"name": "id", "type": "long"}]})


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    with registry_server() as server:
        yield server


def frame_of(spark: Any) -> Any:
    return spark.range(0, 200, 1, 2).select(
        f.concat(f.lit("k"), "id").alias("key"),
        f.struct(
            "id",
            f.concat(f.lit('n"'), "id").alias("name"),
            f.array(f.lit("a"), f.col("id").cast("string")).alias("tags"),
            f.struct(f.lit("Ulm").alias("city")).alias("place"),
        ).alias("value"),
    )


def write(frame: Any, bootstrap: str, topic: str, **options: str) -> None:
    frame.write.format("ottla").options(**{"kafka.bootstrap.servers": bootstrap, "topic": topic}, **options).mode(
        "append"
    ).save()


def load(spark: Any, options: dict[str, str]) -> Any:
    return spark.read.format("ottla").options(**options).load()


def sorted_values(frame: Any) -> list[Any]:
    return sorted((row.value for row in frame.select("value").collect()), key=lambda value: value.id)


@pytest.mark.parametrize("name", ["json", "avro", "protobuf"])
def test_columns_round_trip(spark: Any, bootstrap: str, make_topic: Any, read_options: Any, name: str) -> None:
    topic = make_topic(2)
    schema, message, columns = {
        "json": (DDL, {}, frame_of(spark)),
        "avro": (None, {}, frame_of(spark)),
        "protobuf": (
            base64.b64encode(proto_set()).decode(),
            {"valueMessage": "shop.Order"},
            frame_of(spark).select("key", f.struct("value.id", "value.name").alias("value")),
        ),
    }[name]
    if name == "avro":
        from ottla.spark.values_avro import schema_from_spark

        schema = schema_from_spark(columns.schema["value"].dataType)
    assert isinstance(schema, str)
    write(columns, bootstrap, topic, valueFormat=name, valueSchema=schema, keyFormat="string", **message)
    found = load(spark, read_options(topic, valueFormat=name, valueSchema=schema, keyFormat="string", **message))
    requested = sorted_values(columns)
    if name == "protobuf":
        found = found.select("key", f.struct("value.id", "value.name").alias("value"))
    assert sorted_values(found) == requested
    assert sorted(row.key for row in found.select("key").collect()) == sorted(f"k{number}" for number in range(200))


def test_columns_are_packed_and_streamed(
    spark: Any, bootstrap: str, make_topic: Any, read_options: Any, checkpoint: str
) -> None:
    """Without a column `value` the other columns are its fields; a stream reads them back as columns."""
    topic, copy = make_topic(1), make_topic(1)
    write(spark.range(50).select("id", (f.col("id") * 2).alias("twice")), bootstrap, topic, valueFormat="json")
    stream = (
        spark.readStream.format("ottla")
        .options(
            **read_options(topic, startingOffsets="earliest", valueFormat="json", valueSchema="id bigint, twice bigint")
        )
        .load()
    )
    query = (
        stream.select("value.id", "value.twice")
        .where("id >= 10")
        .writeStream.format("ottla")
        .options(
            **{
                "kafka.bootstrap.servers": bootstrap,
                "topic": copy,
                "valueFormat": "json",
                "checkpointLocation": checkpoint,
            }
        )
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    found = load(spark, read_options(copy, valueFormat="json", valueSchema="id bigint, twice bigint"))
    assert [tuple(value) for value in sorted_values(found)] == [(number, 2 * number) for number in range(10, 50)]


def test_schemas_from_registry(
    spark: Any, bootstrap: str, make_topic: Any, read_options: Any, registry: RegistryServer
) -> None:
    """The sink registers its schema. The source requests the latest on the driver, and others by id in tasks."""
    topic = make_topic(1)
    options = {"valueFormat": "avro", "schemaRegistryUrl": registry.url}
    write(spark.range(20).select("id"), bootstrap, topic, **options, registerSchemas="true")
    assert list(registry.subjects) == [f"{topic}-value"]
    newer = {
        "type": "record",
        "name": "Record",
        "fields": [{"name": "id", "type": ["null", "long"]}, {"name": "more", "type": "string"}],
    }
    schema_id = registry.register(f"{topic}-value", json.dumps(newer))
    write(spark.range(20, 30).select("id", f.lit("m").alias("more")), bootstrap, topic, **options)
    found = load(spark, read_options(topic, **options))
    assert found.schema["value"].dataType.simpleString() == "struct<id:bigint,more:string>"
    assert [tuple(value) for value in sorted_values(found)] == [
        (number, None if number < 20 else "m") for number in range(30)
    ]
    assert f"/schemas/ids/{schema_id}" in registry.requests


def test_sink_registers_protobuf(
    spark: Any, bootstrap: str, make_topic: Any, read_options: Any, registry: RegistryServer
) -> None:
    """The message's file as a base64 descriptor, which registries accept in place of text."""
    topic = make_topic(1)
    options = {"valueFormat": "protobuf", "schemaRegistryUrl": registry.url}
    given = {"valueSchema": base64.b64encode(proto_set()).decode(), "valueMessage": "shop.Order"}
    write(
        spark.range(20).select("id", f.lit("n").alias("name")),
        bootstrap,
        topic,
        **options,
        **given,
        registerSchemas="true",
    )
    assert list(registry.subjects) == [f"{topic}-value"]
    assert registry.schemas == [
        {"schema": base64.b64encode(proto_file().SerializeToString()).decode(), "schemaType": "PROTOBUF"}
    ]
    found = load(spark, read_options(topic, **options))
    assert [(value.id, value.name, value.price) for value in sorted_values(found)] == [
        (number, "n", None) for number in range(20)
    ]


def framed(schema_id: int, body: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + body


def avro_bytes(schema: str, row: Any) -> bytes:
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, json.loads(schema), row)
    return sink.getvalue()


def test_values_of_other_writers(make_topic: Any, produce: Any, read_options: Any, registry: RegistryServer) -> None:
    """Confluent's framing of Avro, JSON and Protobuf, with several schema versions in one topic."""
    topic = make_topic(1)
    first = registry.register(f"{topic}-value", SIMPLE)
    second_text = SIMPLE.replace('"id"', '"id2"')
    second = registry.register("elsewhere", second_text)
    produce(
        topic,
        [
            framed(first, avro_bytes(SIMPLE, {"id": 1})),
            None,
            framed(second, avro_bytes(second_text, {"id2": 2})),
            framed(first, avro_bytes(SIMPLE, {"id": 3})),
        ],
    )
    rows = read(read_options(topic, valueFormat="avro", schemaRegistryUrl=registry.url))
    assert [row["value"] for row in rows] == [{"id": 1}, None, {"id": None}, {"id": 3}]

    topic = make_topic(1)
    schema_id = registry.register(f"{topic}-value", '{"type":"object","properties":{"id":{"type":"integer"}}}', "JSON")
    produce(topic, [framed(schema_id, b'{"id": 5}')])
    assert [row["value"] for row in read(read_options(topic, valueFormat="json", schemaRegistryUrl=registry.url))] == [
        {"id": 5}
    ]

    topic = make_topic(1)
    registry.serialized["the text"] = base64.b64encode(proto_file().SerializeToString()).decode()
    schema_id = registry.register(f"{topic}-value", "the text", "PROTOBUF")
    produce(topic, [framed(schema_id, b"\0\x08\x07")])
    (row,) = read(read_options(topic, valueFormat="protobuf", schemaRegistryUrl=registry.url))
    assert (row["value"]["id"], row["value"]["name"], row["value"]["price"]) == (7, "", None)


BAD = [b'{"id": 1}', b"junk", b'{"id": 2}']


def test_undecodable_record_fails_query_with_offset(make_topic: Any, produce: Any, read_options: Any) -> None:
    topic = make_topic(1)
    produce(topic, BAD)
    with pytest.raises(
        Exception,
        match=f"offset 1 of {topic}-0 cannot be decoded: its value is not valid json.*errorColumn or errorTopic",
    ):
        read(read_options(topic, valueFormat="json", valueSchema="id bigint"))


def test_undecodable_record_in_error_column(make_topic: Any, produce: Any, read_options: Any) -> None:
    topic = make_topic(1)
    produce(topic, BAD)
    rows = read(read_options(topic, valueFormat="json", valueSchema="id bigint", errorColumn="_error"))
    assert [(row["value"], row["_error"] and (row["_error"]["field"], row["_error"]["bytes"])) for row in rows] == [
        ({"id": 1}, None), (None, ("value", b"junk")), ({"id": 2}, None)]  # fmt: skip


def test_undecodable_record_in_error_topic(make_topic: Any, produce: Any, read_options: Any) -> None:
    topic, bad = make_topic(1), make_topic(1)
    produce(topic, BAD, key=b"k")
    rows = read(read_options(topic, valueFormat="json", valueSchema="id bigint", errorTopic=bad))
    assert [(row["offset"], row["value"]) for row in rows] == [(0, {"id": 1}), (2, {"id": 2})]
    (row,) = read(read_options(bad, includeHeaders="true"))
    headers = {pair["key"]: pair["value"] for pair in row["headers"]}
    assert (row["key"], row["value"]) == (b"k", b"junk")
    assert (headers["ottla.error.topic"], headers["ottla.error.offset"], headers["ottla.error.field"]) == (
        topic.encode(),
        b"1",
        b"value",
    )


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"valueFormat": "json"}, "Option valueSchema is missing"),
        ({"valueFormat": "avro", "valueSchema": "{"}, "valueSchema is not an Avro schema"),
        ({"valueFormat": "avro", "schemaRegistryUrl": "http://127.0.0.1:9"}, "schemaRegistryUrl"),
        ({"valueFormat": "avro", "schemaRegistryUrl": "ftp://x"}, "must start with http"),
        ({"valueFormat": "json", "valueSchema": "a int", "errorColumn": "e", "errorTopic": "t"}, "exclude each other"),
        ({"valueSchema": "a int"}, "valueSchema needs valueFormat"),
    ],
)
def test_format_errors_are_raised_during_planning(
    topic_names: Any, read_options: Any, options: dict[str, str], why: str
) -> None:
    from tests.spark.readers import source

    with pytest.raises(Exception, match=why):
        source(read_options(topic_names(), **options)).schema()


def test_values_without_known_schema(
    make_topic: Any, produce: Any, read_options: Any, registry: RegistryServer
) -> None:
    """Values without the prefix, or with unknown schema ids, are errors of their rows."""
    topic = make_topic(1)
    schema_id = registry.register(f"{topic}-value", SIMPLE)
    produce(topic, [b"x", framed(99, b"\2"), framed(schema_id, b"\2"), b""])
    rows = read(read_options(topic, valueFormat="avro", schemaRegistryUrl=registry.url, errorColumn="_error"))
    assert [row["value"] for row in rows] == [None, None, {"id": 1}, None]
    assert [bool(row["_error"]) for row in rows] == [True, True, False, True]
    assert "no such schema" in rows[1]["_error"]["reason"]


def test_large_schema(make_topic: Any, produce: Any, read_options: Any) -> None:
    """All Avro types in one record, written by another library."""
    topic = make_topic(1)
    produce(
        topic,
        [
            avro_bytes(
                AVRO,
                {"id": 1, "name": "n", "at": 0, "price": b"\1", "kind": "A", "tags": [], "more": {}, "place": None},
            )
        ],
    )
    (row,) = read(read_options(topic, valueFormat="avro", valueSchema=AVRO))
    assert (row["value"]["id"], row["value"]["kind"], str(row["value"]["price"])) == (1, "A", "0.01")
