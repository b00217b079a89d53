"""Keys and values whose schema is in a schema registry: a zero byte, the id of the schema in four bytes, the value."""

import json
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ottla.cli.errors import CliError
from ottla.cli.records import InputRecord, shorten, to_compact_json
from ottla.cli.registry_codecs import Codec, CodecError, codec_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.client.records import ConsumerRecord
    from ottla.spark.registry import Registry

_TYPES = {".avsc": "AVRO", ".json": "JSON", ".proto": "PROTOBUF"}
RegistryUrl = Annotated[
    str | None,
    typer.Option(
        "--registry",
        "-r",
        metavar="URL",
        envvar="OTTLA_REGISTRY",
        help="Values have a schema in this registry (Avro, Protobuf or JSON) and are JSON here.",
    ),
]
RegistryKeys = Annotated[bool, typer.Option("--registry-keys", help="Keys have a schema in the registry, too.")]
SchemaFile = Annotated[
    Path | None,
    typer.Option(
        "--schema",
        metavar="FILE",
        show_default="the latest version of subject TOPIC-value",
        help="Register this schema of the values: .avsc, .proto or .json (JSON Schema).",
    ),
]


def new_decoder(url: str | None, *, includes_keys: bool, seconds: float) -> "RegistryDecoder | None":
    """Return the decoder of a registry, if there is one."""
    return RegistryDecoder(_open_registry(url, seconds), includes_keys=includes_keys) if url else None


def new_encoder(
    url: str | None, topic: str, schema: Path | None, *, includes_keys: bool, seconds: float
) -> "RegistryEncoder | None":
    """Return the encoder of a registry, if there is one."""
    if url:
        return RegistryEncoder(_open_registry(url, seconds), topic, schema, includes_keys=includes_keys)
    if schema is not None:
        raise typer.BadParameter("--schema needs --registry")
    return None


def _open_registry(url: str, seconds: float) -> "Registry":
    from ottla.spark.registry import TRIES_MAX, Registry

    return Registry(url, setting="--registry", seconds_max=seconds / TRIES_MAX)


class RegistryDecoder:
    """Replaces keys and values of records by JSON."""

    def __init__(self, registry: "Registry", *, includes_keys: bool) -> None:
        self._registry = registry
        self.parts = ("key", "value") if includes_keys else ("value",)
        self._codecs: dict[int, Codec] = {}

    def decode_record(self, record: "ConsumerRecord") -> "ConsumerRecord":
        where = f"{record.topic}-{record.partition} offset {record.offset}"
        decoded = {part: self._decode(getattr(record, part), f"{part} at {where}") for part in self.parts}
        return record._replace(**decoded)  # type: ignore[arg-type]

    def _decode(self, data: bytes | None, what: str) -> bytes | None:
        from ottla.spark.registry import FRAME, FRAME_BYTES, MAGIC

        if data is None:
            return None
        if len(data) < FRAME_BYTES or data[0] != MAGIC:
            raise CliError(f"{what} has no schema id", "Read it without --registry.")
        _, schema_id = FRAME.unpack_from(data)
        try:
            codec = self._codecs.get(schema_id)
            if codec is None:
                with _registry_errors():
                    schema = self._registry.by_id(schema_id)
                codec = self._codecs[schema_id] = codec_of(schema.schema_type, schema.text)
            return to_compact_json(codec.decode(data[FRAME_BYTES:])).encode()
        except CodecError as error:
            raise CliError(f"{what} does not match schema {schema_id}: {error}") from None


class RegistryEncoder:
    """Replaces JSON keys and values by their bytes. Schemas are looked up, or registered, on first use."""

    def __init__(self, registry: "Registry", topic: str, schema: Path | None, *, includes_keys: bool) -> None:
        self._registry, self._topic, self._schema = registry, topic, schema
        self.parts = ("key", "value") if includes_keys else ("value",)
        self._encoders: dict[str, Callable[[Any], bytes]] = {}

    def encode(self, record: InputRecord, number: int) -> dict[str, bytes | None]:
        """Return the bytes of the parts that have a schema."""
        return {part: self._encode(part, getattr(record, part), number) for part in self.parts}

    def _encode(self, part: str, text: bytes | None, number: int) -> bytes | None:
        if text is None:
            return None
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise CliError(f"line {number}: {part} is not JSON: {shorten(str(error))}") from None
        if part not in self._encoders:
            self._encoders[part] = self._new_encoder(part)
        try:
            return self._encoders[part](value)
        except CodecError as error:
            raise CliError(
                f"line {number}: {part} does not match the schema of {self._topic}-{part}: {error}"
            ) from None

    def _new_encoder(self, part: str) -> Callable[[Any], bytes]:
        from ottla.spark.registry import FRAME, MAGIC

        subject = f"{self._topic}-{part}"
        with _registry_errors():
            if self._schema is not None and part == "value":
                schema = self._registry.by_id(self._register(subject, self._schema))
            else:
                schema = self._registry.latest(subject)
        codec = codec_of(schema.schema_type, schema.text)
        frame = FRAME.pack(MAGIC, schema.id)
        return lambda value: frame + codec.encode(value)

    def _register(self, subject: str, path: Path) -> int:
        schema_type = _TYPES.get(path.suffix)
        if schema_type is None:
            raise typer.BadParameter(f"--schema: {path} must end with {', '.join(_TYPES)}")
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise CliError(f"{path}: not a text in UTF-8") from None
        return self._registry.register(subject, schema_type, text)


@contextmanager
def _registry_errors() -> "Iterator[None]":
    from ottla.spark.registry import RegistryError

    try:
        yield
    except RegistryError as error:
        raise CliError(str(error)) from None
    except (KeyError, TypeError, ValueError) as error:
        raise CliError(f"the schema registry sent an invalid response: {error}", "Check --registry.") from None
