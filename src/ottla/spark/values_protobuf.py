"""Protobuf: messages of a descriptor set as structs.

A descriptor set is the output of `protoc --include_imports --descriptor_set_out`, given in base64 or as the path of a
file that executors can read. A registry has the file of one schema; values name their message by its index in the file.
"""

import base64
import binascii
from typing import TYPE_CHECKING, Any

from ottla.spark.options import OptionError
from ottla.spark.value_columns import Decoded, decode_each

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

TIMESTAMP = "google.protobuf.Timestamp"
DEPTH_MAX = 16
"""Limit of nested messages, for messages that contain themselves."""


def protobuf_module() -> Any:
    try:
        from google import protobuf
    except ImportError:
        raise OptionError("Format protobuf needs protobuf: pip install 'ottla[protobuf]'.") from None
    return protobuf


def load_set(text: str, option: str) -> bytes:
    """Load a descriptor set from base64 or from a file."""
    from pathlib import Path

    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        path = Path(text)
    try:
        return path.read_bytes()
    except OSError as error:
        raise OptionError(
            f"Option {option} is neither a descriptor set in base64 nor a readable file: {error}."
        ) from None


def find_message(data: bytes, name: str | None, option: str) -> Any:
    """Return the descriptor of a message, by default the first of the last file.

    `data` is a descriptor set or a single file.
    """
    protobuf_module()
    from google.protobuf import descriptor_pb2, descriptor_pool
    from google.protobuf.message import DecodeError

    files = descriptor_pb2.FileDescriptorSet()
    try:
        files.ParseFromString(data)
        is_set = bool(files.file) and all(each.name for each in files.file)
    except DecodeError:
        is_set = False
    if not is_set:
        files = descriptor_pb2.FileDescriptorSet()
        files.file.add().ParseFromString(data)
    pool = descriptor_pool.DescriptorPool()
    _add_known(pool)
    try:
        for each in files.file:
            if not each.name.startswith("google/protobuf/"):
                pool.Add(each)
        last = files.file[-1]
        full = name or ".".join(part for part in (last.package, last.message_type[0].name) if part)
        return pool.FindMessageTypeByName(full)
    except (KeyError, IndexError, TypeError) as error:
        raise OptionError(
            f"Option {option}: no message {name or ''!r} in the descriptor set, or an import is missing: {error}."
        ) from None


def registered_file(data: bytes, name: str | None, option: str) -> str:
    """Return a message's file in base64, as registered.

    Values name the first message of a file, so it must be that one.
    """
    from google.protobuf import descriptor_pb2

    message = find_message(data, name, option)
    file = descriptor_pb2.FileDescriptorProto()
    message.file.CopyToProto(file)
    if message.containing_type is not None or message.name != file.message_type[0].name:
        raise OptionError(
            f"Option {option}: {message.full_name} is not the first message of {file.name}, and values written from "
            "here name that one. Put it first, or into a file of its own."
        )
    imports = [each for each in file.dependency if not each.startswith("google/protobuf/")]
    if imports:
        raise OptionError(
            f"Option {option}: {file.name} imports {', '.join(imports)}, and schemas are registered without "
            "references to others. Put what it needs into one file."
        )
    return base64.b64encode(file.SerializeToString()).decode()


def _add_known(pool: Any) -> None:
    """Add the files that every compiler includes."""
    from google.protobuf import (
        any_pb2,
        descriptor_pb2,
        duration_pb2,
        empty_pb2,
        struct_pb2,
        timestamp_pb2,
        wrappers_pb2,
    )

    for module in (any_pb2, duration_pb2, empty_pb2, struct_pb2, timestamp_pb2, wrappers_pb2):
        file = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        pool.Add(file)


class ProtobufCodec:
    """Encodes and decodes messages of one descriptor."""

    def __init__(self, data_type: Any, descriptor: Any) -> None:
        from google.protobuf import message_factory

        self._kind = data_type
        self._class = message_factory.GetMessageClass(descriptor)

    def decode(self, column: Any) -> Decoded:
        data_type, make = self._kind, self._class

        def one(data: bytes) -> Any:
            message = make()
            message.ParseFromString(data)
            return _to_dict(message, data_type)

        return decode_each(column, data_type, one)

    def encode(self, column: Any) -> Any:
        import pyarrow as pa

        found: list[bytes | None] = []
        for value in column.to_pylist(maps_as_pydicts="strict"):
            if value is None:
                found.append(None)
                continue
            message = self._class()
            _fill(message, value)
            found.append(message.SerializeToString(deterministic=True))
        return pa.array(found, pa.binary())


def _is_map(field: Any) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _to_dict(message: Any, data_type: Any) -> dict[str, Any]:
    """Return the fields of the type. Fields with presence that are not set are null."""
    found: dict[str, Any] = {}
    fields = message.DESCRIPTOR.fields_by_name
    for wanted in data_type:
        field = fields.get(wanted.name)
        if field is None:
            continue
        value = getattr(message, wanted.name)
        if _is_map(field):
            item = field.message_type.fields_by_name["value"]
            found[wanted.name] = [(key, _one(item, each, wanted.type.item_type)) for key, each in sorted(value.items())]
        elif field.is_repeated:
            found[wanted.name] = [_one(field, each, wanted.type.value_type) for each in value]
        elif field.has_presence and not message.HasField(wanted.name):
            found[wanted.name] = None
        else:
            found[wanted.name] = _one(field, value, wanted.type)
    return found


def _one(field: Any, value: Any, data_type: Any) -> Any:
    import datetime

    if field.message_type is not None:
        if field.message_type.full_name == TIMESTAMP:
            return value.ToDatetime(datetime.UTC)
        return _to_dict(value, data_type)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return str(value) if known is None else known.name
    return value


def _fill(message: Any, row: dict[str, Any]) -> None:
    fields = message.DESCRIPTOR.fields_by_name
    for name, value in row.items():
        field = fields.get(name)
        if field is None:
            raise ValueError(f"message {message.DESCRIPTOR.full_name} has no field {name!r}")
        if value is None:
            continue
        if _is_map(field):
            item = field.message_type.fields_by_name["value"]
            target = getattr(message, name)
            for key, each in value.items():
                if item.message_type is not None:
                    _fill(target[key], each)
                else:
                    target[key] = _scalar(item, each)
        elif field.is_repeated:
            target = getattr(message, name)
            for each in value:
                if field.message_type is not None:
                    _fill_message(target.add(), each)
                else:
                    target.append(_scalar(field, each))
        elif field.message_type is not None:
            child = getattr(message, name)
            child.SetInParent()
            _fill_message(child, value)
        else:
            setattr(message, name, _scalar(field, value))


def _fill_message(message: Any, value: Any) -> None:
    if message.DESCRIPTOR.full_name == TIMESTAMP:
        message.FromDatetime(value)
    else:
        _fill(message, value)


def _scalar(field: Any, value: Any) -> Any:
    if field.enum_type is None:
        return int(value) if field.cpp_type == field.CPPTYPE_UINT64 else value
    known = field.enum_type.values_by_name.get(value)
    if known is None:
        raise ValueError(f"enum {field.enum_type.full_name} has no value {value!r}")
    return known.number


def spark_type(descriptor: Any, option: str, depth: int = 0) -> "DataType":
    """Return the struct type of a message. Unsigned 64-bit integers become decimals, which can hold all values."""
    from pyspark.sql import types as t

    if depth > DEPTH_MAX:
        raise OptionError(
            f"Option {option}: message {descriptor.full_name} is recursive, which columns cannot represent."
        )
    fields = []
    for field in descriptor.fields:
        data_type: DataType
        if _is_map(field):
            entry = field.message_type.fields_by_name
            data_type = t.MapType(_field_type(entry["key"], option, depth), _field_type(entry["value"], option, depth))
        else:
            data_type = _field_type(field, option, depth)
            data_type = t.ArrayType(data_type) if field.is_repeated else data_type
        fields.append(t.StructField(field.name, data_type))
    return t.StructType(fields)


def _field_type(field: Any, option: str, depth: int) -> "DataType":
    from pyspark.sql import types as t

    if field.message_type is not None:
        return (
            t.TimestampType()
            if field.message_type.full_name == TIMESTAMP
            else spark_type(field.message_type, option, depth + 1)
        )
    kinds: dict[int, DataType] = {
        field.CPPTYPE_INT32: t.IntegerType(), field.CPPTYPE_INT64: t.LongType(), field.CPPTYPE_UINT32: t.LongType(),
        field.CPPTYPE_UINT64: t.DecimalType(20, 0), field.CPPTYPE_DOUBLE: t.DoubleType(),
        field.CPPTYPE_FLOAT: t.FloatType(),
        field.CPPTYPE_BOOL: t.BooleanType(), field.CPPTYPE_ENUM: t.StringType(),
        field.CPPTYPE_STRING: t.BinaryType() if field.type == field.TYPE_BYTES else t.StringType(),
    }  # fmt: skip
    return kinds[field.cpp_type]
