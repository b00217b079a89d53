"""Figures of a measurement: rates, and latencies by their percentiles."""

import math
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from ottla.cli.output import print_json

PERCENTILES = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p99_9": 99.9}
MEGABYTE = 1 << 20

Records = Annotated[int, typer.Option("--records", "-n", min=1, metavar="N", help="How many records.")]
Size = Annotated[int, typer.Option("--size", "-s", min=0, metavar="BYTES", help="Bytes of each value.")]


def latencies(seconds: Sequence[float]) -> dict[str, float]:
    """Milliseconds: average, percentiles (the least value that so many do not exceed), and the greatest."""
    ordered = sorted(seconds)
    if not ordered:
        return {}
    found = {"average": sum(ordered) / len(ordered)}
    found |= {name: ordered[max(0, math.ceil(len(ordered) * share / 100) - 1)] for name, share in PERCENTILES.items()}
    return {name: round(value * 1000, 3) for name, value in (found | {"max": ordered[-1]}).items()}


def rates(records: int, size: int, seconds: float) -> dict[str, Any]:
    """`mb_per_second` counts 1,048,576 bytes of keys and values as one."""
    seconds = max(seconds, 1e-9)
    return {"records": records, "bytes": size, "seconds": round(seconds, 3), "records_per_second": round(records / seconds, 1),
            "mb_per_second": round(size / seconds / MEGABYTE, 3)}  # fmt: skip


def show(document: dict[str, Any], *, is_json: bool) -> None:
    if is_json:
        print_json(document)
        return
    if "records_per_second" in document:
        print(f"{document['records']:,} records, {document['bytes'] / MEGABYTE:,.1f} MB in {document['seconds']:,.2f} s: "
              f"{document['records_per_second']:,.0f} records/s, {document['mb_per_second']:,.2f} MB/s")  # fmt: skip
    if document.get("latency_ms"):
        told = ", ".join(f"{name.replace('_', '.')} {value:,.2f}" for name, value in document["latency_ms"].items())
        print(f"latency in ms: {told}")
