"""Compiler of message encoders: generates the Python source for one version and compiles it.

The generated code collects chunks of bytes. Consecutive fields of fixed size become one `struct` call, together with
the length of the string or array after them; loops over structs are inlined to save a call per item.
"""

import struct
from collections.abc import Callable
from typing import Any

from ottla.wire.fields import FIXED, Field
from ottla.wire.schema import SLICE_ITEMS, Message, SlicedWork, default_value
from ottla.wire.varint import ONE_BYTE, unsigned_varint

_STRING_MAX = 0x7FFF
_SMALL_MAX = 9
_NULL_STRUCT, _NULL_TAGGED_STRUCT, _PRESENT_STRUCT = b"\xff", b"\x00", b"\x01"
_NULL_ARRAY = b"\xff\xff\xff\xff"


def compile_encoder(cls: type[Message], version: int, *, flexible: bool) -> Callable[[Any], bytes]:
    """Return the function that encodes an instance."""
    compiled: Callable[[Any], bytes] = _compiled(EncoderSource(cls, version, flexible))
    return compiled


def compile_sliced_encoder(cls: type[Message], version: int, *, flexible: bool) -> Callable[[Any], SlicedWork[bytes]]:
    """Like `compile_encoder`, as a generator that yields after `SLICE_ITEMS` items, for large responses."""
    compiled: Callable[[Any], SlicedWork[bytes]] = _compiled(EncoderSource(cls, version, flexible, sliced=True))
    return compiled


def _compiled(source: "EncoderSource") -> Any:
    env = source.env
    exec(compile(source.text(), f"<encoder of {source.cls.__name__} version {source.version}>", "exec"), env)
    return env["encode"]


class EncoderSource:
    """The generated lines of an encoder, and the names that they use."""

    def __init__(self, cls: type[Message], version: int, flexible: bool, *, sliced: bool = False) -> None:
        self.cls = cls
        self.version = version
        self.flexible = flexible
        self.sliced = sliced
        self.lines: list[str] = []
        self.run: list[tuple[str, str]] = []  # struct codes and expressions to pack together
        self.names = 0
        title = f"{cls.__name__} version {version}"

        def absent(name: str) -> ValueError:
            return ValueError(f"{title} has no field {name}, and it is not ignorable")

        def misfit(error: Exception) -> ValueError:
            return ValueError(f"{title}: a value does not fit its field: {error}")

        def too_long(name: str) -> ValueError:
            return ValueError(f"{title}: {name} is longer than {_STRING_MAX} bytes")

        def odd_uuid(name: str) -> ValueError:
            return ValueError(f"{title}: {name} is not 16 bytes")

        self.env: dict[str, Any] = {
            "absent": absent,
            "misfit": misfit,
            "too_long": too_long,
            "odd_uuid": odd_uuid,
            "join": b"".join,
            "one": ONE_BYTE,
            "uv": unsigned_varint,
            "errors": (struct.error, AttributeError, TypeError, OverflowError),
            "pack": struct.pack,
        }

    def text(self) -> str:
        self.struct_lines(self.cls, "o", "a", 2)
        head = [
            "def encode(o):",
            "    c = []",
            "    a = c.append",
            *(["    slice = 0", "    yield"] if self.sliced else []),
            "    try:",
        ]
        tail = ["    except errors as error: raise misfit(error) from error", "    return join(c)", ""]
        return "\n".join([*head, *self.lines, "        pass", *tail])

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def name(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    def packer(self, codes: str) -> str:
        name = "pack_" + codes.replace("?", "z")
        self.env.setdefault(name, struct.Struct(">" + codes).pack)
        return name

    def constant(self, value: Any) -> str:
        """Return an expression for a default value: a literal if possible."""
        if value is None or isinstance(value, bool | int | float | str | bytes):
            return repr(value)
        name = self.name("default")
        self.env[name] = value
        return name

    def flush(self, out: str, depth: int, *, varint: str = "") -> None:
        """Pack the pending run; `varint` names a number after it, which nearly always takes one byte."""
        codes = "".join([code for code, _ in self.run])
        values = ", ".join([value for _, value in self.run])
        self.run = []
        if varint and not codes:
            self.line(depth, f"{out}(one[{varint}] if {varint} < 128 else uv({varint}))")
        elif varint:
            self.line(depth, f"if {varint} < 128: {out}({self.packer(codes + 'B')}({values}, {varint}))")
            self.line(depth, f"else: {out}({self.packer(codes)}({values})); {out}(uv({varint}))")
        elif codes:
            self.line(depth, f"{out}({self.packer(codes)}({values}))")

    def struct_lines(self, cls: type[Message], var: str, out: str, depth: int) -> None:
        """Generate lines that append the struct in the variable `var` to the chunks of `out`."""
        tagged = []
        for field in cls.FIELDS:
            if not field.in_version(self.version):
                if not field.ignorable:
                    self.line(depth, f"if {self.differs(field, f'{var}.{field.name}')}: raise absent({field.name!r})")
            elif self.flexible and field.tagged_in(self.version):
                tagged.append(field)
            else:
                self.value_lines(field, f"{var}.{field.name}", out, depth)
        if self.flexible and tagged:
            self.flush(out, depth)
            self.tagged_lines(sorted(tagged, key=lambda field: field.tag), var, out, depth)
        elif self.flexible:
            self.run.append(("B", "0"))
        self.flush(out, depth)

    def differs(self, field: Field, value: str) -> str:
        """Return an expression that is true if a value is not the default."""
        if field.default is None:
            return f"{value} is not None"
        if field.type == "array":
            return f"{value} is None or len({value})"
        if field.type == "struct":
            default = self.constant(default_value(field))
            return f"{value} is not {default} and {value} != {default}"
        return f"{value} != {self.constant(field.default)}"

    def tagged_lines(self, fields: list[Field], var: str, out: str, depth: int) -> None:
        """Generate lines for tagged fields, which are written with tag and size if they differ from their defaults."""
        tags, chunks, append, size = self.name("tags"), self.name("c"), self.name("a"), self.name("s")
        self.line(depth, f"{tags} = []")
        for field in fields:
            value = f"{var}.{field.name}"
            self.line(depth, f"if {self.differs(field, value)}:")
            self.line(depth + 1, f"{chunks} = []; {append} = {chunks}.append")
            if field.type == "struct" and field.nullable_in(self.version):
                self.inner_struct_lines(field, value, append, depth + 1, null=_NULL_TAGGED_STRUCT)
            else:
                self.value_lines(field, value, append, depth + 1)
            self.flush(append, depth + 1)
            self.line(
                depth + 1,
                f"{size} = join({chunks}); {tags}.append({unsigned_varint(field.tag)!r} + uv(len({size})) + {size})",
            )
        self.line(depth, f"if {tags}: {out}(uv(len({tags}))); {out}(join({tags}))")
        self.line(depth, f"else: {out}({ONE_BYTE[0]!r})")

    def value_lines(self, field: Field, value: str, out: str, depth: int) -> None:
        """Generate lines for one field; a field of fixed size is added to the pending run."""
        nullable = field.nullable_in(self.version)
        if field.type in FIXED:
            if field.type == "uuid":
                self.line(
                    depth, f"if len({value}) != 16: raise odd_uuid({field.name!r})"
                )  # `struct` would truncate or pad it
            self.run.append((FIXED[field.type][0], value))
        elif field.type == "struct":
            self.inner_struct_lines(field, value, out, depth, null=_NULL_STRUCT if nullable else None)
        elif field.type == "array":
            self.array_lines(field, value, out, depth, nullable)
        else:
            self.bytes_lines(field.type, field.name, value, out, depth, nullable)

    def length(self, out: str, depth: int, code: str) -> None:
        """Append the pending run and the length `n`, as a number of this type or, in flexible versions, as a varint."""
        if self.flexible:
            self.flush(out, depth, varint="n")
        else:
            self.run.append((code, "n"))
            self.flush(out, depth)

    def bytes_lines(self, type_name: str, name: str, value: str, out: str, depth: int, nullable: bool) -> None:
        """Generate lines for a string, bytes or records: the length, then the bytes."""
        more, null = (" + 1", "0") if self.flexible else ("", "-1")
        self.line(depth, f"v = {value}")
        if nullable:
            self.line(depth, f"if v is None: v = b''; n = {null}")
            self.line(depth, "else:")
        inner = depth + nullable
        if type_name == "string":
            self.line(inner, f"v = v.encode(); n = len(v){more}")
            self.line(inner, f"if len(v) > {_STRING_MAX}: raise too_long({name!r})")
        else:
            self.line(inner, f"n = (v.nbytes if v.__class__ is memoryview else len(v)){more}")
        self.length(out, depth, "h" if type_name == "string" else "i")
        self.line(depth, f"{out}(v)")

    def inner_struct_lines(self, field: Field, value: str, out: str, depth: int, null: bytes | None) -> None:
        """Generate lines for a nested struct; a nullable one is preceded by a byte: `null`, or 1."""
        inner = self.name("o")
        self.flush(out, depth)
        self.line(depth, f"{inner} = {value}")
        if null is not None:
            self.line(depth, f"if {inner} is None: {out}({null!r})")
            self.line(depth, "else:")
            depth += 1
            self.line(depth, f"{out}({_PRESENT_STRUCT!r})")
        self.struct_lines(field.item, inner, out, depth)

    def array_lines(self, field: Field, value: str, out: str, depth: int, nullable: bool) -> None:
        """Generate lines for an array: the count, then the items."""
        self.line(depth, f"v = {value}")
        if isinstance(field.item, str) and field.item in FIXED:
            self.flush(out, depth)
            self.fixed_array_lines(field, out, depth, nullable)
            return
        more, null = (" + 1", "0") if self.flexible else ("", "-1")
        if nullable:
            self.line(depth, f"if v is None: v = (); n = {null}")
            self.line(depth, f"else: n = len(v){more}")
        else:
            self.line(depth, f"n = len(v){more}")
        self.length(out, depth, "i")
        item = self.name("o")
        self.line(depth, f"for {item} in v:")
        if isinstance(field.item, str):
            self.bytes_lines(field.item, field.name, item, out, depth + 1, nullable=False)
        else:
            before = len(self.lines)
            self.struct_lines(field.item, item, out, depth + 1)
            if len(self.lines) == before:
                self.line(depth + 1, "pass")
        if self.sliced:
            self.line(depth + 1, "slice += 1")
            self.line(depth + 1, f"if slice > {SLICE_ITEMS}: slice = 0; yield")

    def fixed_array_lines(self, field: Field, out: str, depth: int, nullable: bool) -> None:
        """Generate lines for an array of numbers: one `struct` call, a prepared one with the count if it is short."""
        code = FIXED[field.item][0]
        count, more = ("B", 1) if self.flexible else ("i", 0)
        small = f"small_{count}{code}".replace("?", "z")
        self.env.setdefault(small, [struct.Struct(f">{count}{code * n}").pack for n in range(_SMALL_MAX + 1)])
        if nullable:
            self.line(depth, f"if v is None: {out}({(ONE_BYTE[0] if self.flexible else _NULL_ARRAY)!r})")
            self.line(depth, "else:")
        depth += nullable
        self.line(depth, "n = len(v)")
        if field.item == "uuid":
            self.line(depth, f"if n and {{*map(len, v)}} != {{16}}: raise odd_uuid({field.name!r})")
        self.line(depth, f"if n <= {_SMALL_MAX}: {out}({small}[n](n + {more}, *v))")
        prefix = "uv(n + 1)" if self.flexible else "pack('>i', n)"
        codes = "'16s' * n" if field.item == "uuid" else f"f'{{n}}{code}'"
        self.line(depth, f"else: {out}({prefix}); {out}(pack('>' + {codes}, *v))")
