"""`ottla produce`: send lines of files, of stdin or of the command line as records."""

import os
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Self

import typer

from ottla.cli.command import command
from ottla.cli.errors import CliError, require_topics, unknown_topic_error
from ottla.cli.options import Acks, Compression, Linger, Topic, drop_none, parse_pairs, parse_time_ms
from ottla.cli.output import ProgressBar, print_json, print_note
from ottla.cli.records import InputRecord, decode_headers, from_json, parse_separator, split_records
from ottla.cli.registry_values import RegistryEncoder, RegistryKeys, RegistryUrl, SchemaFile, new_encoder
from ottla.cli.session import Session
from ottla.cli.waits import OutageNotes

if TYPE_CHECKING:
    from ottla.client.producer import BlockingSendFuture, Producer
    from ottla.client.records import RecordMetadata

JSON_HELP = "Read JSON lines, as `ottla consume --json` writes them: objects with key, value, headers, timestamp."
PENDING_MAX = 10_000
"""Upper limit of unacknowledged records; beyond it, the oldest are waited for."""
PROGRESS_EVERY = 1_000

Files = Annotated[
    list[Path] | None, typer.Argument(metavar="FILE...", help="Files to read; - is stdin.", show_default="stdin")
]
Values = Annotated[
    list[str] | None,
    typer.Option("--value", "-v", metavar="TEXT", help="A value to send instead of reading any; repeatable."),
]
Key = Annotated[str | None, typer.Option("--key", "-k", metavar="TEXT", help="Key of records without one.")]
Keys = Annotated[bool, typer.Option("--keys", help="Lines hold a key, the separator and the value.")]
Headers = Annotated[
    bool, typer.Option("--headers", help="Lines begin with headers, NAME=VALUE,NAME=VALUE, and the separator.")
]
KeySeparator = Annotated[
    str, typer.Option("--key-separator", metavar="TEXT", help="Separator between headers, key and value.")
]
RecordSeparator = Annotated[str, typer.Option("--record-separator", metavar="TEXT", help="Terminator of a record.")]
Whole = Annotated[bool, typer.Option("--whole", help="Send each file as one record.")]
Null = Annotated[
    str | None, typer.Option("--null", metavar="TEXT", help="Text that stands for a null value (a tombstone) or key.")
]
HeaderPairs = Annotated[
    list[str] | None,
    typer.Option("--header", "-H", metavar="NAME=VALUE", help="A header of every record; repeatable."),
]
Timestamp = Annotated[
    str | None,
    typer.Option(
        "--timestamp",
        metavar="TIME",
        help="2026-01-31T12:00:00Z, @MILLISECONDS, or 15m for 15 minutes ago.",
        show_default="now",
    ),
]
Partition = Annotated[
    int | None,
    typer.Option("--partition", "-p", min=0, metavar="N", help="Target partition.", show_default="chosen by key"),
]
KeepPartitions = Annotated[
    bool, typer.Option("--keep-partitions", help="With --json: send records to the partitions they name.")
]
Report = Annotated[bool, typer.Option("--report", help="Print a JSON line for each acknowledged record.")]


def register(root: typer.Typer) -> None:
    command(root, "produce", json_help=JSON_HELP)(produce)


def produce(
    session: Session,
    topic: Topic,
    files: Files = None,
    value: Values = None,
    key: Key = None,
    keys: Keys = False,
    headers: Headers = False,
    key_separator: KeySeparator = "\\t",
    record_separator: RecordSeparator = "\\n",
    whole: Whole = False,
    null: Null = None,
    header: HeaderPairs = None,
    timestamp: Timestamp = None,
    partition: Partition = None,
    keep_partitions: KeepPartitions = False,
    compression: Compression = None,
    acks: Acks = None,
    linger: Linger = None,
    report: Report = False,
    registry: RegistryUrl = None,
    registry_keys: RegistryKeys = False,
    schema: SchemaFile = None,
) -> None:
    """Produce one record per line of the files or of stdin, or one per --value.

    --report prints a JSON line for each record: {"topic", "partition", "offset", "timestamp"}.
    """
    if value and files:
        raise typer.BadParameter("--value and files cannot be combined")
    defaults = _default_fields(key, header, timestamp, partition)
    parts = _parts_before_value(headers, keys, key_separator, is_json=session.is_json)
    encoder = new_encoder(registry, topic, schema, includes_keys=registry_keys, seconds=session.timeout_seconds)
    parser = _RecordParser(
        session.is_json,
        encoder.parts if encoder is not None else (),
        parts,
        parse_separator(key_separator),
        None if null is None else os.fsencode(null),
        keep_partitions,
    )
    raw = _read(value, files or [Path("-")], b"" if whole else parse_separator(record_separator))
    configs = drop_none({"compression.type": compression, "acks": acks, "linger.ms": linger})
    total = None if value or not files or Path("-") in files else sum(path.stat().st_size for path in files)
    with (
        _SendReport(topic, prints_each=report) as results,
        ProgressBar(topic, total, is_enabled=not sys.stdin.isatty() or total is not None) as bar,
        session.producer(configs) as producer,
    ):
        _RecordSender(session, producer, topic, defaults, encoder, bar, results).run(raw, parser)


def _parts_before_value(headers: bool, keys: bool, separator: str, *, is_json: bool) -> tuple[str, ...]:
    parts = tuple(part for part, is_given in (("headers", headers), ("key", keys)) if is_given)
    if parts and is_json:
        raise typer.BadParameter("--keys and --headers cannot be combined with --json, whose records name their fields")
    if parts and not separator:
        raise typer.BadParameter("--key-separator must not be empty")
    return parts


def _default_fields(
    key: str | None, header: list[str] | None, timestamp: str | None, partition: int | None
) -> InputRecord:
    """Return the fields of records that do not have their own."""
    return InputRecord(
        None,
        None if key is None else os.fsencode(key),
        [(name, content.encode()) for name, content in parse_pairs(header)] or None,
        None if timestamp is None else parse_time_ms(timestamp, now_ms=int(time.time() * 1000)),
        partition,
    )


class _SendReport:
    """Counts acknowledged records and prints the total at the end, also after an error; or prints each one."""

    def __init__(self, topic: str, *, prints_each: bool) -> None:
        self._topic, self._prints_each = topic, prints_each
        self._started_at = time.monotonic()
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def add(self, metadata: "RecordMetadata") -> None:
        self._count += 1
        if self._prints_each:
            print_json({name: getattr(metadata, name) for name in ("topic", "partition", "offset", "timestamp")})

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if not self._prints_each and (error is None or self._count):
            count, seconds = self._count, time.monotonic() - self._started_at
            print_note(f"{count:,} record{'s' if count != 1 else ''} to {self._topic} in {seconds:.1f} s")


class _RecordParser:
    """Parses the bytes of one record. `parts` are those before the value: headers, key."""

    def __init__(
        self,
        is_json: bool,
        json_parts: tuple[str, ...],
        parts: tuple[str, ...],
        separator: bytes,
        null: bytes | None,
        keeps_partitions: bool,
    ) -> None:
        self._is_json, self._json_parts, self._parts, self._separator = is_json, json_parts, parts, separator
        self._null, self._keeps_partitions = null, keeps_partitions

    def parse(self, raw: bytes, number: int) -> InputRecord:
        if self._is_json:
            record = from_json(raw, number, self._json_parts)
            return record if self._keeps_partitions else replace(record, partition=None)
        if not self._parts:
            return InputRecord(self._nullable(raw))
        *before, value = raw.split(self._separator, len(self._parts))
        if len(before) < len(self._parts):
            raise CliError(
                f"line {number} has no key separator {self._separator!r}", "Set another one with --key-separator."
            )
        found = dict(zip(self._parts, before, strict=True))
        headers = decode_headers(found["headers"], self._null, number) if "headers" in found else None
        key = found.get("key")
        return InputRecord(self._nullable(value), None if key is None else self._nullable(key), headers)

    def _nullable(self, content: bytes) -> bytes | None:
        return None if content == self._null else content


class _RecordSender:
    """Sends records and collects their results."""

    def __init__(
        self,
        session: Session,
        producer: "Producer",
        topic: str,
        defaults: InputRecord,
        encoder: "RegistryEncoder | None",
        bar: ProgressBar,
        results: _SendReport,
    ) -> None:
        self._session, self._producer, self._topic, self._defaults = session, producer, topic, defaults
        self._encoder, self._bar, self._results = encoder, bar, results
        self._pending: deque[BlockingSendFuture] = deque()
        self._partitions_max = 0
        OutageNotes(producer)

    def run(self, raw: Iterator[tuple[bytes, int]], parser: _RecordParser) -> None:
        """Send all records. After an error, those read before it are still sent."""
        from ottla.client.errors import ClientError, ClientTimeoutError

        try:
            try:
                self._send_all(raw, parser)
            except ClientTimeoutError:
                raise
            except ClientError:
                with suppress(ClientError):  # only the first error is reported
                    self._finish()
                raise
            except BaseException:
                self._finish()
                raise
            self._finish()
        except ClientTimeoutError:
            self._abort()
            raise

    def _send_all(self, raw: Iterator[tuple[bytes, int]], parser: _RecordParser) -> None:
        size = 0
        for number, (data, length) in enumerate(raw, start=1):
            self._send(parser.parse(data, number), number)
            size += length
            if number % PROGRESS_EVERY == 0:
                self._bar.update(size, f"{number:,} records")

    def _finish(self) -> None:
        self._producer.flush()
        self._collect_results(0)

    def _abort(self) -> None:
        """Close without waiting again: the timeout is over. Count the records that were acknowledged."""
        self._producer.close(timeout=0)
        for future in self._pending:
            metadata, _ = future.peek()
            if metadata is not None:
                self._results.add(metadata)

    def _send(self, record: InputRecord, number: int) -> None:
        from ottla.client.errors import UnknownTopicOrPartitionError

        defaults = self._defaults
        if record.key is None and defaults.key is not None:
            record = replace(record, key=defaults.key)
        if self._encoder is not None:
            record = replace(record, **self._encoder.encode(record, number))  # type: ignore[arg-type]
        partition = defaults.partition if record.partition is None else record.partition
        try:
            self._require_partition(partition or 0)
        except UnknownTopicOrPartitionError as error:
            with self._session.admin() as admin:
                raise unknown_topic_error(admin, self._topic) from error
        future = self._producer.send(
            self._topic,
            record.value,
            record.key,
            partition,
            defaults.timestamp if record.timestamp is None else record.timestamp,
            [*(record.headers or ()), *(defaults.headers or ())] or None,
        )
        self._pending.append(future)
        if len(self._pending) > PENDING_MAX:
            self._collect_results(PENDING_MAX // 2)

    def _require_partition(self, partition: int) -> None:
        """Fail at once if the topic does not have the partition: the producer would wait for it to be added."""
        if partition < self._partitions_max:
            return
        if self._partitions_max == 0:
            self._partitions_max = len(self._producer.partitions_for(self._topic))
        else:
            with self._session.admin() as admin:
                self._partitions_max = len(require_topics(admin, [self._topic])[self._topic].partitions)
        if partition >= self._partitions_max:
            raise CliError(
                f"{self._topic} has no partition {partition}, only 0 to {self._partitions_max - 1}",
                f"`ottla topic describe {self._topic}` shows its partitions.",
            )

    def _collect_results(self, remaining: int) -> None:
        """Wait for the results of all pending records but the newest `remaining`."""
        count = len(self._pending) - remaining
        for _ in range(count):
            self._results.add(self._pending.popleft().result())


def _read(values: list[str] | None, paths: list[Path], end: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield the values, or the records of the files, with the number of bytes that each takes there.

    Without `end`, each file is one record.
    """
    if values:
        yield from ((os.fsencode(text), len(text)) for text in values)
        return
    for path in paths:
        if path == Path("-"):
            yield from _split(sys.stdin.buffer, end)
        else:
            with path.open("rb") as stream:
                yield from _split(stream, end)


def _split(stream: IO[bytes], end: bytes) -> Iterator[tuple[bytes, int]]:
    if not end:
        data = stream.read()
        yield data, len(data)
        return
    for data in split_records(stream, end):
        yield data, len(data) + len(end)
