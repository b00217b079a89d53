"""`ottla group reset-offsets`: where a group shall go on; shown first, done with --execute."""

import time
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ottla.cli.completion import topic_names
from ottla.cli.errors import CliError, require_groups, require_topics
from ottla.cli.options import Group, parse_duration_ms, parse_time_ms
from ottla.cli.output import print_json, print_note, print_table
from ottla.cli.session import Session

if TYPE_CHECKING:
    from ottla.client import Admin
    from ottla.client.records import TopicPartition

_BUSY = ("Stable", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")


def reset_offsets(
    session: Session,
    name: Group,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            "-t",
            metavar="TOPIC[:0,1]",
            autocompletion=topic_names,
            help="A topic, or some of its partitions.",
        ),
    ] = None,
    all_topics: Annotated[
        bool, typer.Option("--all-topics", help="All topics that the group has committed offsets of.")
    ] = False,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="To the beginning.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="To the end.")] = False,
    to_current: Annotated[bool, typer.Option("--to-current", help="To what is committed now.")] = False,
    to_offset: Annotated[int | None, typer.Option("--to-offset", min=0, metavar="N", help="To this offset.")] = None,
    to_datetime: Annotated[
        str | None,
        typer.Option("--to-datetime", metavar="TIME", help="To the first record at or after 2026-01-31T12:00:00Z."),
    ] = None,
    by_duration: Annotated[
        str | None,
        typer.Option(
            "--by-duration", metavar="DURATION", help="To the first record of the last 15m, 1h30m or PT1H30M."
        ),
    ] = None,
    shift_by: Annotated[
        int | None, typer.Option("--shift-by", metavar="N", help="So many on; back, where N is negative.")
    ] = None,
    execute: Annotated[
        bool, typer.Option("--execute/--dry-run", help="Do it, or show what would be done.", show_default="--dry-run")
    ] = False,
) -> None:
    """Reset the offsets of a group that has no active members; a group that is not there yet is made by it.

    Without --execute it only shows what would be done.

    JSON: {"group", "is_executed", "partitions": [{"topic", "partition", "old", "new"}]}; "old" is null where nothing was committed.
    """
    goal = _parse_target(
        to_earliest=to_earliest, to_latest=to_latest, to_current=to_current, to_offset=to_offset, to_datetime=to_datetime,
        by_duration=by_duration, shift_by=shift_by,
    )  # fmt: skip
    if bool(topic) == all_topics:
        raise typer.BadParameter("say which topics: --topic, as often as needed, or --all-topics")
    with session.admin() as admin:
        if all_topics:
            require_groups(admin, [name])
        _require_idle(admin, name)
        committed = {place: told.offset for place, told in admin.list_group_offsets(name).items()}
        places = sorted(committed) if all_topics else _parse_partitions(admin, topic or [])
        new = (
            _moved_offsets(admin, places, committed, goal)
            if goal.spec is None
            else _offsets_at(admin, places, goal.spec)
        )
        if execute and new:
            admin.alter_group_offsets(name, {(place.topic, place.partition): offset for place, offset in new.items()})
    _print_result(session, name, committed, new, is_executed=execute)


class _ResetTarget(NamedTuple):
    """Where to: an end or a time in milliseconds (`spec`), an offset, or else the present place and some more."""

    spec: str | int | None = None
    offset: int | None = None
    shift: int = 0


def _parse_target(
    *, to_earliest: bool, to_latest: bool, to_current: bool, to_offset: int | None, to_datetime: str | None, by_duration: str | None,
    shift_by: int | None,
) -> _ResetTarget:  # fmt: skip
    """The one that was said."""
    now_ms = int(time.time() * 1000)
    goals = []
    if to_earliest:
        goals.append(_ResetTarget(spec="earliest"))
    if to_latest:
        goals.append(_ResetTarget(spec="latest"))
    if to_current:
        goals.append(_ResetTarget())
    if to_offset is not None:
        goals.append(_ResetTarget(offset=to_offset))
    if to_datetime is not None:
        goals.append(_ResetTarget(spec=parse_time_ms(to_datetime, now_ms=now_ms)))
    if by_duration is not None:
        goals.append(_ResetTarget(spec=now_ms - (parse_duration_ms(by_duration) or 0)))
    if shift_by is not None:
        goals.append(_ResetTarget(shift=shift_by))
    if len(goals) != 1:
        raise typer.BadParameter(
            "say where to: one of --to-earliest, --to-latest, --to-current, --to-offset, --to-datetime, --by-duration, --shift-by"
        )
    return goals[0]


def _require_idle(admin: "Admin", name: str) -> None:
    group = admin.list_groups().get(name)
    if group is not None and group.state in _BUSY:
        raise CliError(
            f"group {name!r} is {group.state}: its members would not hear of it", "Stop its consumers, then reset."
        )


def _parse_partitions(admin: "Admin", texts: list[str]) -> "list[TopicPartition]":
    """TOPIC is all of its partitions, TOPIC:0,1 those two."""
    from ottla.client.records import TopicPartition

    wanted = {text.partition(":")[0]: text.partition(":")[2] for text in texts}
    found = []
    for topic, described in require_topics(admin, wanted).items():
        there = [each.partition for each in described.partitions]
        try:
            chosen = [int(each) for each in wanted[topic].split(",")] if wanted[topic] else there
        except ValueError:
            raise typer.BadParameter(f"{topic}:{wanted[topic]} is not TOPIC or TOPIC:0,1") from None
        for each in chosen:
            if each not in there:
                raise CliError(f"{topic} has no partition {each}", f"It has 0 to {len(there) - 1}.")
        found += [TopicPartition(topic, each) for each in chosen]
    return sorted(found)


def _offsets_at(admin: "Admin", places: "list[TopicPartition]", spec: str | int) -> "dict[TopicPartition, int]":
    """The offset of an end or of a time; behind the last record, where all are older."""
    if not places:
        return {}
    found = admin.list_offsets(dict.fromkeys(places, spec))
    late = [place for place in places if found[place].offset < 0]
    ends = admin.list_offsets(dict.fromkeys(late, "latest")) if late else {}
    return {place: (ends[place] if place in ends else found[place]).offset for place in places}


def _moved_offsets(
    admin: "Admin", places: "list[TopicPartition]", committed: "dict[TopicPartition, int]", goal: _ResetTarget
) -> "dict[TopicPartition, int]":
    """An offset, or the present one and some more, kept within what the partition has."""
    earliest, latest = _offsets_at(admin, places, "earliest"), _offsets_at(admin, places, "latest")
    new: dict[TopicPartition, int] = {}
    for place in places:
        if goal.offset is None and place not in committed and goal.shift:
            raise CliError(
                f"group has committed nothing of {place} that could be shifted",
                "Say --to-earliest, --to-latest or --to-offset first.",
            )
        wanted = goal.offset if goal.offset is not None else committed.get(place, latest[place]) + goal.shift
        new[place] = min(max(wanted, earliest[place]), latest[place])
        if new[place] != wanted:
            print_note(f"{place}: {wanted} is outside of {earliest[place]} to {latest[place]}, so {new[place]} it is")
    return new


def _print_result(
    session: Session,
    name: str,
    committed: "dict[TopicPartition, int]",
    new: "dict[TopicPartition, int]",
    *,
    is_executed: bool,
) -> None:
    rows = [(place.topic, place.partition, committed.get(place), offset) for place, offset in new.items()]
    if session.is_json:
        told = [dict(zip(("topic", "partition", "old", "new"), row, strict=True)) for row in rows]
        print_json({"group": name, "is_executed": is_executed, "partitions": told})
        return
    print_table(("topic", "partition", "old", "new"), rows)
    if not is_executed:
        print_note("\nNothing was changed: say --execute to do it.")
