"""Where reading begins: an end, an offset, so many records before the end, or a time."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from ottla.cli.times import moment_ms

if TYPE_CHECKING:
    from ottla.client.consumer import Consumer
    from ottla.client.partitions import TopicPartition

BEGINNING, END = "beginning", "end"


@dataclass(frozen=True, slots=True)
class Begin:
    """One of the four; `reset` is where a group begins that has no offset yet, and where to go from an offset that does not exist."""

    reset: str
    offset: int | None = None
    last: int | None = None
    timestamp: int | None = None


def begin_at(text: str | None, *, is_following: bool, has_group: bool) -> Begin:
    """What `--from` means."""
    if text is None:
        text = END if is_following and not has_group else BEGINNING
    if text in (BEGINNING, "earliest"):
        return Begin("earliest")
    if text in (END, "latest"):
        return Begin("latest")
    if has_group:
        raise typer.BadParameter(
            "a group begins where it left off; --from beginning or end says where, if it has never read"
        )
    if text.isdigit():
        return Begin("earliest", offset=int(text))
    if text.startswith("-") and text[1:].isdigit():
        return Begin("earliest", last=int(text[1:]))
    return Begin("earliest", timestamp=moment_ms(text, now_ms=int(time.time() * 1000)))


def seek_all(consumer: "Consumer", places: "list[TopicPartition]", where: Begin) -> None:
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
