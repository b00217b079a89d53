"""`ottla produce`: lines from files, a pipe, the keyboard or the command line become records."""

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Self

import typer

from ottla.cli.command import command
from ottla.cli.errors import CliError, unknown_topic_error
from ottla.cli.options import Acks, Compression, Linger, Topic, drop_none, parse_pairs, parse_time_ms
from ottla.cli.output import ProgressBar, print_json, print_note
from ottla.cli.records import InputRecord, from_json, parse_separator, split_records
from ottla.cli.session import Session

if TYPE_CHECKING:
    from ottla.client.producer import BlockingSendFuture, Producer
    from ottla.client.record_metadata import RecordMetadata

JSON_HELP = "Read JSON lines, as `ottla consume --json` writes them: objects with key, value, headers, timestamp."
PENDING_MAX = 10_000
"""How many records may wait for their outcome before the first of them is waited for."""
TOLD_EVERY = 1_000


def register(root: typer.Typer) -> None:
    command(root, "produce", json_help=JSON_HELP)(produce)


def produce(
    session: Session,
    topic: Topic,
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE...", help="Files to read; - is the input.", show_default="the input"),
    ] = None,
    value: Annotated[
        list[str] | None,
        typer.Option("--value", "-v", metavar="TEXT", help="A value, instead of reading any; may be given many times."),
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", "-k", metavar="TEXT", help="The key of records that bring none.")
    ] = None,
    keys: Annotated[bool, typer.Option("--keys", help="Lines hold a key, the separator and the value.")] = False,
    key_separator: Annotated[
        str, typer.Option("--key-separator", metavar="TEXT", help="What stands between key and value.")
    ] = "\\t",
    record_separator: Annotated[
        str, typer.Option("--record-separator", metavar="TEXT", help="What stands behind a record.")
    ] = "\\n",
    whole: Annotated[bool, typer.Option("--whole", help="Each file is one record.")] = False,
    null: Annotated[
        str | None, typer.Option("--null", metavar="TEXT", help="What stands for a value that is null, a tombstone.")
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", "-H", metavar="NAME=VALUE", help="A header of every record; may be given many times."),
    ] = None,
    timestamp: Annotated[
        str | None,
        typer.Option(
            "--timestamp",
            metavar="TIME",
            help="2026-01-31T12:00:00Z, @MILLISECONDS, or 15m for that long ago.",
            show_default="now",
        ),
    ] = None,
    partition: Annotated[
        int | None,
        typer.Option("--partition", "-p", min=0, metavar="N", help="Where to send them.", show_default="by the key"),
    ] = None,
    keep_partitions: Annotated[
        bool, typer.Option("--keep-partitions", help="With --json: use the partitions that the records name.")
    ] = False,
    compression: Compression = None,
    acks: Acks = None,
    linger: Linger = None,
    report: Annotated[
        bool, typer.Option("--report", help="Print a JSON line for each record that was acknowledged.")
    ] = False,
) -> None:
    """Produce records: one for each line of files or of the input, or one for each --value.

    Where they went is printed with --report, as JSON lines: {"topic", "partition", "offset", "timestamp"}.
    """
    if value and files:
        raise typer.BadParameter("say --value or name files, not both")
    common = _common(key, header, timestamp, partition)
    parser = _RecordParser(
        session.is_json,
        parse_separator(key_separator) if keys else None,
        None if null is None else null.encode(),
        keep_partitions,
    )
    if value:
        raw: Iterator[tuple[bytes, int]] = ((text.encode(), len(text)) for text in value)
    else:
        raw = _read(files or [Path("-")], b"" if whole else parse_separator(record_separator))
    configs = drop_none({"compression.type": compression, "acks": acks, "linger.ms": linger})
    total = None if value or not files or Path("-") in files else sum(path.stat().st_size for path in files)
    with (
        _SendReport(topic, is_told=not report) as tally,
        ProgressBar(topic, total, is_wanted=not sys.stdin.isatty() or total is not None) as bar,
        session.producer(configs) as producer,
    ):
        _RecordSender(session, producer, topic, common, bar, tally).run(raw, parser)


def _common(key: str | None, header: list[str] | None, timestamp: str | None, partition: int | None) -> InputRecord:
    """What records are given that do not bring their own."""
    return InputRecord(
        None,
        None if key is None else key.encode(),
        [(name, content.encode()) for name, content in parse_pairs(header)] or None,
        None if timestamp is None else parse_time_ms(timestamp, now_ms=int(time.time() * 1000)),
        partition,
    )


class _SendReport:
    """How many records were acknowledged: counted, or printed one by one. The sum is told at the end, also where that comes early."""

    def __init__(self, topic: str, *, is_told: bool) -> None:
        self._topic, self._is_told = topic, is_told
        self._started = time.monotonic()
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def add(self, metadata: "RecordMetadata") -> None:
        self._count += 1
        if not self._is_told:
            print_json({name: getattr(metadata, name) for name in ("topic", "partition", "offset", "timestamp")})

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if self._is_told and (error is None or self._count):
            number, seconds = self._count, time.monotonic() - self._started
            print_note(f"{number:,} record{'s' if number != 1 else ''} to {self._topic} in {seconds:.1f} s")


class _RecordParser:
    """What the bytes of one record mean."""

    def __init__(self, is_json: bool, key_separator: bytes | None, null: bytes | None, keeps_partitions: bool) -> None:
        self._is_json, self._key_separator, self._null, self._keeps_partitions = (
            is_json,
            key_separator,
            null,
            keeps_partitions,
        )

    def parse(self, raw: bytes, number: int) -> InputRecord:
        if self._is_json:
            record = from_json(raw, number)
            return record if self._keeps_partitions else replace(record, partition=None)
        key: bytes | None = None
        if self._key_separator is not None:
            key, found, raw = raw.partition(self._key_separator)
            if not found:
                raise CliError(
                    f"line {number} has no {self._key_separator!r} between key and value",
                    "Name another with --key-separator.",
                )
        return InputRecord(None if raw == self._null else raw, key)


class _RecordSender:
    """Records on their way, and what came of them."""

    def __init__(
        self,
        session: Session,
        producer: "Producer",
        topic: str,
        common: InputRecord,
        bar: ProgressBar,
        tally: _SendReport,
    ) -> None:
        self._session, self._producer, self._topic, self._common = session, producer, topic, common
        self._bar, self._tally = bar, tally
        self._pending: list[BlockingSendFuture] = []

    def run(self, raw: Iterator[tuple[bytes, int]], parser: _RecordParser) -> None:
        """Also where it ends early, what was read before is sent."""
        size = 0
        try:
            for number, (data, length) in enumerate(raw, start=1):
                self._send(parser.parse(data, number))
                size += length
                if number % TOLD_EVERY == 0:
                    self._bar.tell(size, f"{number:,} records")
        finally:
            self._producer.flush()
            self._settle(0)

    def _send(self, record: InputRecord) -> None:
        from ottla.client.errors import UnknownTopicOrPartitionError

        common = self._common
        try:
            future = self._producer.send(
                self._topic,
                record.value,
                common.key if record.key is None else record.key,
                common.partition if record.partition is None else record.partition,
                common.timestamp if record.timestamp is None else record.timestamp,
                [*(record.headers or ()), *(common.headers or ())] or None,
            )
        except UnknownTopicOrPartitionError as error:
            with self._session.admin() as admin:
                if self._topic in admin.list_topics(include_internal=True):
                    raise CliError(
                        error.message, f"`ottla topic describe {self._topic}` shows its partitions."
                    ) from error
                raise unknown_topic_error(admin, self._topic) from error
        self._pending.append(future)
        if len(self._pending) > PENDING_MAX:
            self._settle(PENDING_MAX // 2)

    def _settle(self, rest: int) -> None:
        """Look at the outcome of all but the newest."""
        settled, self._pending = self._pending[: len(self._pending) - rest], self._pending[len(self._pending) - rest :]
        for future in settled:
            self._tally.add(future.result())


def _read(paths: list[Path], end: bytes) -> Iterator[tuple[bytes, int]]:
    """Records with the bytes that each took of its file. Without an end each file is one record."""
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
