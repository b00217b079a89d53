"""Field specifiers for message declarations: one function per wire type.

Versions are written as in Kafka's schemas: "3" is one version, "3-5" a range, "3+" means 3 and later. The declared
return type of a specifier is that of the field's value, so that mypy checks defaults against annotations; the actual
result is a `Field`, which the metaclass of `Message` collects.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.base.ports import Buffer

VERSION_MAX = 32767
"""Last version of an open range: versions are 16-bit numbers."""

Versions = tuple[int, int]
"""First and last version, both inclusive."""

NO_VERSIONS: Versions = (0, -1)

FIXED: dict[str, tuple[str, int]] = {
    "boolean": ("?", 1),
    "i8": ("b", 1),
    "i16": ("h", 2),
    "u16": ("H", 2),
    "i32": ("i", 4),
    "u32": ("I", 4),
    "i64": ("q", 8),
    "f64": ("d", 8),
    "uuid": ("16s", 16),
}
"""Types of fixed size: their `struct` code and size."""

T = TypeVar("T")


def parse_versions(text: str) -> Versions:
    """Parse "3", "3-5", "3+" or "none"."""
    if text == "none":
        return NO_VERSIONS
    if text.endswith("+"):
        return int(text[:-1]), VERSION_MAX
    first, _, last = text.partition("-")
    return int(first), int(last or first)


class Field:
    """One field of a message: its wire type, versions and default."""

    __slots__ = ("default", "ignorable", "item", "name", "nullable", "tag", "tagged", "type", "versions")

    def __init__(
        self,
        type_name: str,
        versions: str,
        default: object,
        nullable: str,
        tag: int,
        tagged: str,
        ignorable: bool,
        item: Any = None,
    ) -> None:
        self.name = ""  # set by the metaclass
        self.type = type_name
        self.versions = parse_versions(versions)
        self.default = default
        self.nullable = parse_versions(nullable)
        self.tag = tag
        self.tagged = (parse_versions(tagged) if tagged else self.versions) if tag >= 0 else NO_VERSIONS
        self.ignorable = ignorable
        self.item = item
        """The struct class of a struct; the struct class or the name of the primitive type of an array."""

    def in_version(self, version: int) -> bool:
        first, last = self.versions
        return first <= version <= last

    def nullable_in(self, version: int) -> bool:
        first, last = self.nullable
        return first <= version <= last

    def tagged_in(self, version: int) -> bool:
        first, last = self.tagged
        return first <= version <= last

    def __repr__(self) -> str:
        return f"Field({self.name}: {self.type} {self.versions})"


def boolean(
    versions: str = "0+", *, default: bool = False, tag: int = -1, tagged: str = "", ignorable: bool = False
) -> bool:
    return cast(bool, Field("boolean", versions, default, "none", tag, tagged, ignorable))


def i8(versions: str = "0+", *, default: int = 0, tag: int = -1, tagged: str = "", ignorable: bool = False) -> int:
    return cast(int, Field("i8", versions, default, "none", tag, tagged, ignorable))


def i16(versions: str = "0+", *, default: int = 0, tag: int = -1, tagged: str = "", ignorable: bool = False) -> int:
    return cast(int, Field("i16", versions, default, "none", tag, tagged, ignorable))


def u16(versions: str = "0+", *, default: int = 0, tag: int = -1, tagged: str = "", ignorable: bool = False) -> int:
    return cast(int, Field("u16", versions, default, "none", tag, tagged, ignorable))


def i32(versions: str = "0+", *, default: int = 0, tag: int = -1, tagged: str = "", ignorable: bool = False) -> int:
    return cast(int, Field("i32", versions, default, "none", tag, tagged, ignorable))


def u32(versions: str = "0+", *, default: int = 0, tag: int = -1, tagged: str = "", ignorable: bool = False) -> int:
    return cast(int, Field("u32", versions, default, "none", tag, tagged, ignorable))


def i64(versions: str = "0+", *, default: int = 0, tag: int = -1, tagged: str = "", ignorable: bool = False) -> int:
    return cast(int, Field("i64", versions, default, "none", tag, tagged, ignorable))


def f64(
    versions: str = "0+", *, default: float = 0.0, tag: int = -1, tagged: str = "", ignorable: bool = False
) -> float:
    return cast(float, Field("f64", versions, default, "none", tag, tagged, ignorable))


def uuid(
    versions: str = "0+", *, default: Uuid = ZERO_UUID, tag: int = -1, tagged: str = "", ignorable: bool = False
) -> Uuid:
    return cast(Uuid, Field("uuid", versions, default, "none", tag, tagged, ignorable))


def string(
    versions: str = "0+",
    *,
    default: str | None = "",
    nullable: str = "none",
    tag: int = -1,
    tagged: str = "",
    ignorable: bool = False,
) -> str:
    return cast(str, Field("string", versions, default, nullable, tag, tagged, ignorable))


def binary(
    versions: str = "0+",
    *,
    default: bytes | None = b"",
    nullable: str = "none",
    tag: int = -1,
    tagged: str = "",
    ignorable: bool = False,
) -> bytes:
    """Opaque bytes, copied from the buffer when decoded."""
    return cast(bytes, Field("binary", versions, default, nullable, tag, tagged, ignorable))


def batches(
    versions: str = "0+",
    *,
    default: None = None,
    nullable: str = "none",
    tag: int = -1,
    tagged: str = "",
    ignorable: bool = False,
) -> Buffer:
    """Record batches: decoded as a view of the buffer, encoded from any buffer."""
    return cast(Buffer, Field("batches", versions, default, nullable, tag, tagged, ignorable))


def array(
    item: Callable[..., T],
    versions: str = "0+",
    *,
    default: tuple[()] | None = (),
    nullable: str = "none",
    tag: int = -1,
    tagged: str = "",
    ignorable: bool = False,
) -> list[T]:
    """A list of structs, or of a primitive type given by its specifier; `default=()` means a new empty list."""
    item_type = item if isinstance(item, type) else item.__name__
    return cast(list[T], Field("array", versions, default, nullable, tag, tagged, ignorable, item_type))


def struct(
    item: type[T],
    versions: str = "0+",
    *,
    default: None = None,
    factory: type[T] | None = None,
    nullable: str = "none",
    tag: int = -1,
    tagged: str = "",
    ignorable: bool = False,
) -> T:
    """A nested struct; `factory=` the struct's class makes its default the struct of all defaults."""
    default_value = () if factory is not None else default
    return cast(T, Field("struct", versions, default_value, nullable, tag, tagged, ignorable, item))
