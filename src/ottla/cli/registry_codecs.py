"""Conversion between JSON values and the bytes of Avro, Protobuf and JSON schemas in a schema registry.

Avro: bytes and fixed are strings with a character per byte, as in Avro's JSON encoding; values of unions are written
without their type; logical types are their underlying type. Protobuf: JSON as the protobuf library writes it, with the
field names of the schema.
"""

import base64
import io
import json
import math
from collections.abc import Callable
from typing import Any, Protocol

from ottla.cli.errors import CliError
from ottla.cli.records import shorten, to_compact_json


class CodecError(Exception):
    """A value does not match its schema."""


class Codec(Protocol):
    def decode(self, data: bytes) -> Any:
        """Return the JSON value. Raises CodecError."""

    def encode(self, value: Any) -> bytes:
        """Return the bytes after the schema id. Raises CodecError."""


class JsonCodec:
    """Values are JSON texts. They are not validated against the schema."""

    def decode(self, data: bytes) -> Any:
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise CodecError(_first_line(error)) from None

    def encode(self, value: Any) -> bytes:
        return to_compact_json(value).encode()


class AvroCodec:
    """Values of an Avro schema."""

    def __init__(self, text: str) -> None:
        self._fastavro = _import("fastavro", "Avro", "avro")
        self._names: dict[str, Any] = {}
        self._plain = _without_logical_types(json.loads(text))
        self._schema = self._fastavro.parse_schema(self._plain, self._names)

    def decode(self, data: bytes) -> Any:
        source = io.BytesIO(data)
        try:
            value = self._fastavro.schemaless_reader(source, self._schema, None)
        except Exception as error:  # fastavro raises many types for invalid bytes
            raise CodecError(f"invalid Avro: {error or type(error).__name__}") from None
        if source.tell() != len(data):
            raise CodecError(f"{len(data) - source.tell()} bytes after the value")
        return _to_json(value)

    def encode(self, value: Any) -> bytes:
        sink = io.BytesIO()
        converted = self._convert(self._schema, value, "value")
        try:
            self._fastavro.schemaless_writer(sink, self._schema, converted)
        except Exception as error:  # what _convert does not check, such as a number of more than 64 bits
            raise CodecError(_first_line(error)) from None
        return sink.getvalue()

    def _convert(self, schema: Any, value: Any, path: str) -> Any:
        """Convert strings to bytes where the schema has bytes, and add the defaults of missing fields."""
        schema = self._names.get(schema, schema) if isinstance(schema, str) else schema
        if isinstance(schema, list):
            return self._convert_union(schema, value, path)
        type_ = schema["type"] if isinstance(schema, dict) else schema
        match type_, value:
            case ((dict() | list()), _):
                return self._convert(type_, value, path)
            case (("record" | "error"), dict()):
                return self._convert_fields(schema["fields"], value, path)
            case "array", list():
                items = enumerate(value)
                return [self._convert(schema["items"], each, f"{path}[{index}]") for index, each in items]
            case "map", dict():
                return {name: self._convert(schema["values"], each, f"{path}.{name}") for name, each in value.items()}
            case (("bytes" | "fixed"), str()):
                data = _latin_1(value, path)
                if type_ == "bytes" or len(data) == schema["size"]:
                    return data
            case "enum", str() if value in schema["symbols"]:
                return value
            case (("float" | "double"), (int() | float())) if not isinstance(value, bool):
                return float(value)
            case (("int" | "long"), int()) if not isinstance(value, bool):
                limit = 1 << (31 if type_ == "int" else 63)
                if -limit <= value < limit:
                    return value
            case ("string", str()) | ("boolean", bool()) | ("null", None):
                return value
        raise CodecError(f"{path} is {shorten(to_compact_json(value))}, expected {_type_name(schema)}")

    def _convert_union(self, branches: list[Any], value: Any, path: str) -> Any:
        for branch in branches:
            try:
                return self._convert(branch, value, path)
            except CodecError:
                continue
        names = ", ".join(_type_name(branch) for branch in branches)
        raise CodecError(f"{path} is {shorten(to_compact_json(value))}, expected one of {names}")

    def _convert_fields(self, fields: list[Any], value: dict[str, Any], path: str) -> dict[str, Any]:
        names = [field["name"] for field in fields]
        for name in value:
            if name not in names:
                raise CodecError(f"{path} has an unknown field {name!r}; the fields are {', '.join(names)}")
        found = {}
        for field in fields:
            name = field["name"]
            if name not in value and "default" not in field:
                raise CodecError(f"{path} has no field {name!r}")
            found[name] = self._convert(field["type"], value.get(name, field.get("default")), f"{path}.{name}")
        return found


class ProtobufCodec:
    """Messages of a registered file. Values name their message by its position in the file."""

    def __init__(self, text: str) -> None:
        _import("google.protobuf", "Protobuf", "protobuf")
        from google.protobuf import descriptor_pb2, descriptor_pool

        file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
        if not file.message_type:
            raise CliError("the Protobuf schema has no messages")
        pool = descriptor_pool.DescriptorPool()
        for known in _known_files():
            pool.AddSerializedFile(known)
        pool.Add(file)
        self._file = pool.FindFileByName(file.name)
        self._messages = [self._file.message_types_by_name[each.name] for each in file.message_type]
        self._nested = {each.name: [inner.name for inner in each.nested_type] for each in file.message_type}

    def decode(self, data: bytes) -> Any:
        from google.protobuf import json_format, message_factory
        from google.protobuf.message import DecodeError

        try:
            descriptor, start = self._message_at(data)
            message = message_factory.GetMessageClass(descriptor)()
            message.ParseFromString(data[start:])
        except (DecodeError, IndexError) as error:
            raise CodecError(f"invalid Protobuf: {error}") from None
        return json_format.MessageToDict(message, preserving_proto_field_name=True)

    def encode(self, value: Any) -> bytes:
        """Encode the first message of the file."""
        from google.protobuf import json_format, message_factory

        if not isinstance(value, dict):
            raise CodecError(f"it is {shorten(to_compact_json(value))}, expected an object")
        message = message_factory.GetMessageClass(self._messages[0])()
        try:
            json_format.ParseDict(value, message)
        except (json_format.ParseError, TypeError, ValueError, AttributeError) as error:
            raise CodecError(_first_line(error)) from None
        return b"\0" + bytes(message.SerializeToString(deterministic=True))

    def _message_at(self, data: bytes) -> tuple[Any, int]:
        """Return the message that a value names, and where its bytes start."""
        count, position = _read_zigzag(data, 0)
        path = []
        for _ in range(count):
            index, position = _read_zigzag(data, position)
            path.append(index)
        if any(index < 0 for index in path):
            raise IndexError("negative message index")
        message = self._messages[path[0] if path else 0]
        for index in path[1:]:
            message = message.nested_types[index]
        return message, position


def codec_of(schema_type: str, text: str) -> Codec:
    """Return the codec of a schema. Raises CliError if it is invalid, or its library is not installed."""
    codecs: dict[str, Callable[[], Codec]] = {
        "AVRO": lambda: AvroCodec(text),
        "JSON": JsonCodec,
        "PROTOBUF": lambda: ProtobufCodec(text),
    }
    if schema_type not in codecs:
        raise CliError(f"schemas of type {schema_type} are not supported, only {', '.join(codecs)}")
    try:
        return codecs[schema_type]()
    except CliError:
        raise
    except Exception as error:  # each library has its own errors for an invalid schema
        raise CliError(f"invalid {schema_type} schema: {_first_line(error)}") from None


def _import(module: str, name: str, extra: str) -> Any:
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError:
        raise CliError(f"{name} needs a library that is not installed", f"pip install 'ottla[{extra}]'") from None


def _latin_1(text: str, path: str) -> bytes:
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        raise CodecError(f"{path} is bytes: each character must be one from \\u0000 to \\u00ff") from None


def _type_name(schema: Any) -> str:
    if isinstance(schema, dict):
        return str(schema.get("name") or schema["type"])
    return "a union" if isinstance(schema, list) else str(schema)


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).strip().splitlines()[0]


def _without_logical_types(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_logical_types(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = ("type", "items", "values", "fields")
    return {
        name: _without_logical_types(each) if name in inner else each
        for name, each in schema.items()
        if name != "logicalType"
    }


def _to_json(value: Any) -> Any:
    match value:
        case bytes():
            return value.decode("latin-1")
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            return {name: _to_json(each) for name, each in value.items()}
        case list():
            return [_to_json(each) for each in value]
        case _:
            return value


def _read_zigzag(data: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), position
        shift += 7


def _known_files() -> list[bytes]:
    """Return the files that every protobuf compiler includes."""
    from google.protobuf import any_pb2, duration_pb2, empty_pb2, struct_pb2, timestamp_pb2, wrappers_pb2

    modules = (any_pb2, duration_pb2, empty_pb2, struct_pb2, timestamp_pb2, wrappers_pb2)
    return [module.DESCRIPTOR.serialized_pb for module in modules]
