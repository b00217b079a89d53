"""Compiler of message decoders: generates the Python source for one version and compiles it.

Consecutive fields of fixed size are read with one `struct` call, together with the length after them. Nothing is
allocated for a count or length that the remaining bytes cannot hold. For large requests a decoder can also be compiled
as a generator that yields after `SLICE_ITEMS` items.
"""

import codecs
import struct
from collections.abc import Callable
from typing import Any

from ottla.base.ports import Buffer
from ottla.wire.errors import MalformedMessage
from ottla.wire.fields import FIXED, Field
from ottla.wire.headers import TAGS_MAX
from ottla.wire.schema import SLICE_ITEMS, Message, SlicedWork, default_value
from ottla.wire.varint import read_unsigned_varint

_STRING_MAX = 0x7FFF
_SMALL_MAX = 9
ITEMS_MAX = 100_000
"""Upper limit of the items of one array, which become objects many times larger than their bytes."""
SLICED_ITEMS_MAX = 50_000
"""Upper limit of all array items of a message that is decoded in slices: they are processed on the event loop."""


def compile_decoder(cls: type[Message], version: int, *, flexible: bool) -> Callable[[Buffer, int], tuple[Any, int]]:
    """Return the function that decodes an instance at a position of a buffer, and returns the position after it."""
    compiled: Callable[[Buffer, int], tuple[Any, int]] = _compiled(DecoderSource(cls, version, flexible))
    return compiled


def compile_sliced_decoder(
    cls: type[Message], version: int, *, flexible: bool
) -> Callable[[Buffer, int], SlicedWork[tuple[Any, int]]]:
    """Like `compile_decoder`, as a generator that returns the result."""
    compiled: Callable[[Buffer, int], SlicedWork[tuple[Any, int]]] = _compiled(
        DecoderSource(cls, version, flexible, sliced=True)
    )
    return compiled


def _compiled(source: "DecoderSource") -> Any:
    env = source.env
    exec(compile(source.text(), f"<decoder of {source.cls.__name__} version {source.version}>", "exec"), env)
    return env["decode"]


def _replace(error: UnicodeError) -> tuple[str, int]:
    """Replace invalid UTF-8 as Kafka does. An encoded surrogate is one invalid character in Java, but three in
    Python."""
    assert isinstance(error, UnicodeDecodeError)
    data, start, end = error.object, error.start, error.end
    if data[start] == 0xED and data[start + 1 : start + 2] >= b"\xa0" and data[start + 1] <= 0xBF:
        end = start + (3 if b"\x80" <= data[start + 2 : start + 3] <= b"\xbf" else 2)
    return "\ufffd", end


codecs.register_error("ottla.replace", _replace)


def _int32(value: int) -> int:
    """Wrap to 32 bits, as the peer's arithmetic does: lengths of 2**31 and more are negative."""
    return (value + 0x8000_0000 & 0xFFFF_FFFF) - 0x8000_0000


def _long_length(buffer: Buffer, position: int) -> tuple[int, int]:
    """Read a compact length of more than one byte and subtract one; the encoding reserves 0 for null."""
    value, position = read_unsigned_varint(buffer, position)
    return _int32(value - 1), position


def _long_string_length(buffer: Buffer, position: int) -> tuple[int, int]:
    length, position = _long_length(buffer, position)
    if length > _STRING_MAX:
        raise MalformedMessage(f"string of {length} bytes; the limit is {_STRING_MAX}")
    return length, position


def _long_number(buffer: Buffer, position: int) -> tuple[int, int]:
    """Read a count, tag or size of more than one byte."""
    value, position = read_unsigned_varint(buffer, position)
    return _int32(value), position


def _skip(position: int, size: int, end: int) -> int:
    """Return the position after an unknown tagged field."""
    if size < 0 or size > end - position:
        raise MalformedMessage(f"tagged field of {size} bytes; {end - position} remain")
    return position + size


def _skip_tagged(buffer: Buffer, position: int) -> int:
    """Skip tagged fields that are all unknown; `position` is at their count."""
    end = len(buffer)
    count, position = _long_number(buffer, position)
    if count > TAGS_MAX:
        raise MalformedMessage(f"{count} tagged fields in one section; the limit is {TAGS_MAX}")
    for _ in range(count):  # each takes at least two bytes, so a huge count fails as soon as the bytes end
        _tag, position = read_unsigned_varint(buffer, position)
        size, position = _long_number(buffer, position)
        position = _skip(position, size, end)
    return position


class DecoderSource:
    """The generated lines of a decoder, and the names that they use."""

    def __init__(self, cls: type[Message], version: int, flexible: bool, *, sliced: bool = False) -> None:
        self.cls = cls
        self.version = version
        self.flexible = flexible
        self.sliced = sliced
        self.lines: list[str] = []
        self.run: list[tuple[str, str]] = []  # struct codes and targets to read together
        self.names = 0
        title = f"{cls.__name__} version {version}"

        def null(name: str) -> MalformedMessage:
            return MalformedMessage(f"{title}: {name} is null or has a negative length")

        def many(name: str) -> MalformedMessage:
            return MalformedMessage(f"{title}: too many {name}")

        def short(name: str) -> MalformedMessage:
            return MalformedMessage(f"{title}: {name} extends past the end of the message")

        def truncated() -> MalformedMessage:
            return MalformedMessage(f"{title}: the message is truncated")

        self.env: dict[str, Any] = {
            "null": null,
            "short": short,
            "many": many,
            "truncated": truncated,
            "new": object.__new__,
            "unpack": struct.unpack_from,
            "end_errors": (IndexError, struct.error),
            "long_length": _long_length,
            "long_string_length": _long_string_length,
            "long_number": _long_number,
            "skip": _skip,
            "skip_tagged": _skip_tagged,
        }

    def text(self) -> str:
        self.struct_lines(self.cls, "o", 2)
        head = [
            "def decode(b, p=0):",
            "    end = len(b)",
            *(["    slice = total = 0", "    yield"] if self.sliced else []),
            "    try:",
        ]
        tail = ["    except end_errors: raise truncated() from None", "    return o, p", ""]
        return "\n".join([*head, *self.lines, *tail])

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def name(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    def flush(self, depth: int) -> None:
        """Read the pending run."""
        codes = "".join([code for code, _ in self.run])
        targets = [target for _, target in self.run]
        self.run = []
        if codes == "B":
            self.line(depth, f"{targets[0]} = b[p]; p += 1")
        elif codes:
            name = "read_" + codes.replace("?", "z")
            size = struct.calcsize(">" + codes)
            self.env.setdefault(name, struct.Struct(">" + codes).unpack_from)
            self.line(depth, f"{', '.join(targets)}{',' if len(targets) == 1 else ''} = {name}(b, p); p += {size}")

    def struct_lines(self, cls: type[Message], var: str, depth: int) -> None:
        """Generate lines that create and fill an instance."""
        self.flush(depth)
        class_name = f"class_{cls.__name__}"
        self.env[class_name] = cls
        self.line(depth, f"{var} = new({class_name})")
        tagged = []
        for field in cls.FIELDS:
            target = f"{var}.{field.name}"
            if not field.in_version(self.version):
                self.default_line(field, target, depth)
            elif self.flexible and field.tagged_in(self.version):
                self.default_line(field, target, depth)
                tagged.append(field)
            else:
                self.value_lines(field, target, depth)
        if self.flexible:
            self.run.append(("B", "k"))
            self.flush(depth)
            if tagged:
                self.tagged_lines(tagged, var, depth)
            else:
                self.line(depth, "if k: p = skip_tagged(b, p - 1)")
        else:
            self.flush(depth)

    def default_line(self, field: Field, target: str, depth: int) -> None:
        """Generate the line that sets the default of a field that the version does not have."""
        value = default_value(field)
        if value is None or isinstance(value, bool | int | float | str | bytes | list):
            self.line(depth, f"{target} = {value!r}")
        else:
            name = self.name("default")
            self.env[name] = value
            self.line(depth, f"{target} = {name}")

    def tagged_lines(self, fields: list[Field], var: str, depth: int) -> None:
        """Generate lines for tagged fields in any order; unknown ones are skipped. Like Kafka, ignore the size of known
        ones."""
        size, tag = self.name("s"), self.name("t")
        self.line(depth, "if k:")
        self.line(depth + 1, "if k > 127: k, p = long_number(b, p - 1)")
        self.line(depth + 1, f"if k > {TAGS_MAX}: raise many('tagged fields')")
        self.line(depth + 1, "for _ in range(k):")
        for number in (tag, size):
            self.line(depth + 2, f"{number} = b[p]; p += 1")
            self.line(depth + 2, f"if {number} > 127: {number}, p = long_number(b, p - 1)")
        keyword = "if"
        for field in fields:
            self.line(depth + 2, f"{keyword} {tag} == {field.tag}:")
            if field.type == "struct" and field.nullable_in(self.version):
                self.tagged_struct_lines(field, f"{var}.{field.name}", depth + 3)
            else:
                self.value_lines(field, f"{var}.{field.name}", depth + 3)
            self.flush(depth + 3)
            keyword = "elif"
        self.line(depth + 2, f"else: p = skip(p, {size}, end)")

    def value_lines(self, field: Field, target: str, depth: int) -> None:
        """Generate lines for one field; a field of fixed size is added to the pending run."""
        nullable = field.nullable_in(self.version)
        if field.type in FIXED:
            self.run.append((FIXED[field.type][0], target))
        elif field.type == "struct":
            self.inner_struct_lines(field, target, depth, nullable)
        elif field.type == "array":
            self.array_lines(field, target, depth, nullable)
        else:
            self.bytes_lines(field.type, field.name, target, depth, nullable)

    def length(self, code: str, long_reader: str, depth: int) -> None:
        """Read the pending run and the length `n`, which is negative for null."""
        if self.flexible:
            self.run.append(("B", "n"))
            self.flush(depth)
            self.line(depth, "if n < 128: n -= 1")
            self.line(depth, f"else: n, p = {long_reader}(b, p - 1)")
        else:
            self.run.append((code, "n"))
            self.flush(depth)

    def null_lines(self, name: str, target: str, depth: int, nullable: bool) -> None:
        self.line(depth, f"if n < 0: {target} = None" if nullable else f"if n < 0: raise null({name!r})")
        self.line(depth, "else:")

    def bytes_lines(self, type_name: str, name: str, target: str, depth: int, nullable: bool) -> None:
        """Generate lines for a string, bytes or records: the length, then the bytes."""
        string = type_name == "string"
        self.length("h" if string else "i", "long_string_length" if string else "long_length", depth)
        self.null_lines(name, target, depth, nullable)
        self.line(depth + 1, "q = p + n")
        self.line(depth + 1, f"if q > end: raise short({name!r})")
        value = {
            "string": "str(b[p:q], 'utf-8', 'ottla.replace')",
            "binary": "bytes(b[p:q])",
            "batches": "memoryview(b)[p:q]",
        }[type_name]
        self.line(depth + 1, f"{target} = {value}; p = q")

    def inner_struct_lines(self, field: Field, target: str, depth: int, nullable: bool) -> None:
        """Generate lines for a nested struct; a nullable one is preceded by a byte, negative for null."""
        inner = self.name("o")
        if nullable:
            self.run.append(("b", "n"))
            self.flush(depth)
            self.line(depth, f"if n < 0: {target} = None")
            self.line(depth, "else:")
        self.struct_lines(field.item, inner, depth + nullable)
        self.line(depth + nullable, f"{target} = {inner}")

    def tagged_struct_lines(self, field: Field, target: str, depth: int) -> None:
        """Generate lines for a nullable struct in a tagged field, which is preceded by a varint, 0 for null."""
        self.line(depth, "n = b[p]; p += 1")
        self.line(depth, "if n > 127: n, p = long_number(b, p - 1)")
        self.line(depth, f"if n <= 0: {target} = None")
        self.line(depth, "else:")
        inner = self.name("o")
        self.struct_lines(field.item, inner, depth + 1)
        self.line(depth + 1, f"{target} = {inner}")

    def array_lines(self, field: Field, target: str, depth: int, nullable: bool) -> None:
        """Generate lines for an array: the count, then the items. Each counts as one byte at least, to limit empty
        ones."""
        self.length("i", "long_length", depth)
        self.null_lines(field.name, target, depth, nullable)
        depth += 1
        fixed = isinstance(field.item, str) and field.item in FIXED
        size = FIXED[field.item][1] if fixed else max(1, self.smallest(field.item))
        self.line(depth, f"if n{f' * {size}' if size > 1 else ''} > end - p: raise short({field.name!r})")
        if self.sliced:
            self.line(depth, "total += n")
            self.line(depth, f"if total > {SLICED_ITEMS_MAX}: raise many('items')")
        if fixed:
            self.fixed_array_lines(field.item, size, target, depth)
            return
        self.line(depth, f"if n > {ITEMS_MAX}: raise many({field.name!r})")
        items, add, item = self.name("l"), self.name("l"), self.name("o")
        self.line(depth, f"{target} = {items} = []")
        self.line(depth, f"{add} = {items}.append")
        self.line(depth, "for _ in range(n):")
        if isinstance(field.item, str):
            self.bytes_lines(field.item, field.name, item, depth + 1, nullable=False)
        else:
            self.struct_lines(field.item, item, depth + 1)
        self.line(depth + 1, f"{add}({item})")
        if self.sliced:
            self.line(depth + 1, "slice += 1")
            self.line(depth + 1, f"if slice > {SLICE_ITEMS}: slice = 0; yield")

    def fixed_array_lines(self, type_name: str, size: int, target: str, depth: int) -> None:
        """Generate lines for an array of numbers: one `struct` call, a prepared one if it is short."""
        code = FIXED[type_name][0]
        small = f"small_{code}".replace("?", "z")
        self.env.setdefault(small, [struct.Struct(">" + code * n).unpack_from for n in range(_SMALL_MAX + 1)])
        codes = "'16s' * n" if type_name == "uuid" else f"f'{{n}}{code}'"
        self.line(depth, f"{target} = list({small}[n](b, p) if n <= {_SMALL_MAX} else unpack('>' + {codes}, b, p))")
        self.line(depth, f"p += n * {size}" if size > 1 else "p += n")

    def smallest(self, item: str | type[Message]) -> int:
        """Return the minimum size of an item."""
        if isinstance(item, str):
            return 1 if self.flexible else 2 if item == "string" else 4
        total = 1 if self.flexible else 0
        for field in item.FIELDS:
            if not field.in_version(self.version) or (self.flexible and field.tagged_in(self.version)):
                continue
            if field.type in FIXED:
                total += FIXED[field.type][1]
            elif field.type == "struct":
                total += 1 if field.nullable_in(self.version) else self.smallest(field.item)
            else:
                total += 1 if self.flexible else 2 if field.type == "string" else 4
        return total
