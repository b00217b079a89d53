"""How many errors a response tells, for the metrics: found where the message declares them, and searched for nowhere else."""

from functools import cache
from typing import Any, NamedTuple

from ottla.wire.schema import Message

_DEPTH_MAX = 4


class Encoded(NamedTuple):
    """A response that its handler has encoded, and the errors in it."""

    body: bytes
    errors: int


def error_count(response: Message) -> int:
    return _count(response, *_places(type(response), 0))


def _count(message: Any, has_code: bool, nested: tuple[tuple[str, Any], ...]) -> int:
    found = 1 if has_code and message.error_code else 0
    for name, places in nested:
        value = getattr(message, name)
        for item in value if isinstance(value, list) else ():
            found += _count(item, *places)
    return found


@cache
def _places(cls: type[Message], depth: int) -> tuple[bool, tuple[tuple[str, Any], ...]]:
    """Whether a message has a code of its own, and its arrays whose items have some."""
    has_code = any(field.name == "error_code" for field in cls.FIELDS)
    nested = []
    for field in cls.FIELDS:
        if field.kind == "array" and not isinstance(field.item, str) and depth < _DEPTH_MAX:
            places = _places(field.item, depth + 1)
            if places != (False, ()):
                nested.append((field.name, places))
    return has_code, tuple(nested)
