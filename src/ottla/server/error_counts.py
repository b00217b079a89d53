"""How many errors a response tells, for the metrics: found where the message declares them, and searched for nowhere else."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple, cast

from ottla.wire.schema import Message

_DEPTH_MAX = 4


class Encoded(NamedTuple):
    """A response that its handler has encoded, and the errors in it."""

    body: bytes
    errors: int


def error_count(response: Message) -> int:
    return _counter(type(response))(response)


@cache
def _counter(cls: type[Message]) -> Callable[[Message], int]:
    """Loops over the arrays that can tell an error, written out, as every answer is counted."""
    env: dict[str, Any] = {}
    exec("\n".join(("def count(at_0):", "    found = 0", *_steps(cls, 0), "    return found")), env)
    return cast("Callable[[Message], int]", env["count"])


def _steps(cls: type[Message], depth: int) -> Iterator[str]:
    """The lines that look into one message of a kind, which is called `at_` and its depth; none where it cannot tell errors."""
    indent = "    " * (depth + 1)
    if any(field.name == "error_code" for field in cls.FIELDS):
        yield f"{indent}if at_{depth}.error_code: found += 1"
    for field in cls.FIELDS:
        if field.kind == "array" and not isinstance(field.item, str) and depth < _DEPTH_MAX:
            inner = list(_steps(field.item, depth + 1))
            if inner:
                yield f"{indent}for at_{depth + 1} in at_{depth}.{field.name} or ():"
                yield from inner
