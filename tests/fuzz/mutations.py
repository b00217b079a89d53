"""Plausible requests, and mutations: changed bits, lengths and counts, missing, added and duplicated bytes."""

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from random import Random
from struct import Struct
from typing import Any

import ottla.wire.messages
from ottla.wire.batches import RECORDS_AT, Record, build_batch, write_checksum
from ottla.wire.fields import Field
from ottla.wire.schema import Message, encode

_header = Struct(">hhih")
_i32 = Struct(">i")
_NUMBERS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "u16": 15, "u32": 31}
_USUAL = {
    "acks": (-1, 0, 1),
    "max_wait_ms": (0, 5),
    "timeout_ms": (0, 1000),
    "num_partitions": (-1, 1, 2),
    "replication_factor": (-1, 1),
}
_INTERESTING = (-1, 0, 1, 2, 127, 128, 255, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFF_FFFF, -0x8000_0000, 0x4000_0000)


def messages(suffix: str) -> dict[int, type[Message]]:
    """Return the declared requests or responses, by API key."""
    found = {}
    for info in pkgutil.iter_modules(ottla.wire.messages.__path__):
        module = importlib.import_module(f"{ottla.wire.messages.__name__}.{info.name}")
        for value in vars(module).values():
            if (
                isinstance(value, type)
                and issubclass(value, Message)
                and hasattr(value, "API_KEY")
                and value.__name__.endswith(suffix)
            ):
                found[value.API_KEY] = value
    return dict(sorted(found.items()))


class Requests:
    """Generator of requests, for existing and unknown topics."""

    def __init__(self, source: Random, topics: Sequence[tuple[str, bytes]]) -> None:
        self._random = source
        self._topics = topics

    def request(self, cls: type[Message], version: int, correlation_id: int) -> bytes:
        """Return a request without its frame size."""
        body = encode(self._message(cls, version), version)
        head = _header.pack(cls.API_KEY, version, correlation_id, 4) + b"fuzz"
        return head + (b"\0" if version >= cls.FLEXIBLE_FROM else b"") + body

    def _message(self, cls: type[Message], version: int) -> Message:
        return cls(**{field.name: self._field(field, version) for field in cls.FIELDS if field.in_version(version)})

    def _field(self, field: Field, version: int) -> Any:
        source = self._random
        if field.nullable_in(version) and source.random() < 0.2:
            return None
        if field.type == "struct":
            return self._message(field.item, version)
        if field.type == "array":
            count = source.choice((0, 1, 1, 1, 2, 3))
            if isinstance(field.item, str):
                return [self._value(field.name, field.item) for _ in range(count)]
            return [self._message(field.item, version) for _ in range(count)]
        return self._value(field.name, field.type)

    def _value(self, name: str, type_name: str) -> Any:
        source = self._random
        if type_name in _NUMBERS:
            limit = 1 << (_NUMBERS[type_name] - 1)
            return source.choice(_USUAL.get(name, (0, 0, 0, 1, -1, 100, limit - 1, -limit, source.randrange(limit))))
        if type_name == "boolean":
            return source.random() < 0.5
        if type_name == "f64":
            return source.random()
        if type_name == "uuid":
            return source.choice([*(topic_id for _, topic_id in self._topics), bytes(16), source.randbytes(16)])
        if type_name == "string":
            return source.choice([*(topic for topic, _ in self._topics), "", "..", "a/b", "x" * 300, "é\0", "new"])
        return self.batches() if type_name == "batches" else source.randbytes(source.choice((0, 1, 20)))

    def batches(self) -> bytes:
        """Return one batch, or several; in most cases mutated, with a valid checksum."""
        source = self._random
        count = source.randint(1, 5)
        batch = build_batch(
            [
                Record(timestamp=source.choice((-1, 5)), value=source.randbytes(20), headers=(("h", b"v"),))
                for _ in range(count)
            ],
            codec=source.choice((0, 0, 1, 2, 3, 4)),
            producer_id=source.choice((-1, -1, 7)),
            producer_epoch=source.choice((-1, 0)),
            base_sequence=source.choice((-1, 0, 3)),
        )
        if source.random() < 0.6:
            position = source.choice((source.randrange(17, RECORDS_AT), source.randrange(RECORDS_AT, len(batch))))
            batch[position] = source.choice((0, 1, 127, 128, 255, batch[position] ^ 1 << source.randrange(8)))
            write_checksum(batch)
        return bytes(batch) * source.choice((1, 1, 1, 1, 2))


def mutate(request: bytes, source: Random) -> bytes:
    """Return a frame of the request, in most cases mutated. Its size is mostly correct, so that the content is
    parsed."""
    data = bytearray(request)
    for _ in range(source.choice((0, 1, 1, 1, 2, 4))):
        source.choice(_MUTATIONS)(data, source)
    size = len(data)
    if source.random() < 0.1:
        size = source.choice((*_INTERESTING, size + 1, size - 1, size // 2))
    return _i32.pack(size) + bytes(data)


def _position(data: bytearray, source: Random) -> int:
    """Return a random position, mostly after the header: a mutated header is just another request."""
    first = 14 if len(data) > 14 and source.random() < 0.85 else 0
    return source.randrange(first, len(data)) if len(data) > first else 0


def _flip(data: bytearray, source: Random) -> None:
    if data:
        data[_position(data, source)] ^= 1 << source.randrange(8)


def _set(data: bytearray, source: Random) -> None:
    if data:
        data[_position(data, source)] = source.choice((0, 1, 0x7F, 0x80, 0xFF))


def _number(data: bytearray, source: Random) -> None:
    if len(data) >= 4:
        position = min(_position(data, source), len(data) - 4)
        _i32.pack_into(data, position, _signed(source.choice(_INTERESTING)))


def _signed(number: int) -> int:
    return number if number < 1 << 31 else number - (1 << 32)


def _varint(data: bytearray, source: Random) -> None:
    position = _position(data, source)
    data[position : position + 1] = source.choice(
        (b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x7f", b"\x80\x80\x80\x80\x80\x80", b"\xff" * 12)
    )


def _cut(data: bytearray, source: Random) -> None:
    position = _position(data, source)
    del data[position : position + source.choice((1, 2, 8, 1000))]


def _insert(data: bytearray, source: Random) -> None:
    position = _position(data, source)
    data[position:position] = source.randbytes(source.choice((1, 4, 30)))


def _double(data: bytearray, source: Random) -> None:
    position = _position(data, source)
    data[position:position] = data[position : position + source.randint(1, 40)]


def _end(data: bytearray, source: Random) -> None:
    del data[_position(data, source) :]


_Mutation = Callable[[bytearray, Random], None]
_MUTATIONS: tuple[_Mutation, ...] = (_flip, _flip, _set, _set, _number, _number, _varint, _cut, _insert, _double, _end)
