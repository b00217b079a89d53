"""JSON values: documents parsed all at once give what documents parsed one by one give, for every type."""

import base64
import json
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_type

from ottla.spark.json_tables import NotParsed, parse_documents
from ottla.spark.values_ddl import parse_ddl
from ottla.spark.values_json import JsonCodec

STAMP = "2024-05-06T07:08:09"
TYPES: dict[str, list[Any]] = {
    "boolean": [True, False],
    "tinyint": [1, -128],
    "smallint": [1, -32768],
    "int": [1, -(2**31)],
    "bigint": [1, 2**63 - 1],
    "float": [1.5, -2, 1e10],
    "double": [1.5, -2, 1e300],
    "string": ["a", "", 'q"\\{}[]:,', "\n\t", "Köln \u2028", "\\", '\\"'],
    "binary": [base64.b64encode(each).decode() for each in (b"", b"a", b"ab", b"abc", b"\xff" * 10)],
    "date": ["2024-05-06", "0001-01-01", "9999-12-31"],
    "timestamp": [STAMP, STAMP + "Z", STAMP + ".1+02:00", STAMP + ".123456-0330", "2024-05-06", "2024-05-06 07:08"],
    "timestamp_ntz": [STAMP, STAMP + ".123456"],
    "decimal(6,2)": [1, 1.25, "1.5", -0.005, 0.015, 9999.99, "12", 0.123456789],
    "decimal(38,10)": ["1234567890123456789012345678.0123456789", 5],
    "array<decimal(6,2)>": [[], [1.25], [1, None, 3]],
    "array<string>": [[], ["]", "[,"], [None]],
    "struct<x:date,y:timestamp,z:binary>": [{}, {"x": "2024-05-06", "y": STAMP, "z": "AA=="}, {"q": 1}],
    "map<string,int>": [{}, {"a": 1}, {"b": None, "a": -2, "": 3}],
    "map<string,string>": [{}, {"a:": '}",{', "{": "\\"}, {"ä": ""}],
    "map<string,decimal(6,2)>": [{"a": 1.255}, {"a": "7"}],
    "map<string,struct<p:double,q:timestamp>>": [{"a": {"p": 1.5}, "b": {}, "c": None}, {"a": {"q": STAMP + "Z"}}],
    "map<string,map<string,binary>>": [{"a": {}, "b": {"c": "AAAA"}}, {}, {"x": None}],
    "map<string,array<int>>": [{"a": [], "b": [1, 2]}, {"a": None}],
    "array<map<string,int>>": [[], [{}], [{"a": 1}, None, {"b": 2, "c": 3}]],
    "array<array<map<string,int>>>": [[], [[]], [[{"a": 1}], [], [{}, {}]]],
    "struct<m:map<string,int>,n:int>": [{}, {"m": {"a": 1}, "n": 2}, {"n": 1}, {"m": None}],
}
"""Values of every type that are parsed all at once."""


def arrow(ddl: str) -> Any:
    return to_arrow_type(parse_ddl(ddl, option="valueSchema"), timezone="UTC")


def written(value: Any, rng: random.Random) -> str:
    """Return JSON with spaces between the tokens and escapes in the values."""

    def space() -> str:
        return rng.choice(["", "", " ", "\n", "\t", " \r\n"])

    if isinstance(value, dict):
        fields = (f"{space()}{json.dumps(name, ensure_ascii=False)}{space()}:{written(each, rng)}"
                  for name, each in value.items())  # fmt: skip
        return f"{space()}{{{','.join(fields)}{space()}}}{space()}"
    if isinstance(value, list):
        return f"{space()}[{','.join(written(each, rng) for each in value)}{space()}]{space()}"
    return space() + json.dumps(value, ensure_ascii=rng.random() < 0.5) + space()


def documents(name: str, rng: random.Random, count: int = 200) -> list[bytes]:
    found = []
    for index in range(count):
        fields: list[tuple[str, Any]] = [("id", index), ("zz", {"v": {"v": [1, "]"]}}), ("s", 'a"b\\')]
        if rng.random() < 0.9:
            fields.append(("v", rng.choice([*TYPES[name], None])))
        rng.shuffle(fields)
        found.append(written(dict(fields), rng).strip().encode())
    return found


def one_by_one(codec: JsonCodec, column: Any) -> Any:
    found = codec.decode_each(column)
    assert found.errors == {}
    return found.column


@pytest.mark.parametrize("name", TYPES)
def test_every_type_is_parsed_all_at_once(name: str) -> None:
    """Before, one column of another type than numbers, text and booleans made reading eight times slower."""
    kind = arrow(f"id bigint, v {name}, s string")
    column = pa.array(documents(name, random.Random(name)), pa.binary())
    found, _ = parse_documents(column, kind)
    found.validate(full=True)
    assert found.type == kind
    assert found.to_pylist() == one_by_one(JsonCodec(kind), column).to_pylist()


def test_types_side_by_side() -> None:
    rng = random.Random(1)
    kind = arrow(", ".join(f"c{index} {name}" for index, name in enumerate(TYPES)))
    rows = [
        {f"c{index}": rng.choice([*values, None]) for index, values in enumerate(TYPES.values())} for _ in range(300)
    ]
    column = pa.array([written(row, rng).strip().encode() for row in rows], pa.binary())
    assert parse_documents(column, kind)[0].to_pylist() == one_by_one(JsonCodec(kind), column).to_pylist()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("decimal(6,2)", "12345.2"),
        ("decimal(6,2)", '"x"'),
        ("decimal(6,2)", "true"),
        ("date", '"2024-13-01"'),
        ("timestamp", '"yesterday"'),
        ("timestamp", '"2024-05-06T25:00:00Z"'),
        ("binary", '"AA=A"'),
        ("binary", '"A==="'),
        ("binary", '"AAA"'),
        ("binary", '"AA==AA=="'),
        ("binary", '"?AAA"'),
        ("map<string,int>", "[]"),
        ("map<string,int>", "5"),
        ("map<string,int>", '"{}"'),
        ("map<string,int>", '{"a":"x"}'),
        ("map<string,int>", '{"a":{}}'),
        ("array<map<string,int>>", '{"a":[]}'),
        ("array<map<string,int>>", "[[]]"),
        ("struct<m:map<string,int>>", "[]"),
    ],
)
def test_invalid_value_is_an_error_of_its_row_only(name: str, value: str) -> None:
    codec = JsonCodec(arrow(f"id bigint, v {name}"))
    column = [b'{"id":%d}' % index for index in range(100)]
    column[70] = b'{"id":70,"v":%s}' % value.encode()
    found = codec.decode(pa.array(column, pa.binary()))
    assert list(found.errors) == [70]
    assert found.column.to_pylist() == [None if index == 70 else {"id": index, "v": None} for index in range(100)]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("map<string,int>", '{"a":1,"b":2,"a":3}', [("a", 3), ("b", 2)]),
        ("map<string,int>", '{"\\u0061\\"":1}', [('a"', 1)]),
        ("decimal(38,2)", "12345678901234567890123456789012.125", Decimal("12345678901234567890123456789012.12")),
        ("decimal(20,2)", "12345678901234567.13", Decimal("12345678901234567.13")),
        ("timestamp_ntz", f'"{STAMP}.123456789"', "datetime.datetime(2024, 5, 6, 7, 8, 9, 123456)"),
        ("string", "1.50", "1.5"),
        ("date", '"20240506"', "datetime.date(2024, 5, 6)"),
    ],
)  # fmt: skip
def test_rare_forms(name: str, value: str, expected: Any) -> None:
    """All at once or alone, next to a row that is invalid."""
    codec = JsonCodec(arrow(f"v {name}"))
    for count in (1, 100):
        column = pa.array([b'{"v":%s}' % value.encode()] * count + [b"{"], pa.binary())
        found = codec.decode(column)
        assert [repr(row["v"]) for row in found.column.to_pylist()[:-1]] == [
            expected if str(expected).startswith("datetime") else repr(expected)
        ] * count


def test_more_than_one_document_is_not_parsed_as_a_row() -> None:
    with pytest.raises(NotParsed):
        parse_documents(pa.array([b'{"v":{}} {"v":{}}', b"{}"], pa.binary()), arrow("v map<string,int>"))
