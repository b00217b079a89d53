"""Value formats without Spark: columns are encoded and decoded, and errors are reported by row."""

import base64
import datetime
import io
import json
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import ArrayType, DecimalType, LongType, MapType, StringType, StructField, StructType

from ottla.spark.options import OptionError
from ottla.spark.value_columns import ArrowIpcCodec, StringCodec
from ottla.spark.values_avro import AvroCodec, schema_from_spark
from ottla.spark.values_avro import spark_type as avro_type
from ottla.spark.values_ddl import parse_ddl
from ottla.spark.values_json import JsonCodec
from ottla.spark.values_protobuf import ProtobufCodec, find_message
from ottla.spark.values_protobuf import spark_type as protobuf_type

ORDER = "id bigint, name string, price double, ok boolean, tags array<string>, place struct<city:string,zip:int>"
ROWS: list[Any] = [
    {
        "id": 1,
        "name": 'a "b" \\ c\n',
        "price": 1.5,
        "ok": True,
        "tags": ["x", None, ""],
        "place": {"city": "Ulm", "zip": 1},
    },
    {"id": -(2**53), "name": "", "price": 1e300, "ok": False, "tags": [], "place": {"city": "Köln", "zip": None}},
    {"id": None, "name": None, "price": None, "ok": None, "tags": None, "place": None},
]


def arrow(ddl: str) -> Any:
    return to_arrow_type(parse_ddl(ddl, option="valueSchema"), timezone="UTC")


class TestDdl:
    def test_all_types(self) -> None:
        text = (
            "a int, `b c` decimal(5,2) NOT NULL, m MAP<string, array<bigint>>, "
            "s struct<x: timestamp, y date> COMMENT 'why'"
        )
        schema = parse_ddl(text, option="valueSchema")
        assert (
            schema.simpleString()
            == "struct<a:int,b c:decimal(5,2),m:map<string,array<bigint>>,s:struct<x:timestamp,y:date>>"
        )
        assert [field.nullable for field in schema.fields] == [True, False, True, True]

    @pytest.mark.parametrize(
        "text", ["", "a", "a int,, b int", "a strng", "a array<int", "a int b int", "a decimal(x)", "a struct<>>"]
    )
    def test_invalid_ddl_is_rejected(self, text: str) -> None:
        with pytest.raises(OptionError, match="valueSchema"):
            parse_ddl(text, option="valueSchema")


class TestJson:
    def test_round_trip(self) -> None:
        """Null fields are omitted, and text is escaped where needed."""
        kind = arrow(ORDER)
        codec = JsonCodec(kind)
        encoded = codec.encode(pa.array([*ROWS, None], kind))
        assert [None if each is None else json.loads(each) for each in encoded.to_pylist()] == [
            ROWS[0], {**ROWS[1], "place": {"city": "Köln"}}, {}, None,
        ]  # fmt: skip
        found = codec.decode(encoded)
        assert (found.column.to_pylist(), found.errors) == ([*ROWS, None], {})

    def test_fast_and_slow_paths_agree(self) -> None:
        """Decoding document by document gives the same rows."""
        kind = arrow(ORDER)
        codec = JsonCodec(kind)
        documents = [json.dumps(row).encode() for row in ROWS] + [
            b'{\n "id": 5,\n "more": [1, {"x": 2}]}',
            b'{"id":7,"name":"\\u00e4\\n"}',
        ]
        fast = codec.decode(pa.array(documents, pa.binary()))
        slow = codec.decode_each(pa.array([*documents, None], pa.binary()))
        assert fast.column.to_pylist() == slow.column.to_pylist()[:-1]
        assert fast.column.type == slow.column.type == kind
        assert fast.column.to_pylist()[3:] == [
            dict.fromkeys(ROWS[0]) | {"id": 5},
            dict.fromkeys(ROWS[0]) | {"id": 7, "name": "ä\n"},
        ]

    def test_errors_are_reported_by_row(self) -> None:
        """Other rows of the batch are decoded; two documents in one value are an error."""
        codec = JsonCodec(arrow("id bigint"))
        documents = [b'{"id":1}', b"{", b'{"id":"x"}', b"", b'{"id":1}{"id":2}', b"[]", b'{"id":1.5}', b'{"id":4}']
        found = codec.decode(pa.array(documents, pa.binary()))
        assert found.column.to_pylist() == [{"id": 1}, None, None, None, None, None, None, {"id": 4}]
        assert list(found.errors) == [1, 2, 3, 4, 5, 6]

    def test_malformed_document_among_many(self) -> None:
        codec = JsonCodec(arrow("id bigint"))
        documents: list[bytes | None] = [b'{"id":%d}' % number for number in range(1000)]
        documents[77], documents[300], documents[999] = None, b"x", b'{"id":'
        found = codec.decode(pa.array(documents, pa.binary()))
        assert list(found.errors) == [300, 999]
        assert found.column.to_pylist() == [
            None if number in (77, 300, 999) else {"id": number} for number in range(1000)
        ]

    def test_types_encoded_as_text(self) -> None:
        kind = arrow("t timestamp, d date, n decimal(6,2), b binary, m map<string,int>")
        row = {
            "t": datetime.datetime(2024, 5, 6, 7, 8, 9, 123000, datetime.UTC),
            "d": datetime.date(2024, 5, 6),
            "n": Decimal("12.30"),
            "b": b"\0\xff",
            "m": [("x", 1), ("y", None)],
        }
        codec = JsonCodec(kind)
        (encoded,) = codec.encode(pa.array([row], kind)).to_pylist()
        assert encoded == b'{"t":"2024-05-06T07:08:09.123Z","d":"2024-05-06","n":12.30,"b":"AP8=","m":{"x":1,"y":null}}'
        assert codec.decode(pa.array([encoded], pa.binary())).column.to_pylist() == [row]


AVRO = json.dumps({
    "type": "record", "name": "Order", "namespace": "shop", "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "more", "type": {"type": "map", "values": "int"}},
        {"name": "place", "type": ["null", {
            "type": "record", "name": "Place", "fields": [{"name": "city", "type": "string"}]}]},
    ]})  # fmt: skip
AVRO_ROW = {
    "id": 7,
    "name": None,
    "at": datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC),
    "price": Decimal("1.25"),
    "kind": "B",
    "tags": ["x"],
    "more": [("a", 1)],
    "place": {"city": "Ulm"},
}


class TestAvro:
    def test_round_trip_with_given_schema(self) -> None:
        kind = avro_type(AVRO, "valueSchema")
        assert kind.simpleString() == (
            "struct<id:bigint,name:string,at:timestamp,price:decimal(8,2),kind:string,tags:array<string>,"
            "more:map<string,int>,place:struct<city:string>>"
        )
        arrow_kind = to_arrow_type(kind, timezone="UTC")
        codec = AvroCodec(arrow_kind, AVRO)
        encoded = codec.encode(pa.array([AVRO_ROW, None], arrow_kind))
        record: Any = fastavro.schemaless_reader(io.BytesIO(encoded[0].as_py()), json.loads(AVRO))
        assert record["kind"] == "B"
        assert codec.decode(encoded).column.to_pylist() == [AVRO_ROW, None]

    def test_schema_is_derived_from_columns(self) -> None:
        kind = parse_ddl(ORDER + ", t timestamp, m map<string,double>, n decimal(9,3)", option="valueSchema")
        text = schema_from_spark(kind)
        assert avro_type(text, "valueSchema").simpleString() == kind.simpleString()
        row = {
            **ROWS[0],
            "t": datetime.datetime(2024, 1, 2, 3, 4, 5, 6, datetime.UTC),
            "m": [("k", 0.5)],
            "n": Decimal("1.125"),
        }
        arrow_kind = to_arrow_type(kind, timezone="UTC")
        codec = AvroCodec(arrow_kind, text)
        assert codec.decode(codec.encode(pa.array([row], arrow_kind))).column.to_pylist() == [row]

    def test_other_schema_version_uses_defaults(self) -> None:
        written = json.dumps({"type": "record", "name": "R", "fields": [{"name": "old", "type": "int"}]})
        requested = json.dumps(
            {
                "type": "record",
                "name": "R",
                "fields": [
                    {"name": "renamed", "aliases": ["old"], "type": "long"},
                    {"name": "new", "type": "string", "default": "d"},
                ],
            }
        )
        codec = AvroCodec(to_arrow_type(avro_type(requested, "valueSchema")), written, requested)
        assert codec.decode(pa.array([b"\x0e"], pa.binary())).column.to_pylist() == [{"renamed": 7, "new": "d"}]

    def test_errors_are_reported_by_row(self) -> None:
        codec = AvroCodec(
            pa.struct([("a", pa.int64())]), '{"type":"record","name":"R","fields":[{"name":"a","type":"long"}]}'
        )
        found = codec.decode(pa.array([b"\x02", b"", b"\x02\x02", b"\x04"], pa.binary()))
        assert found.column.to_pylist() == [{"a": 1}, None, None, {"a": 2}]
        assert list(found.errors) == [1, 2]
        assert found.errors[2] == "1 bytes after the value"

    @pytest.mark.parametrize(("text", "why"), [
        ("{", "not an Avro schema"), ('{"type":"record"}', "not an Avro schema"), ('["int","string"]', "union"),
        ('{"type":"record","name":"L","fields":[{"name":"next","type":["null","L"]}]}', "is recursive")])  # fmt: skip
    def test_schemas_without_column_type_are_rejected(self, text: str, why: str) -> None:
        with pytest.raises(OptionError, match=why):
            avro_type(text, "valueSchema")


def proto_file() -> descriptor_pb2.FileDescriptorProto:
    """Return the file of: message Order { int64 id; string name; repeated Item items; optional double price; ... }"""
    file = descriptor_pb2.FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    kinds = descriptor_pb2.FieldDescriptorProto
    order, item = file.message_type.add(name="Order"), file.message_type.add(name="Item")
    item.field.add(name="sku", number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    entry = order.nested_type.add(name="MoreEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=kinds.TYPE_INT32, label=kinds.LABEL_OPTIONAL)
    enum = file.enum_type.add(name="Kind")
    enum.value.add(name="NONE", number=0)
    enum.value.add(name="BIG", number=1)
    order.oneof_decl.add(name="_price")
    for number, (name, kind, label, more) in enumerate([
        ("id", kinds.TYPE_INT64, 1, {}), ("name", kinds.TYPE_STRING, 1, {}),
        ("items", kinds.TYPE_MESSAGE, 3, {"type_name": ".shop.Item"}),
        ("price", kinds.TYPE_DOUBLE, 1, {"proto3_optional": True, "oneof_index": 0}),
        ("more", kinds.TYPE_MESSAGE, 3, {"type_name": ".shop.Order.MoreEntry"}),
        ("kind", kinds.TYPE_ENUM, 1, {"type_name": ".shop.Kind"}),
        ("at", kinds.TYPE_MESSAGE, 1, {"type_name": ".google.protobuf.Timestamp"}), ("big", kinds.TYPE_UINT64, 1, {}),
        ("data", kinds.TYPE_BYTES, 1, {})], 1):  # fmt: skip
        order.field.add(name=name, number=number, type=kind, label=label, **more)
    return file


def proto_set() -> bytes:
    return descriptor_pb2.FileDescriptorSet(file=[proto_file()]).SerializeToString()


PROTO_ROW = {
    "id": 5,
    "name": "n",
    "items": [{"sku": "a"}, {"sku": ""}],
    "price": None,
    "more": [("x", 1)],
    "kind": "BIG",
    "at": datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC),
    "big": Decimal(2**64 - 1),
    "data": b"\0",
}


class TestProtobuf:
    def test_round_trip(self) -> None:
        descriptor = find_message(proto_set(), "shop.Order", "valueSchema")
        kind = protobuf_type(descriptor, "valueSchema")
        assert isinstance(kind, StructType)
        assert kind["items"].dataType == ArrayType(StructType([StructField("sku", StringType())]))
        assert kind["more"].dataType.simpleString() == "map<string,int>"
        assert (kind["id"].dataType, kind["big"].dataType) == (LongType(), DecimalType(20, 0))
        assert isinstance(kind["more"].dataType, MapType)
        arrow_kind = to_arrow_type(kind, timezone="UTC")
        codec = ProtobufCodec(arrow_kind, descriptor)
        encoded = codec.encode(pa.array([PROTO_ROW, None], arrow_kind))
        assert codec.decode(encoded).column.to_pylist() == [PROTO_ROW, None]

    def test_malformed_messages_and_unknown_enums(self) -> None:
        descriptor = find_message(proto_set(), None, "valueSchema")
        kind = pa.struct([("id", pa.int64()), ("kind", pa.string())])
        found = ProtobufCodec(kind, descriptor).decode(pa.array([b"\xff", b"", b"\x08\x05\x30\x63"], pa.binary()))
        assert found.column.to_pylist() == [None, {"id": 0, "kind": "NONE"}, {"id": 5, "kind": "99"}]
        assert list(found.errors) == [0]

    def test_missing_message_is_named(self) -> None:
        with pytest.raises(OptionError, match="Nothing"):
            find_message(proto_set(), "shop.Nothing", "valueSchema")


class TestOthers:
    def test_text(self) -> None:
        found = StringCodec(pa.string()).decode(pa.array([b"a", b"\xff", None, "ä".encode()], pa.binary()))
        assert found.column.to_pylist() == ["a", None, None, "ä"]
        assert list(found.errors) == [1]
        assert StringCodec(pa.string()).encode(pa.array([1, None, 3])).to_pylist() == [b"1", None, b"3"]

    def test_arrow_tables(self) -> None:
        """A value is a small table; structs become tables with one row."""
        struct = arrow("id bigint, name string")
        rows = [[{"id": 1, "name": "a"}, {"id": 2, "name": None}], [], None]
        codec = ArrowIpcCodec(pa.list_(struct))
        encoded = codec.encode(pa.array(rows, pa.list_(struct)))
        assert pa.ipc.open_stream(encoded[0].as_py()).read_all().to_pylist() == rows[0]
        assert codec.decode(encoded).column.to_pylist() == rows
        single = ArrowIpcCodec(struct).encode(pa.array([{"id": 3, "name": "x"}], struct))
        assert codec.decode(single).column.to_pylist() == [[{"id": 3, "name": "x"}]]
        assert list(codec.decode(pa.array([b"junk"], pa.binary())).errors) == [0]


def test_descriptor_set_from_file(tmp_path: Any) -> None:
    from ottla.spark.values_protobuf import load_set

    path = tmp_path / "order.desc"
    path.write_bytes(proto_set())
    assert (
        load_set(str(path), "valueSchema")
        == load_set(base64.b64encode(proto_set()).decode(), "valueSchema")
        == proto_set()
    )
    with pytest.raises(OptionError, match="neither"):
        load_set(str(path) + "!", "valueSchema")


def test_unregistrable_schema_is_rejected() -> None:
    """Values name the first message of a file, and references to other files are not supported."""
    from ottla.spark.values_protobuf import registered_file

    assert (
        base64.b64decode(registered_file(proto_set(), "shop.Order", "valueSchema")) == proto_file().SerializeToString()
    )
    with pytest.raises(
        OptionError, match=r"valueSchema: shop\.Item is not the first message of order\.proto.*Put it first"
    ):
        registered_file(proto_set(), "shop.Item", "valueSchema")
    other = descriptor_pb2.FileDescriptorProto(
        name="other.proto", package="shop", syntax="proto3", dependency=["order.proto"]
    )
    other.message_type.add(name="Basket")
    both = descriptor_pb2.FileDescriptorSet(file=[proto_file(), other]).SerializeToString()
    with pytest.raises(
        OptionError, match=r"other\.proto imports order\.proto, and schemas are registered without references"
    ):
        registered_file(both, None, "valueSchema")
