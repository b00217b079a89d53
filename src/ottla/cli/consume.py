"""Where reading begins: an end, an offset, so many records before the end, or a time."""

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.command import command
from ottla.cli.completion import group_names
from ottla.cli.errors import require_topics
from ottla.cli.options import Partitions, Topics, drop_none, parse_time_ms
from ottla.cli.output import ProgressBar, print_note
from ottla.cli.records import LineFormat, parse_separator, to_json
from ottla.cli.session import Session

if TYPE_CHECKING:
    from ottla.client.consumer import Consumer
    from ottla.client.consumer_record import ConsumerRecord
    from ottla.client.partitions import TopicPartition

BEGINNING, END = "beginning", "end"


@dataclass(frozen=True, slots=True)
class StartPosition:
    """One of the four; `reset` is where a group begins that has no offset yet, and where to go from an offset that does not exist."""

    reset: str
    offset: int | None = None
    last: int | None = None
    timestamp: int | None = None


def parse_start_position(text: str | None, *, is_following: bool, has_group: bool) -> StartPosition:
    """What `--from` means."""
    if text is None:
        text = END if is_following and not has_group else BEGINNING
    if text in (BEGINNING, "earliest"):
        return StartPosition("earliest")
    if text in (END, "latest"):
        return StartPosition("latest")
    if has_group:
        raise typer.BadParameter(
            "a group begins where it left off; --from beginning or end says where, if it has never read"
        )
    if text.isdigit():
        return StartPosition("earliest", offset=int(text))
    if text.startswith("-") and text[1:].isdigit():
        return StartPosition("earliest", last=int(text[1:]))
    return StartPosition("earliest", timestamp=parse_time_ms(text, now_ms=int(time.time() * 1000)))


def seek_to_start(consumer: "Consumer", places: "list[TopicPartition]", where: StartPosition) -> None:
    if where.timestamp is not None:
        consumer.seek_to_time(max(0, where.timestamp), *places)
    elif where.offset is not None or where.last is not None:
        beginnings, ends = consumer.beginning_offsets(places), consumer.end_offsets(places)
        for place in places:
            wanted = where.offset if where.offset is not None else ends[place] - (where.last or 0)
            consumer.seek(place, min(max(wanted, beginnings[place]), ends[place]))
    elif where.reset == "earliest":
        consumer.seek_to_beginning(*places)
    else:
        consumer.seek_to_end(*places)


JSON_HELP = "Write JSON lines: topic, partition, offset, timestamp, timestamp_type, key, value, headers."
POLL_SECONDS = 0.2
POLL_RECORDS_MAX = 5_000
COMMIT_SECONDS = 1.0


def register(root: typer.Typer) -> None:
    command(root, "consume", json_help=JSON_HELP)(consume)


def consume(
    session: Session,
    topics: Topics,
    begin: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="WHERE",
            help="beginning, end, an offset, -N for the last N of each partition, or a time: 2026-01-31T12:00:00Z, @MILLISECONDS, "
            "or 15m for that long ago.",
            show_default="beginning; end with --follow; with --group where it left off",
        ),
    ] = None,
    from_beginning: Annotated[bool, typer.Option("--from-beginning", help="As --from beginning.")] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for more at the end, until Ctrl-C.")] = False,
    records_max: Annotated[
        int | None, typer.Option("--max", "-n", min=1, metavar="N", help="End after so many records.")
    ] = None,
    partitions: Partitions = None,
    group: Annotated[
        str | None,
        typer.Option("--group", "-g", autocompletion=group_names, help="Read as a member of this group, and commit."),
    ] = None,
    keys: Annotated[bool, typer.Option("--keys", help="Write keys before values.")] = False,
    headers: Annotated[bool, typer.Option("--headers", help="Write headers.")] = False,
    timestamps: Annotated[
        bool, typer.Option("--timestamps", help="Write timestamps, in milliseconds since 1970.")
    ] = False,
    offsets: Annotated[bool, typer.Option("--offsets", help="Write partitions and offsets.")] = False,
    key_separator: Annotated[
        str, typer.Option("--key-separator", metavar="TEXT", help="What stands between the parts.")
    ] = "\\t",
    record_separator: Annotated[
        str, typer.Option("--record-separator", metavar="TEXT", help="What stands behind a record.")
    ] = "\\n",
    null: Annotated[
        str, typer.Option("--null", metavar="TEXT", help="What stands for null.", show_default="nothing")
    ] = "",
    isolation: Annotated[
        str | None,
        typer.Option(metavar="LEVEL", help="read_uncommitted or read_committed.", show_default="read_uncommitted"),
    ] = None,
) -> None:
    """Consume records of topics, and write their values, one on each line. It ends where the end was when it began.

    With several parts in a line they come in this order: partition, offset, timestamp, headers, key, value.
    """
    wanted = {
        "partition": offsets,
        "offset": offsets,
        "timestamp": timestamps,
        "headers": headers,
        "key": keys,
        "value": True,
    }
    parts = tuple(part for part, is_wanted in wanted.items() if is_wanted)
    line = LineFormat(parts, parse_separator(key_separator), parse_separator(record_separator), null.encode())
    if from_beginning and begin not in (None, BEGINNING):
        raise typer.BadParameter("say --from or --from-beginning, not both")
    where = parse_start_position(
        BEGINNING if from_beginning else begin, is_following=follow, has_group=group is not None
    )
    if group is not None and partitions:
        raise typer.BadParameter("the group decides who reads which partition: leave out --group or --partition")
    configs = {
        "group.id": group, "enable.auto.commit": False, **drop_none({"isolation.level": isolation}), "max.poll.records": POLL_RECORDS_MAX,
        "auto.offset.reset": where.reset,
    }  # fmt: skip
    with session.admin() as admin:
        described = require_topics(admin, topics)
    with session.consumer(configs) as consumer:
        reading = _ConsumeRun(
            consumer, line, is_json=session.is_json, has_group=group is not None, records_max=records_max
        )
        if group is None:
            _assign(consumer, {name: len(topic.partitions) for name, topic in described.items()}, partitions, where)
        else:
            consumer.subscribe(list(described))
        reading.run(session.timeout_seconds, is_following=follow)


def _assign(consumer: "Consumer", counts: dict[str, int], chosen: list[int] | None, where: StartPosition) -> None:
    from ottla.client.partitions import TopicPartition

    for name, count in counts.items():
        for each in chosen or ():
            if each >= count:
                raise typer.BadParameter(f"{name} has partitions 0 to {count - 1}, and no {each}")
    places = [
        TopicPartition(name, index)
        for name, count in counts.items()
        for index in (dict.fromkeys(chosen) if chosen else range(count))
    ]
    consumer.assign(places)
    seek_to_start(consumer, places, where)


class _ConsumeRun:
    """Records from the consumer to the output, and what is left of them."""

    def __init__(
        self, consumer: "Consumer", line: LineFormat, *, is_json: bool, has_group: bool, records_max: int | None
    ) -> None:
        self._consumer, self._line, self._is_json, self._has_group = consumer, line, is_json, has_group
        self._left = records_max
        self._ends: dict[TopicPartition, int] = {}
        self._read: dict[tuple[str, int], int] = {}
        self._written = 0
        self._has_news = False
        self._committed_at = time.monotonic()

    def run(self, seconds_max: float, *, is_following: bool) -> None:
        is_shown = not sys.stdout.isatty() and not is_following
        with ProgressBar("records", self._left, is_wanted=is_shown) as bar:
            give_up_at = time.monotonic() + seconds_max
            try:
                while self._left != 0:
                    records = self._consumer.poll(
                        POLL_SECONDS, max_records=min(self._left or POLL_RECORDS_MAX, POLL_RECORDS_MAX)
                    )
                    if records:
                        self._write(records)
                        bar.tell(self._written, f"{self._written:,} records")
                    if time.monotonic() - self._committed_at > COMMIT_SECONDS:
                        self._commit()
                    if is_following:
                        continue
                    if self._is_at_end(records):
                        break
                    if records or self._ends:
                        give_up_at = time.monotonic() + seconds_max
                    elif time.monotonic() > give_up_at:
                        break
            finally:
                self._commit()
        if not is_following and not self._ends and self._left != 0:
            print_note("The group has given this member no partitions: others read them.")

    def _write(self, records: "list[ConsumerRecord]") -> None:
        """All of a batch at once, and at once: somebody may be waiting for it at the other end of a pipe."""
        data = b"".join([to_json(record) for record in records]) if self._is_json else self._line.write(records)
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        self._written += len(records)
        if self._left is not None:
            self._left -= len(records)
        self._has_news = self._has_group

    def _commit(self) -> None:
        """Only what was written: a reader that has gone away gets the rest another time."""
        if self._has_news:
            self._consumer.commit()
            self._has_news = False
        self._committed_at = time.monotonic()

    def _is_at_end(self, records: "list[ConsumerRecord]") -> bool:
        """Whether every partition that is read has come to what was its end when its reading began."""
        for record in records:
            self._read[record[:2]] = record.offset + 1
        assigned = self._consumer.assignment
        missing = [place for place in assigned if place not in self._ends]
        if missing:
            self._ends.update(self._consumer.end_offsets(missing))
        behind = [place for place in assigned if self._read.get(place, -1) < self._ends[place]]
        if behind and not records:
            # What is missing may be no records at all: the marks of transactions, and what compaction has left out.
            self._read.update((place, self._consumer.position(place)) for place in behind)
            behind = [place for place in behind if self._read[place] < self._ends[place]]
        return bool(assigned) and not behind
