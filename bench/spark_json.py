"""Decoding JSON values to columns of every type, per document, beside the nearest type that Arrow parses itself.

The same documents are decoded both ways, without Spark and without a broker, in CPU time.
"""

import base64
import json
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from bench.report import Goal, Report, RunSize, ratio

DOCUMENTS = 20_000
ROUNDS = 5
RATIO_MAX = 2.0
WIDE = (
    "id bigint, name string, price double, ok boolean, tags array<string>, place struct<city:string,zip:int>, "
    "a int, b bigint, c string, d string"
)


class JsonType(NamedTuple):
    name: str
    nearest: str
    value: Callable[[int], Any]


TYPES = (
    JsonType("decimal(12,2)", "double", lambda index: index * 0.25),
    JsonType("decimal(38,10)", "string", lambda index: f"{index}.123"),
    JsonType("date", "string", lambda index: f"2024-05-{index % 28 + 1:02}"),
    JsonType("timestamp", "string", lambda index: f"2024-05-06T07:{index % 60:02}:09.123Z"),
    JsonType("timestamp, nanoseconds", "string", lambda index: f"2024-05-06T07:{index % 60:02}:09.123456789Z"),
    JsonType("timestamp_ntz", "string", lambda index: f"2024-05-06T07:{index % 60:02}:09.123"),
    JsonType("binary", "string", lambda index: base64.b64encode(b"%d" % index * 3).decode()),
    JsonType("array<decimal(6,2)>", "array<double>", lambda index: [1.25, 2.5]),
    JsonType("struct<x:date>", "struct<x:string>", lambda index: {"x": "2024-05-06"}),
    JsonType("map<string,int>", "struct<a:int,b:int>", lambda index: {"a": index, "b": 2}),
    JsonType("map<string,date>", "struct<a:string>", lambda index: {"a": "2024-05-06"}),
    JsonType("array<map<string,int>>", "array<struct<a:int,b:int>>", lambda index: [{"a": index, "b": 2}]),
)


def wide_document(index: int, value: Any) -> bytes:
    """Return a document with ten fields, and the measured one."""
    fields = {
        "id": index, "name": f"name {index}", "price": index * 1.5, "ok": index % 2 == 0, "tags": ["x", f"y{index}"],
        "place": {"city": "Ulm", "zip": index}, "a": index, "b": index * 7, "c": "ccccccc", "d": "ddd",
    }  # fmt: skip
    return json.dumps(fields | {"z": value}).encode()


def seconds_to_decode(codecs: Sequence[Any], column: Any) -> list[float]:
    """Return the median CPU time of each codec, in alternating rounds after a warm-up."""
    rounds: list[list[float]] = [[] for _ in codecs]
    for number in range(ROUNDS + 1):
        for codec, found in zip(codecs, rounds, strict=True):
            started = time.process_time()
            errors = codec.decode(column).errors
            if errors:
                raise RuntimeError(f"a document is not decoded: {next(iter(errors.values()))}")
            if number:
                found.append(time.process_time() - started)
    return [statistics.median(found) for found in rounds]


def run(run_size: RunSize, log: Callable[[str], None]) -> Report:
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_type

    from ottla.spark.values_ddl import parse_ddl
    from ottla.spark.values_json import JsonCodec

    measurements, rows, goals = {}, [], []
    for each in TYPES:
        column = pa.array([wide_document(index, each.value(index)) for index in range(DOCUMENTS)], pa.binary())
        codecs = []
        for type_name in (each.nearest, each.name.split(", ")[0]):
            data_type = parse_ddl(f"{WIDE}, z {type_name}", option="valueSchema")
            codecs.append(JsonCodec(to_arrow_type(data_type, timezone="UTC")))
        nearest, own = (seconds / DOCUMENTS * 1e6 for seconds in seconds_to_decode(codecs, column))
        log(f"{each.name}: {own:.2f} µs per document, as {each.nearest} {nearest:.2f} µs")
        measurements[each.name] = {"microseconds": own, "nearest_microseconds": nearest}
        rows.append([each.name, each.nearest, f"{nearest:.2f} µs", f"{own:.2f} µs", ratio(own, nearest)])
        goals.append(Goal(f"JSON, {each.name} / {each.nearest}", own / nearest, RATIO_MAX))
    note = (
        f"Documents with eleven fields, {DOCUMENTS:,} at a time, CPU time per document, medians of {ROUNDS}, "
        "alternating. Arrow's parser reads the nearest type itself."
    )
    head = ("type", "nearest type", "as the nearest", "as the type", "ratio")
    return Report("JSON values in Spark", head, rows, note, measurements, goals=goals)
