"""Records as lines and JSON, times and durations, and performance figures."""

import io
import json

import pytest
import typer

from ottla.cli.errors import CliError
from ottla.cli.options import parse_duration_ms, parse_time_ms
from ottla.cli.perf import latencies, rates
from ottla.cli.record_format import RecordFormat
from ottla.cli.records import (
    InputRecord,
    LineFormat,
    decode_headers,
    encode_headers,
    from_json,
    parse_separator,
    split_records,
    to_json,
)
from ottla.client.records import ConsumerRecord

NOW_MS = 1_800_000_000_000


def record(
    key: bytes | None, value: bytes | None, headers: tuple[tuple[str, bytes | None], ...] = ()
) -> ConsumerRecord:
    return ConsumerRecord("t", 1, 2, 3, 0, key, value, headers)


def test_record_as_json() -> None:
    assert json.loads(to_json(record(b"k", "ä".encode(), (("h", b"1"), ("h", None), ("b", b"\xff"))))) == {
        "topic": "t",
        "partition": 1,
        "offset": 2,
        "timestamp": 3,
        "timestamp_type": "create",
        "key": "k",
        "value": "ä",
        "headers": [{"key": "h", "value": "1"}, {"key": "h", "value": None}, {"key": "b", "value_base64": "/w=="}],
    }
    assert json.loads(to_json(record(b"\xff", None)))["key_base64"] == "/w=="


@pytest.mark.parametrize(
    "original", [record(b"k", b"v"), record(None, None), record(b"\xff\x00", b"\xfe", (("h", None), ("h", b"\xff")))]
)
def test_json_round_trip(original: ConsumerRecord) -> None:
    assert from_json(to_json(original), 1) == InputRecord(
        original.value, original.key, list(original.headers) or None, 3, 1
    )


def test_json_written_by_hand() -> None:
    assert from_json(
        b'{"value": {"a": [1, "\xc3\xa4"]}, "key": 7, "headers": {"x": "y", "z": null}}', 1
    ) == InputRecord('{"a":[1,"ä"]}'.encode(), b"7", [("x", b"y"), ("z", None)])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"x", "line 4 is not JSON"),
        (b"[1]", "line 4 is not an object"),
        (b"[" * 100_000, "line 4 is not JSON: it is nested too deeply"),
        (b'{"value": NaN}', "line 4 is not JSON: NaN is not a JSON number"),
        (
            b'{"value": 1, "timestamp": "now"}',
            'line 4: timestamp must be an integer from 0 to 9223372036854775807, not "no',
        ),
        (
            b'{"value": 1, "timestamp": -2}',
            "line 4: timestamp must be an integer from 0 to 9223372036854775807, not -2",
        ),
        (b'{"value": 1, "partition": true}', "line 4: partition must be an integer from 0 to 2147483647, not true"),
        (b'{"value": 1, "headers": 3}', "line 4: headers must be an object"),
        (b'{"value": 1, "headers": [{"key": "a", "val": 1}]}', "line 4: unknown field 'val'"),
        (b'{"value": 1, "headers": [{"key": "a"}]}', "line 4: the value is missing"),
        (b'{"value_base64": "!"}', 'line 4: value_base64 is not base64: "!"'),
        (b'{"value_base64": 5}', "line 4: value_base64 is not base64: 5"),
        (b'{"value_base64": "", "value": ""}', "line 4: value and value_base64 cannot be combined"),
        (b'{"value": "\\ud800"}', "line 4: value has half of a surrogate pair, which UTF-8 cannot encode"),
    ],
)
def test_invalid_json(line: bytes, message: str) -> None:
    with pytest.raises(CliError) as raised:
        from_json(line, 4)
    assert raised.value.message.startswith(message)


@pytest.mark.parametrize(
    ("line", "message", "advice"),
    [
        (b'{"val": "ok"}', "line 1: unknown field 'val'", "Did you mean 'value'?"),
        (b'{"value": 1, "zzz": 1}', "line 1: unknown field 'zzz'", "Known fields are topic, partition, offset, "),
        (b'{"key": "k"}', "line 1: the value is missing", 'Add "value"; for a tombstone, "value": null.'),
        (b"{}", "line 1: the value is missing", 'Add "value"; for a tombstone, "value": null.'),
    ],
)
def test_tombstone_in_json_needs_an_explicit_null(line: bytes, message: str, advice: str) -> None:
    with pytest.raises(CliError) as raised:
        from_json(line, 1)
    assert raised.value.message == message
    assert raised.value.advice.startswith(advice)
    assert from_json(b'{"key": "k", "value": null}', 1) == InputRecord(None, b"k")


def test_records_without_timestamp_can_be_copied() -> None:
    assert from_json(b'{"value": "v", "timestamp": -1}', 1) == InputRecord(b"v")


def test_line_format() -> None:
    both = [record(b"k", b"v", (("h", b"1"), ("i", None))), record(None, None)]
    assert LineFormat().write(both) == b"v\n\n"
    assert LineFormat(null=b"NULL", end=b"\0").write(both) == b"v\0NULL\0"
    parts = ("partition", "offset", "timestamp", "headers", "key", "value")
    assert LineFormat(parts, b"|", b"\n", b"-").write(both) == b"1|2|3|h=1,i=-|k|v\n1|2|3||-|-\n"


@pytest.mark.parametrize("piece", [1, 3, 100])
@pytest.mark.parametrize(("end", "data", "found"), [
    (b"\n", b"a\n\nb", [b"a", b"", b"b"]),
    (b"\n", b"a\n", [b"a"]),
    (b"\0", b"a\nb\0c", [b"a\nb", b"c"]),
    (b"||", b"a||b||", [b"a", b"b"]),
    (b"||", b"", []),
])  # fmt: skip
def test_split_records(
    end: bytes, data: bytes, found: list[bytes], piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result does not depend on the chunk size."""
    monkeypatch.setattr("ottla.cli.records.CHUNK_BYTES", piece)
    assert list(split_records(io.BytesIO(data), end)) == found


def test_separator_escapes() -> None:
    assert (parse_separator(r"\t"), parse_separator(r"\0"), parse_separator("::"), parse_separator(r"\r\n")) == (
        b"\t",
        b"\0",
        b"::",
        b"\r\n",
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("@12", 12),
        ("15m", NOW_MS - 900_000),
        ("PT1H", NOW_MS - 3_600_000),
        ("2026-01-31T12:00:00Z", 1_769_860_800_000),
        ("2026-01-31T12:00:00.250+01:00", 1_769_857_200_250),
    ],
)
def test_times(text: str, found: int) -> None:
    assert parse_time_ms(text, now_ms=NOW_MS) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("90s", 90_000),
        ("1h30m", 5_400_000),
        ("1.5h", 5_400_000),
        ("250ms", 250),
        ("P1DT0.5S", 86_400_500),
        ("2w", 1_209_600_000),
    ],
)
def test_durations(text: str, found: int) -> None:
    assert parse_duration_ms(text) == found


@pytest.mark.parametrize("text", ["", "m", "1", "P", "PT", "1y", "yesterday", "@x"])
def test_invalid_times_and_durations(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="is not a time"):
        parse_time_ms(text, now_ms=NOW_MS)
    with pytest.raises(typer.BadParameter, match="is not a duration"):
        parse_duration_ms(text)


def test_latencies_and_rates() -> None:
    thousand = [n / 1000 for n in range(1, 1001)]
    assert latencies(thousand) == {"average": 500.5, "p50": 500, "p95": 950, "p99": 990, "p99_9": 999, "max": 1000}
    assert latencies([0.001]) == dict.fromkeys(("average", "p50", "p95", "p99", "p99_9", "max"), 1.0)
    assert latencies([]) == {}
    assert rates(10, 1 << 20, 0.5) == {
        "records": 10,
        "bytes": 1 << 20,
        "seconds": 0.5,
        "records_per_second": 20.0,
        "mb_per_second": 2.0,
    }


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (r"%t %p %o %k %s\n", b"t 1 2 k v\n"),
        (
            r"%t [%p] at offset %o: key %k (%K): %s (%S) %T %h\r\n",
            b"t [1] at offset 2: key k (1): v (1) 3 a=1,b=NULL\r\n",
        ),
        (r"%R%s", b"\0\0\0\1v"),
        (r"%%s\t%s\0\x41\\\q", b"%s\tv\0A\\\\q"),
        ("ä%s", "äv".encode()),
    ],
)
def test_format(text: str, found: bytes) -> None:
    assert RecordFormat(text, b"NULL").write([record(b"k", b"v", (("a", b"1"), ("b", None)))]) == found


def test_format_of_null() -> None:
    assert RecordFormat("%k %K %s %S %R|", b"").write([record(None, None)] * 2) == b" -1  -1 \xff\xff\xff\xff|" * 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("%x", "'%x' is not a field of a format; the fields are %t topic"),
        ("%s %", "'%' is not a field of a format"),
        ("orders", "the format 'orders' has no field such as %s; to wait for more records, use --follow or -F"),
        ("", "the format '' has no field"),
    ],
)
def test_invalid_format(text: str, message: str) -> None:
    with pytest.raises(typer.BadParameter) as raised:
        RecordFormat(text, b"")
    assert raised.value.message.startswith(message)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"", []),
        (b"a=1", [("a", b"1")]),
        (b"a=1,a=,b=x=y,c=-", [("a", b"1"), ("a", b""), ("b", b"x=y"), ("c", None)]),
        (b"a=\xff", [("a", b"\xff")]),
    ],
)
def test_header_text(text: bytes, found: list[tuple[str, bytes | None]]) -> None:
    assert decode_headers(text, b"-", 1) == found
    assert encode_headers(found, b"-") == text


@pytest.mark.parametrize("text", [b"a", b"=1", b"a=1,", b"\xff=1"])
def test_invalid_header_text(text: bytes) -> None:
    with pytest.raises(CliError, match=r"line 4: header .* is not NAME=VALUE"):
        decode_headers(text, None, 4)
