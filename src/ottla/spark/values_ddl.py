"""Parser of Spark's DDL types ("id bigint, tags array<string>"), since tasks and the planner have no JVM available."""

import re
from typing import TYPE_CHECKING

from ottla.spark.options import OptionError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_TOKEN = re.compile(r"\s*(`(?:[^`]|``)*`|'[^']*'|[A-Za-z0-9_\-]+|[<>(),:])")
DEPTH_MAX = 64


def parse_ddl(text: str, *, option: str) -> "StructType":
    """Parse a list of columns. Raises OptionError with the option's name."""
    parser = _Parser(text, option)
    schema = parser.columns(end=None)
    if not schema.fields:
        raise parser.error("no columns")
    return schema


class _Parser:
    def __init__(self, text: str, option: str) -> None:
        self._option = option
        self._tokens: list[str] = []
        position = 0
        while text[position:].strip():
            found = _TOKEN.match(text, position)
            if found is None:
                raise self.error(f"{text[position:].strip()[:20]!r} is not valid here")
            self._tokens.append(found[1])
            position = found.end()
        self._at = 0

    def error(self, reason: str) -> OptionError:
        return OptionError(
            f"Option {self._option} is not a list of columns such as 'id bigint, name string': {reason}."
        )

    def _peek(self) -> str | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _next(self) -> str:
        token = self._peek()
        if token is None:
            raise self.error("unexpected end")
        self._at += 1
        return token

    def _expect(self, wanted: str) -> None:
        token = self._next()
        if token != wanted:
            raise self.error(f"expected {wanted!r}, got {token!r}")

    def columns(self, end: str | None, depth: int = 0) -> "StructType":
        from pyspark.sql.types import StructField, StructType

        fields = []
        while self._peek() not in (end, None):
            name = self._next()
            if name.startswith("`"):
                name = name[1:-1].replace("``", "`")
            if self._peek() == ":":
                self._next()
            kind = self._type(depth + 1)
            nullable = True
            while (word := (self._peek() or "").lower()) in ("not", "comment", "null"):
                self._next()
                if word == "not":
                    nullable = False
                elif word == "comment":
                    self._next()
            fields.append(StructField(name, kind, nullable))
            if self._peek() != ",":
                break
            self._next()
        if self._peek() != end:
            raise self.error(f"{self._peek()!r} is not expected after column {fields[-1].name if fields else '?'!r}")
        return StructType(fields)

    def _type(self, depth: int) -> "DataType":
        from pyspark.sql import types as t

        if depth > DEPTH_MAX:
            raise self.error(f"nested deeper than {DEPTH_MAX} types")
        name = self._next().lower()
        match name:
            case "struct":
                self._expect("<")
                created = self.columns(">", depth)
                self._expect(">")
                return created
            case "array":
                self._expect("<")
                element = self._type(depth + 1)
                self._expect(">")
                return t.ArrayType(element)
            case "map":
                self._expect("<")
                key = self._type(depth + 1)
                self._expect(",")
                value = self._type(depth + 1)
                self._expect(">")
                return t.MapType(key, value)
            case "decimal" | "dec" | "numeric":
                return t.DecimalType(*self._arguments((10, 0)))
        simple: dict[str, type[DataType]] = {
            "boolean": t.BooleanType, "tinyint": t.ByteType, "byte": t.ByteType, "smallint": t.ShortType,
            "short": t.ShortType,
            "int": t.IntegerType, "integer": t.IntegerType, "bigint": t.LongType, "long": t.LongType,
            "float": t.FloatType,
            "real": t.FloatType, "double": t.DoubleType, "string": t.StringType, "binary": t.BinaryType,
            "date": t.DateType,
            "timestamp": t.TimestampType, "timestamp_ltz": t.TimestampType, "timestamp_ntz": t.TimestampNTZType,
        }  # fmt: skip
        if name not in simple:
            raise self.error(f"unknown type {name!r}")
        return simple[name]()

    def _arguments(self, default: tuple[int, int]) -> tuple[int, int]:
        if self._peek() != "(":
            return default
        self._next()
        numbers = [self._next()]
        while self._peek() == ",":
            self._next()
            numbers.append(self._next())
        self._expect(")")
        if not all(number.isdigit() for number in numbers) or len(numbers) > 2:
            raise self.error("a decimal needs precision and scale")
        return int(numbers[0]), int(numbers[1]) if len(numbers) == 2 else 0
