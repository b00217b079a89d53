"""Count the errors in a response, for the metrics. Only fields that are declared as error codes are read."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple, cast

from ottla.wire.schema import SLICE_ITEMS, Message, SlicedWork

_DEPTH_MAX = 4


class Encoded(NamedTuple):
    """An encoded response, and the number of errors in it."""

    body: bytes
    errors: int


def error_count(response: Message) -> int:
    return cast("int", _counter(type(response))(response))


def error_count_in_slices(response: Message) -> SlicedWork[int]:
    """As `error_count`, for a large response."""
    return cast("SlicedWork[int]", _counter(type(response), in_slices=True)(response))


@cache
def _counter(cls: type[Message], *, in_slices: bool = False) -> Callable[[Message], object]:
    """Compile a counter: straight-line loops over the arrays that can have errors, as each response is counted."""
    env: dict[str, Any] = {}
    pause = ["    yield"] if in_slices else []
    exec(
        "\n".join(
            (
                "def count(at_0):",
                "    found = seen = 0",
                *_steps(cls, 0, in_slices=in_slices),
                *pause,
                "    return found",
            )
        ),
        env,
    )
    return cast("Callable[[Message], object]", env["count"])


def _steps(cls: type[Message], depth: int, *, in_slices: bool) -> Iterator[str]:
    """Return the source lines for one message class, whose variable is `at_` and its depth. There are none if it cannot
    have errors.
    """
    indent = "    " * (depth + 1)
    if any(field.name == "error_code" for field in cls.FIELDS):
        yield f"{indent}if at_{depth}.error_code: found += 1"
    for field in cls.FIELDS:
        if field.type == "array" and not isinstance(field.item, str) and depth < _DEPTH_MAX:
            inner = list(_steps(field.item, depth + 1, in_slices=in_slices))
            if inner:
                yield f"{indent}for at_{depth + 1} in at_{depth}.{field.name} or ():"
                yield from inner
                if in_slices:
                    yield f"{indent}    seen += 1"
                    yield f"{indent}    if seen % {SLICE_ITEMS} == 0: yield"
