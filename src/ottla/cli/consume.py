"""`ottla consume`: write records as lines of text or JSON, up to the end of the topic or following it."""

import os
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ottla.cli.command import command
from ottla.cli.completion import complete_from, group_names
from ottla.cli.errors import CliError, require_topics
from ottla.cli.options import Partitions, Topics, drop_none, parse_time_ms
from ottla.cli.output import ProgressBar, print_note
from ottla.cli.record_format import FIELDS_HELP, RecordFormat
from ottla.cli.records import LineFormat, parse_separator, to_json
from ottla.cli.registry_values import RegistryDecoder, RegistryKeys, RegistryUrl, new_decoder
from ottla.cli.session import Session
from ottla.cli.waits import OutageNotes

if TYPE_CHECKING:
    from ottla.client.consumer import Consumer
    from ottla.client.records import ConsumerRecord, TopicPartition

JSON_HELP = "Write JSON lines: topic, partition, offset, timestamp, timestamp_type, key, value, headers."
BEGINNING, END = "beginning", "end"
POLL_SECONDS = 0.2
POLL_RECORDS_MAX = 5_000
COMMIT_INTERVAL_SECONDS = 1.0
PARTITIONS_SHOWN_MAX = 3

From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="POSITION",
        help="beginning, end, an offset, -N for the last N records of each partition, or a time: 2026-01-31T12:00:00Z, "
        "@MILLISECONDS, or 15m for 15 minutes ago.",
        show_default="beginning; end with --follow; the committed offset with --group",
    ),
]
FromBeginning = Annotated[bool, typer.Option("--from-beginning", help="Same as --from beginning.")]
Follow = Annotated[bool, typer.Option("--follow", "-F", help="Wait for more records at the end, until Ctrl-C.")]
RecordsMax = Annotated[int | None, typer.Option("--max", "-n", min=1, metavar="N", help="Stop after N records.")]
GroupOption = Annotated[
    str | None,
    typer.Option(
        "--group",
        "-g",
        metavar="GROUP",
        autocompletion=group_names,
        help="Consume as a member of this group and commit offsets.",
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format", "-f", metavar="FORMAT", help=f"Write each record in this format, as kcat does: {FIELDS_HELP}."
    ),
]
Keys = Annotated[bool, typer.Option("--keys", help="Write keys before values.")]
Headers = Annotated[bool, typer.Option("--headers", help="Write headers.")]
Timestamps = Annotated[bool, typer.Option("--timestamps", help="Write timestamps in epoch milliseconds.")]
Offsets = Annotated[bool, typer.Option("--offsets", help="Write partitions and offsets.")]
KeySeparator = Annotated[
    str, typer.Option("--key-separator", metavar="TEXT", help="Separator between the parts of a record.")
]
RecordSeparator = Annotated[str, typer.Option("--record-separator", metavar="TEXT", help="Terminator of a record.")]
Null = Annotated[
    str, typer.Option("--null", metavar="TEXT", help="Text written for null.", show_default="an empty string")
]
Isolation = Annotated[
    str | None,
    typer.Option(
        metavar="LEVEL",
        autocompletion=complete_from("read_uncommitted", "read_committed"),
        help="read_uncommitted or read_committed.",
        show_default="read_uncommitted",
    ),
]


def register(root: typer.Typer) -> None:
    command(root, "consume", json_help=JSON_HELP)(consume)


def consume(
    session: Session,
    topics: Topics,
    begin: From = None,
    from_beginning: FromBeginning = False,
    follow: Follow = False,
    records_max: RecordsMax = None,
    partitions: Partitions = None,
    group: GroupOption = None,
    format_: Format = None,
    keys: Keys = False,
    headers: Headers = False,
    timestamps: Timestamps = False,
    offsets: Offsets = False,
    key_separator: KeySeparator = "\\t",
    record_separator: RecordSeparator = "\\n",
    null: Null = "",
    isolation: Isolation = None,
    registry: RegistryUrl = None,
    registry_keys: RegistryKeys = False,
) -> None:
    """Consume records of topics and write their values, one per line, up to the current end of the topics.

    The parts of a line come in this order: partition, offset, timestamp, headers, key, value.
    """
    selected = {"partition": offsets, "offset": offsets, "timestamp": timestamps, "headers": headers, "key": keys}
    parts = (*(part for part, is_selected in selected.items() if is_selected), "value")
    if format_ is not None and (session.is_json or len(parts) > 1):
        raise typer.BadParameter(
            "--format cannot be combined with --json, --keys, --headers, --timestamps or --offsets"
        )
    ends = parse_separator(key_separator), parse_separator(record_separator), os.fsencode(null)
    line = LineFormat(parts, *ends) if format_ is None else RecordFormat(format_, ends[-1])
    if from_beginning and begin not in (None, BEGINNING):
        raise typer.BadParameter("--from and --from-beginning cannot be combined")
    is_member = group is not None
    start = parse_start_position(BEGINNING if from_beginning else begin, is_following=follow, has_group=is_member)
    if is_member and partitions:
        raise typer.BadParameter("--group and --partition cannot be combined: the group assigns the partitions")
    decoder = new_decoder(registry, includes_keys=registry_keys, seconds=session.timeout_seconds)
    with session.admin() as admin:
        described = require_topics(admin, topics)
    with session.consumer(_consumer_configs(group, isolation, start)) as consumer:
        run = _ConsumeRun(consumer, line, decoder, session.is_json, is_member, follow, records_max)
        if group is None:
            _assign(consumer, {name: len(topic.partitions) for name, topic in described.items()}, partitions, start)
        else:
            consumer.subscribe(list(described))
        run.run(session.timeout_seconds)


def _consumer_configs(group: str | None, isolation: str | None, start: "StartPosition") -> dict[str, Any]:
    return {
        "group.id": group,
        "enable.auto.commit": False,
        **drop_none({"isolation.level": isolation}),
        "max.poll.records": POLL_RECORDS_MAX,
        "auto.offset.reset": start.reset,
    }


@dataclass(frozen=True, slots=True)
class StartPosition:
    """An end (`reset`), an offset, the `last` N records or a time. `reset` also applies where a group has no offset."""

    reset: str
    offset: int | None = None
    last: int | None = None
    timestamp: int | None = None


def parse_start_position(text: str | None, *, is_following: bool, has_group: bool) -> StartPosition:
    """Parse the value of `--from`."""
    if text is None:
        text = END if is_following and not has_group else BEGINNING
    if text in (BEGINNING, "earliest"):
        return StartPosition("earliest")
    if text in (END, "latest"):
        return StartPosition("latest")
    if has_group:
        raise typer.BadParameter(
            "a group resumes at its committed offsets; with --group, --from must be beginning or end, "
            "and applies if there are none"
        )
    if text.isdigit():
        return StartPosition("earliest", offset=int(text))
    if text.startswith("-") and text[1:].isdigit():
        return StartPosition("earliest", last=int(text[1:]))
    return StartPosition("earliest", timestamp=parse_time_ms(text, now_ms=int(time.time() * 1000)))


def seek_to_start(consumer: "Consumer", partitions: "list[TopicPartition]", start: StartPosition) -> None:
    if start.timestamp is not None:
        consumer.seek_to_time(max(0, start.timestamp), *partitions)
        ends = consumer.end_offsets(partitions)
        if all(consumer.position(partition) == ends[partition] for partition in partitions):
            print_note("No record has this time or a later one; starting at the end.")
    elif start.offset is not None or start.last is not None:
        beginnings, ends = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
        for partition in partitions:
            offset = start.offset if start.offset is not None else ends[partition] - (start.last or 0)
            consumer.seek(partition, min(max(offset, beginnings[partition]), ends[partition]))
        if start.offset is not None:
            _note_offset_beyond_end(start.offset, ends)
    elif start.reset == "earliest":
        consumer.seek_to_beginning(*partitions)
    else:
        consumer.seek_to_end(*partitions)


def _note_offset_beyond_end(offset: int, ends: "dict[TopicPartition, int]") -> None:
    beyond = [f"{partition} ({end})" for partition, end in ends.items() if offset > end]
    if beyond:
        shown = ", ".join(beyond[:PARTITIONS_SHOWN_MAX]) + (", ..." if len(beyond) > PARTITIONS_SHOWN_MAX else "")
        print_note(f"Offset {offset} is beyond the end of {shown}; starting at the end.")


def _assign(consumer: "Consumer", counts: dict[str, int], chosen: list[int] | None, start: StartPosition) -> None:
    from ottla.client.records import TopicPartition

    for name, count in counts.items():
        for index in chosen or ():
            if index >= count:
                raise typer.BadParameter(f"{name} has no partition {index}, only 0 to {count - 1}")
    partitions = [
        TopicPartition(name, index)
        for name, count in counts.items()
        for index in (dict.fromkeys(chosen) if chosen else range(count))
    ]
    consumer.assign(partitions)
    seek_to_start(consumer, partitions, start)


class _ConsumeRun:
    """Polls records, writes them and commits, until the end offsets or `records_max` are reached."""

    def __init__(
        self,
        consumer: "Consumer",
        line: LineFormat | RecordFormat,
        decoder: "RegistryDecoder | None",
        is_json: bool,
        has_group: bool,
        is_following: bool,
        records_max: int | None,
    ) -> None:
        self._consumer, self._line, self._is_json, self._has_group = consumer, line, is_json, has_group
        self._decoder = decoder
        self._remaining = records_max
        self._ends: dict[TopicPartition, int] = {}
        self._positions: dict[tuple[str, int], int] = {}
        self._written = 0
        self._has_uncommitted = False
        self._committed_at = time.monotonic()
        self._notes = OutageNotes(consumer, waits_for_topics=is_following)
        self._is_following = is_following

    def run(self, seconds_max: float) -> None:
        is_following = self._is_following
        is_shown = not sys.stdout.isatty() and not is_following
        with ProgressBar("records", self._remaining, is_enabled=is_shown) as bar:
            give_up_at = time.monotonic() + seconds_max
            try:
                while self._remaining != 0:
                    records = self._consumer.poll(
                        POLL_SECONDS, max_records=min(self._remaining or POLL_RECORDS_MAX, POLL_RECORDS_MAX)
                    )
                    if records:
                        self._write(records)
                        bar.update(self._written, f"{self._written:,} records")
                    else:
                        self._on_deleted_topics()
                    if time.monotonic() - self._committed_at > COMMIT_INTERVAL_SECONDS:
                        self._commit_in_between()
                    if is_following:
                        continue
                    if self._is_at_end(records):
                        break
                    if records:
                        give_up_at = time.monotonic() + seconds_max
                    elif time.monotonic() > give_up_at:
                        self._require_no_outage(seconds_max)
                        break
            finally:
                self._commit_at_end()
        if not is_following and not self._ends and self._remaining != 0:
            print_note("No partitions were assigned to this member: other members of the group read them.")

    def _write(self, records: "list[ConsumerRecord]") -> None:
        """Write and flush a poll's records at once: the next program in a pipe may be waiting for them."""
        parts: tuple[str, ...] = ()
        if self._decoder is not None:
            parts = self._decoder.parts
            records = [self._decoder.decode_record(record) for record in records]
        data = b"".join([to_json(record, parts) for record in records]) if self._is_json else self._line.write(records)
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        self._written += len(records)
        if self._remaining is not None:
            self._remaining -= len(records)
        self._has_uncommitted = self._has_group

    def _commit(self) -> None:
        """Commit only what was written: records that a closed pipe did not take are read again."""
        if self._has_uncommitted:
            self._consumer.commit()
            self._has_uncommitted = False
        self._committed_at = time.monotonic()

    def _commit_in_between(self) -> None:
        """Commit. With --follow, an outage or a lost membership does not end the command."""
        from ottla.client.errors import ClientError, CommitFailedError

        try:
            self._commit()
        except CommitFailedError:
            if not self._is_following:
                raise
            self._has_uncommitted = False  # the partitions' next owner reads the records again
        except ClientError as error:
            if not (self._is_following and error.is_retriable):
                raise

    def _commit_at_end(self) -> None:
        """Commit, unless the broker is away: Ctrl-C should not wait for the timeout."""
        from ottla.client.errors import BrokerUnreachableError

        outage = self._notes.latest
        if not isinstance(outage, BrokerUnreachableError):
            self._commit()
            return
        if self._has_uncommitted:
            print_note("ottla: the offsets of the last records were not committed; they will be read again")
        self._consumer.close(timeout=0)

    def _on_deleted_topics(self) -> None:
        """Fail, or with --follow read a recreated topic from its beginning: all of its records are new."""
        for topic in self._notes.take_deleted():
            if not self._is_following:
                raise CliError(f"topic {topic!r} was deleted")
            partitions = [partition for partition in self._consumer.assignment if partition.topic == topic]
            if partitions:
                self._consumer.seek_to_beginning(*partitions)

    def _require_no_outage(self, seconds: float) -> None:
        """After a wait without records, raise its reason; without one, the member has no partitions."""
        outage = self._notes.latest
        if outage is not None or self._ends:
            reason = f": {outage.message}" if outage is not None else ""
            raise CliError(f"no records arrived within {seconds:g} s{reason}", outage.advice if outage else "")

    def _is_at_end(self, records: "list[ConsumerRecord]") -> bool:
        """Return whether every assigned partition has reached the end offset it had when it was assigned."""
        for record in records:
            self._positions[record[:2]] = record.offset + 1
        assigned = self._consumer.assignment
        missing = [partition for partition in assigned if partition not in self._ends]
        if missing:
            self._ends.update(self._consumer.end_offsets(missing))
        behind = [partition for partition in assigned if self._positions.get(partition, -1) < self._ends[partition]]
        if behind and not records:
            # The last offsets may hold no records: transaction markers, or records removed by compaction.
            self._positions.update((partition, self._consumer.position(partition)) for partition in behind)
            behind = [partition for partition in behind if self._positions[partition] < self._ends[partition]]
        return bool(assigned) and not behind
