"""`--registry`: values and keys with schemas of a schema registry, as JSON in produce and consume."""

import base64
import json
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla.cli.errors import CliError
from ottla.cli.registry_codecs import AvroCodec, CodecError, ProtobufCodec, codec_of
from ottla.testing.broker import Broker
from tests.spark.registry_server import RegistryServer, registry_server
from tests.unit.cli.conftest import Result

fastavro = pytest.importorskip("fastavro")
descriptor_pb2 = pytest.importorskip("google.protobuf.descriptor_pb2")
Ottla = Callable[..., Result]

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "price", "type": ["null", "double"], "default": None},
        {"name": "raw", "type": "bytes", "default": "\u00ff"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 0},
        {"name": "next", "type": ["null", "Order"], "default": None},
        {"name": "tags", "type": {"type": "map", "values": {"type": "array", "items": "string"}}, "default": {}},
    ],
}
DEFAULTS = {"price": None, "raw": "ÿ", "at": 0, "next": None, "tags": {}}


def proto_text() -> str:
    """Return a registered Protobuf file with messages `Order` (with `Inner`) and `Other`, in base64."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    order, other = file.message_type.add(name="Order"), file.message_type.add(name="Other")
    order.field.add(name="order_id", number=1, type=kinds.TYPE_INT32, label=kinds.LABEL_OPTIONAL)
    stamp = ".google.protobuf.Timestamp"
    order.field.add(name="at", number=2, type=kinds.TYPE_MESSAGE, type_name=stamp, label=kinds.LABEL_OPTIONAL)
    for message in (order.nested_type.add(name="Inner"), other):
        message.field.add(name="name", number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    return base64.b64encode(file.SerializeToString()).decode()


class TestAvroCodec:
    @pytest.mark.parametrize(
        "value",
        [
            {"id": 1, **DEFAULTS},
            {**DEFAULTS, "id": -1, "price": 1.5, "raw": "\x00a", "next": {"id": 2, **DEFAULTS}, "tags": {"a": ["b"]}},
        ],
    )
    def test_round_trip(self, value: Any) -> None:
        codec = AvroCodec(json.dumps(ORDER))
        assert codec.decode(codec.encode(value)) == value

    def test_defaults_and_whole_numbers(self) -> None:
        codec = AvroCodec(json.dumps(ORDER))
        assert codec.decode(codec.encode({"id": 1, "price": 3})) == {"id": 1, **DEFAULTS, "price": 3.0}

    @pytest.mark.parametrize(
        ("schema", "value"),
        [('"string"', "a"), ('["null","bytes"]', "\xff"), ('["null","string","bytes"]', "a"), ('["int","null"]', None)],
    )
    def test_plain_schemas(self, schema: str, value: Any) -> None:
        codec = AvroCodec(schema)
        assert codec.decode(codec.encode(value)) == value

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            ({}, "value has no field 'id'"),
            ({"id": "x"}, 'value.id is "x", expected long'),
            ({"id": 1 << 63}, "value.id is 9223372036854775808, expected long"),
            ({"id": True}, "value.id is true, expected long"),
            ({"id": 1, "idd": 1}, "value has an unknown field 'idd'; the fields are id, price, raw, at, next, tags"),
            ({"id": 1, "raw": "€"}, r"value.raw is bytes: each character must be one from \u0000 to \u00ff"),
            ({"id": 1, "price": "x"}, 'value.price is "x", expected one of null, double'),
            ({"id": 1, "tags": {"a": ["b", 5]}}, "value.tags.a[1] is 5, expected string"),
            (None, "value is null, expected shop.Order"),
        ],
    )
    def test_values_that_do_not_match(self, value: Any, message: str) -> None:
        with pytest.raises(CodecError) as raised:
            AvroCodec(json.dumps(ORDER)).encode(value)
        assert str(raised.value) == message

    def test_fixed_enum_and_references(self) -> None:
        fixed = {"type": "fixed", "name": "F", "size": 2}
        enum = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
        fields = [{"name": "f", "type": fixed}, {"name": "e", "type": enum}, {"name": "g", "type": ["null", "F", "E"]}]
        codec = AvroCodec(json.dumps({"type": "record", "name": "R", "fields": fields}))
        for value in (
            {"f": "ab", "e": "A", "g": None},
            {"f": "ab", "e": "B", "g": "cd"},
            {"f": "ab", "e": "B", "g": "A"},
        ):
            assert codec.decode(codec.encode(value)) == value
        for wrong in ({"f": "a", "e": "A", "g": None}, {"f": "ab", "e": "C", "g": None}):
            with pytest.raises(CodecError):
                codec.encode(wrong)

    @pytest.mark.parametrize("data", [b"", b"\x02", b"\xff" * 20, AvroCodec('"long"').encode(1) * 9])
    def test_invalid_bytes(self, data: bytes) -> None:
        with pytest.raises(CodecError):
            AvroCodec(json.dumps(ORDER)).decode(data)


class TestProtobufCodec:
    def test_round_trip(self) -> None:
        codec = ProtobufCodec(proto_text())
        for value in ({}, {"order_id": 5, "at": "2026-01-31T12:00:00Z"}):
            assert codec.decode(codec.encode(value)) == value

    @pytest.mark.parametrize("path", [b"\x00", b"\x02\x00", b"\x02\x02", b"\x04\x00\x00"])
    def test_value_names_its_message(self, path: bytes) -> None:
        names = {b"\x00": "order_id", b"\x02\x00": "order_id", b"\x02\x02": "name", b"\x04\x00\x00": "name"}
        body = b"\x08\x05" if names[path] == "order_id" else b"\x0a\x01a"
        assert list(ProtobufCodec(proto_text()).decode(path + body)) == [names[path]]

    @pytest.mark.parametrize("data", [b"", b"\x02", b"\x02\x08", b"\x00\x08", b"\x04\x00\x04a", b"\x02\x01"])
    def test_invalid_bytes(self, data: bytes) -> None:
        with pytest.raises(CodecError):
            ProtobufCodec(proto_text()).decode(data)

    @pytest.mark.parametrize("value", [{"nothing": 1}, {"order_id": "x"}, 5, None, []])
    def test_values_that_do_not_match(self, value: Any) -> None:
        with pytest.raises(CodecError):
            ProtobufCodec(proto_text()).encode(value)


def test_deeply_nested_json_value() -> None:
    with pytest.raises(CodecError):
        codec_of("JSON", "{}").decode(b"[" * 100_000)


@pytest.mark.parametrize(("type_", "text"), [("AVRO", "{}"), ("AVRO", "x"), ("PROTOBUF", "!"), ("THRIFT", "")])
def test_invalid_schemas(type_: str, text: str) -> None:
    with pytest.raises(CliError):
        codec_of(type_, text)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[RegistryServer]:
    with registry_server() as server:
        monkeypatch.setenv("OTTLA_REGISTRY", server.url)
        yield server


@pytest.fixture
def topic(ottla_session_broker: Broker, name: str) -> str:
    ottla_session_broker.create_topic(name, 1)
    return name


class TestCommands:
    def test_avro(self, ottla: Ottla, registry: RegistryServer, topic: str, tmp_path: pathlib.Path) -> None:
        (tmp_path / "order.avsc").write_text(json.dumps(ORDER))
        sent = ottla("produce", topic, "--schema", str(tmp_path / "order.avsc"), stdin=b'{"id": 1}\n{"id": 2}\n')
        assert sent.code == 0
        assert registry.subjects == {f"{topic}-value": [1]}
        assert ottla("produce", topic, "-v", '{"id": 3, "price": 1}').code == 0
        read = [json.loads(line) for line in ottla("consume", topic).out.splitlines()]
        assert [(each["id"], each["price"]) for each in read] == [(1, None), (2, None), (3, 1.0)]
        assert ottla("consume", topic, "--json").lines[0]["value"] == {"id": 1, **DEFAULTS}
        assert ottla("consume", topic, "-f", "%s;", "--max", "1").out.startswith('{"id":1,"price":null')

    def test_keys_and_tombstones_copy_a_topic(self, ottla: Ottla, registry: RegistryServer, topic: str) -> None:
        copy = f"{topic}-copy"
        ottla("topic", "create", copy, "-p", "1")
        for each in (topic, copy):
            registry.register(f"{each}-value", '"string"')
            registry.register(f"{each}-key", '{"type": "object"}', "JSON")
        lines = b'{"key": {"k": 1}, "value": "a"}\n{"key": {"k": 2}, "value": null}\n'
        assert ottla("produce", topic, "--json", "--registry-keys", stdin=lines).code == 0
        written = ottla("consume", topic, "--json", "--registry-keys").out
        assert [(each["key"], each["value"]) for each in map(json.loads, written.splitlines())] == [
            ({"k": 1}, "a"),
            ({"k": 2}, None),
        ]
        assert ottla("produce", copy, "--json", "--registry-keys", stdin=written.encode()).code == 0
        assert ottla("consume", copy, "--json", "--registry-keys").out == written.replace(topic, copy)

    def test_protobuf(self, ottla: Ottla, registry: RegistryServer, topic: str) -> None:
        registry.register(f"{topic}-value", "syntax = 'proto3';", "PROTOBUF")
        registry.serialized["syntax = 'proto3';"] = proto_text()
        assert ottla("produce", topic, "-v", '{"order_id": 7}').code == 0
        assert ottla("consume", topic).out == '{"order_id":7}\n'

    def test_errors(self, ottla: Ottla, registry: RegistryServer, topic: str, tmp_path: pathlib.Path) -> None:
        missing = ottla("produce", topic, "-v", "1")
        assert (missing.code, missing.err.splitlines()[0][:37]) == (1, "ottla: Request for subject '" + topic[:9])
        assert missing.err.rstrip().endswith("failed: status 404, no such subject.")
        registry.register(f"{topic}-value", json.dumps(ORDER))
        wrong = ottla("produce", topic, stdin=b'{"id": 1}\n{"id": "x"}\n').err.splitlines()
        assert wrong[0].startswith("1 record to ")
        assert wrong[1].startswith(f"ottla: line 2: value does not match the schema of {topic}-value: ")
        no_json = ottla("produce", topic, "-v", "x")
        assert no_json.err.startswith("ottla: line 1: value is not JSON: ")
        assert ottla("produce", topic, "-v", "1", "--schema", "a.txt").code == 2
        assert ottla("produce", topic, "-v", "1", "--schema", "no.avsc").err == (
            "ottla: no.avsc: No such file or directory\n"
        )
        ottla("produce", f"{topic}-plain", "-v", "x", "--registry", "")
        plain = ottla("consume", f"{topic}-plain")
        assert plain.err == (
            f"ottla: value at {topic}-plain-0 offset 0 has no schema id\n       Read it without --registry.\n"
        )
        unreachable = ottla("consume", topic, "--registry", "http://127.0.0.1:1")
        assert unreachable.err.endswith("Connection refused>. Check --registry.\n")
        assert ottla("consume", topic, "--registry", "ftp://x").err == (
            "ottla: --registry must start with http:// or https://, not 'ftp://x'.\n"
        )
