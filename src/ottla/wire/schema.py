"""Message declarations. Each message is declared once; the codec of a version is compiled to Python on first use.

A declaration costs one class at import. `__init__` and `__eq__` are compiled for the first instance, a version's
encoder and decoder for the first message of that version.
"""

from collections.abc import Callable, Generator
from functools import cache
from typing import Any, ClassVar, NoReturn, TypeVar, cast, dataclass_transform

from ottla.base.ports import Buffer
from ottla.wire.fields import (
    VERSION_MAX,
    Field,
    array,
    batches,
    binary,
    boolean,
    f64,
    i8,
    i16,
    i32,
    i64,
    string,
    struct,
    u16,
    u32,
    uuid,
)

__all__ = [
    "NEVER",
    "Message",
    "array",
    "batches",
    "binary",
    "boolean",
    "decode",
    "decoder",
    "encode",
    "encoder",
    "f64",
    "i8",
    "i16",
    "i32",
    "i64",
    "part_encoder",
    "string",
    "struct",
    "u16",
    "u32",
    "uuid",
    "run_to_end",
]

SLICE_ITEMS = 400
"""Array items that a sliced codec processes per time slice."""
NEVER = VERSION_MAX
"""Value of FLEXIBLE_FROM if no version of the message has compact lengths and tagged fields."""

M = TypeVar("M", bound="Message")
T = TypeVar("T")
SlicedWork = Generator[None, None, T]
"""Work that yields after each time slice, and returns its result."""


def run_to_end(work: SlicedWork[T]) -> T:
    """Run sliced work without pauses and return its result."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


@dataclass_transform(
    field_specifiers=(boolean, i8, i16, u16, i32, u32, i64, f64, uuid, string, binary, batches, array, struct)
)
class MessageType(type):
    """Metaclass that turns the declared fields into slots and stores their declarations in `FIELDS`."""

    FIELDS: tuple[Field, ...]
    _encoders: dict[int, Callable[[Any], bytes]]
    _decoders: dict[int, Callable[[Buffer, int], tuple[Any, int]]]

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> "MessageType":
        fields = []
        for key, value in namespace.items():
            if value.__class__ is Field:
                value.name = key
                fields.append(value)
        for field in fields:
            del namespace[field.name]
        namespace["__slots__"] = tuple([field.name for field in fields])
        namespace["FIELDS"] = tuple(fields)
        namespace["_encoders"] = {}
        namespace["_decoders"] = {}
        return super().__new__(mcs, name, bases, namespace)


class Message(metaclass=MessageType):
    """A message, record or struct of the protocol: plain mutable values in slots, compared by value.

    Top-level messages have API_KEY, MIN_VERSION, MAX_VERSION and FLEXIBLE_FROM; structs inside them do not.
    """

    API_KEY: ClassVar[int]
    MIN_VERSION: ClassVar[int]
    MAX_VERSION: ClassVar[int]
    FLEXIBLE_FROM: ClassVar[int]

    # On first use both methods replace themselves, in the class of the instance, with compiled ones.
    __match_args__ = ()  # no positional patterns: there are too many fields

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        cls = _compile_methods(type(self))
        cls.__init__(self, *args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return cast(bool, _compile_methods(type(self)).__eq__(self, other))

    __hash__ = None  # type: ignore[assignment]  # mutable values are not hashable

    def __repr__(self) -> str:
        shown = ", ".join([f"{field.name}={getattr(self, field.name)!r}" for field in type(self).FIELDS])
        return f"{type(self).__name__}({shown})"


def _compile_methods(cls: type[Message]) -> Any:
    """Compile `__init__` and `__eq__` for the fields of a class."""
    parameters, stores = [], []
    env: dict[str, Any] = {"fresh": object()}
    for field in cls.FIELDS:
        name = field.name
        if field.type == "array" and field.default is not None:
            parameters.append(f"{name}=fresh")
            stores.append(f"self.{name} = [] if {name} is fresh else {name}")
            continue
        env[f"default_{name}"] = default_value(field)
        parameters.append(f"{name}=default_{name}")
        stores.append(f"self.{name} = {name}")
    lines = [f"def __init__({', '.join(['self', *parameters])}):", *[f"    {store}" for store in stores or ["pass"]]]
    mine = " and ".join([f"self.{field.name} == other.{field.name}" for field in cls.FIELDS]) or "True"
    lines += [
        "def __eq__(self, other):",
        "    if not isinstance(other, cls): return NotImplemented",
        f"    return {mine}",
    ]
    env["cls"] = cls
    exec("\n".join(lines), env)
    for method in ("__init__", "__eq__"):
        env[method].__qualname__ = f"{cls.__qualname__}.{method}"
        setattr(cls, method, env[method])
    cls.__hash__ = None  # type: ignore[assignment]
    return cls


def default_value(field: Field) -> Any:
    """Return the value of a field that was not set; for a struct it is shared and read-only."""
    if field.type == "struct" and field.default is not None:
        return shared_default(field.item)
    if field.type == "array" and field.default is not None:
        return []
    return field.default


def shared_default(cls: type[M]) -> M:
    """Return the read-only struct of all defaults, shared by all messages.

    It saves memory: a Fetch response has three such structs per partition, nearly always unset.
    """
    default = cls.__dict__.get("_shared")
    if default is None:

        def reject(self: object, name: str, value: object) -> NoReturn:
            raise AttributeError(
                f"cannot set {name} of the shared default {cls.__name__}; assign a new instance instead"
            )

        default = cls()
        frozen = MessageType(cls.__name__, (cls,), {"__module__": cls.__module__, "__setattr__": reject})
        frozen.FIELDS = cls.FIELDS
        default.__class__ = frozen  # type: ignore[assignment]
        cls._shared = default  # type: ignore[attr-defined]
    return cast(M, default)


def encode(message: Message, version: int) -> bytes:
    """Encode a message. Raises ValueError if the version or a value cannot be expressed."""
    compiled = message.__class__._encoders.get(version)
    if compiled is None:
        compiled = encoder(message.__class__, version)
    return compiled(message)


def decode(cls: type[M], version: int, buffer: Buffer, position: int = 0) -> tuple[M, int]:
    """Decode the message at a position; also return the position after it. Raises MalformedMessage."""
    compiled = cls._decoders.get(version)
    if compiled is None:
        compiled = decoder(cls, version)
    return compiled(buffer, position)


def encoder(cls: type[M], version: int) -> Callable[[M], bytes]:
    """Return the compiled function that `encode` calls, for frequent callers."""
    compiled = cls._encoders.get(version)
    if compiled is None:
        from ottla.wire.encoding import compile_encoder  # imported on first use: tools that only read need no encoders

        compiled = cls._encoders[version] = compile_encoder(cls, version, flexible=_check(cls, version))
    return compiled


def decoder(cls: type[M], version: int) -> Callable[[Buffer, int], tuple[M, int]]:
    """Return the compiled function that `decode` calls; it takes a buffer and a position."""
    compiled = cls._decoders.get(version)
    if compiled is None:
        from ottla.wire.decoding import compile_decoder  # imported on first use

        compiled = cls._decoders[version] = compile_decoder(cls, version, flexible=_check(cls, version))
    return compiled


def encode_in_slices(message: Message, version: int) -> SlicedWork[bytes]:
    """Like `encode`, in time slices, for a large message."""
    return _sliced_encoder(message.__class__, version)(message)


def decode_in_slices(cls: type[M], version: int, buffer: Buffer, position: int = 0) -> SlicedWork[tuple[M, int]]:
    """Like `decode`, in time slices, for a large message. The total number of array items is limited."""
    return cast(SlicedWork[tuple[M, int]], _sliced_decoder(cls, version)(buffer, position))


@cache
def _sliced_encoder(cls: type[Message], version: int) -> Callable[[Any], SlicedWork[bytes]]:
    from ottla.wire.encoding import compile_sliced_encoder  # imported on first use

    return compile_sliced_encoder(cls, version, flexible=_check(cls, version))


@cache
def _sliced_decoder(cls: type[Message], version: int) -> Callable[[Buffer, int], SlicedWork[tuple[Any, int]]]:
    from ottla.wire.decoding import compile_sliced_decoder  # imported on first use

    return compile_sliced_decoder(cls, version, flexible=_check(cls, version))


def part_encoder(message: type[Message], part: type[M], version: int) -> Callable[[M], bytes]:
    """Return the encoder of a struct inside a message, for callers that cache encoded parts (topics of Metadata)."""
    flexible = _check(message, version)
    key = -2 - version if flexible else -40_000 - version  # distinct from the versions of a message
    compiled = part._encoders.get(key)
    if compiled is None:
        from ottla.wire.encoding import compile_encoder  # imported on first use

        compiled = part._encoders[key] = compile_encoder(part, version, flexible=flexible)
    return compiled


def _check(cls: type[Message], version: int) -> bool:
    """Return whether the version is flexible. Raises ValueError if the message has no such version."""
    if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
        versions = f"{cls.MIN_VERSION}-{cls.MAX_VERSION}"
        raise ValueError(f"unsupported version {version} of {cls.__name__}; supported versions are {versions}")
    return version >= cls.FLEXIBLE_FROM
