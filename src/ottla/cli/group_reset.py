"""`ottla group reset-offsets`: set committed offsets of a group; a dry run unless --execute is given."""

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

_ACTIVE_STATES = ("Stable", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")


TopicOption = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        "-t",
        metavar="TOPIC[:0,1]",
        autocompletion=topic_names,
        help="A topic, or some of its partitions; repeatable.",
    ),
]
AllTopics = Annotated[bool, typer.Option("--all-topics", help="All topics with committed offsets of the group.")]
ToEarliest = Annotated[bool, typer.Option("--to-earliest", help="To the earliest offset.")]
ToLatest = Annotated[bool, typer.Option("--to-latest", help="To the latest offset.")]
ToCurrent = Annotated[bool, typer.Option("--to-current", help="To the committed offset.")]
ToOffset = Annotated[int | None, typer.Option("--to-offset", min=0, metavar="N", help="To this offset.")]
ToDatetime = Annotated[
    str | None,
    typer.Option("--to-datetime", metavar="TIME", help="To the first record at or after 2026-01-31T12:00:00Z."),
]
ByDuration = Annotated[
    str | None,
    typer.Option("--by-duration", metavar="DURATION", help="To the first record of the last 15m, 1h30m or PT1H30M."),
]
ShiftBy = Annotated[
    int | None, typer.Option("--shift-by", metavar="N", help="Forward by N offsets; backward if N is negative.")
]
Execute = Annotated[
    bool,
    typer.Option("--execute/--dry-run", help="Change the offsets, or only show the changes.", show_default="--dry-run"),
]


def reset_offsets(
    session: Session,
    name: Group,
    topic: TopicOption = None,
    all_topics: AllTopics = False,
    to_earliest: ToEarliest = False,
    to_latest: ToLatest = False,
    to_current: ToCurrent = False,
    to_offset: ToOffset = None,
    to_datetime: ToDatetime = None,
    by_duration: ByDuration = None,
    shift_by: ShiftBy = None,
    execute: Execute = False,
) -> None:
    """Reset the offsets of a group that has no active members. A group that does not exist is created.

    Without --execute, only show the changes.

    JSON: {"group", "is_executed", "partitions": [{"topic", "partition", "old", "new"}]}; "old" is null without a
    committed offset.
    """
    target = _parse_target(
        to_earliest=to_earliest,
        to_latest=to_latest,
        to_current=to_current,
        to_offset=to_offset,
        to_datetime=to_datetime,
        by_duration=by_duration,
        shift_by=shift_by,
    )
    if bool(topic) == all_topics:
        raise typer.BadParameter("pass either --topic or --all-topics")
    with session.admin() as admin:
        if all_topics:
            require_groups(admin, [name])
        _require_idle(admin, name)
        committed = {partition: info.offset for partition, info in admin.list_group_offsets(name).items()}
        partitions = sorted(committed) if all_topics else _parse_partitions(admin, topic or [])
        new = (
            _moved_offsets(admin, partitions, committed, target)
            if target.spec is None
            else _offsets_at(admin, partitions, target.spec)
        )
        if execute and new:
            admin.alter_group_offsets(
                name, {(partition.topic, partition.partition): offset for partition, offset in new.items()}
            )
    _print_result(session, name, committed, new, is_executed=execute)


class _ResetTarget(NamedTuple):
    """Target of a reset: an end or a time in ms (`spec`), an offset, or the committed offset plus `shift`."""

    spec: str | int | None = None
    offset: int | None = None
    shift: int = 0


def _parse_target(
    *,
    to_earliest: bool,
    to_latest: bool,
    to_current: bool,
    to_offset: int | None,
    to_datetime: str | None,
    by_duration: str | None,
    shift_by: int | None,
) -> _ResetTarget:
    """Return the one target that the options select."""
    now_ms = int(time.time() * 1000)
    targets = []
    if to_earliest:
        targets.append(_ResetTarget(spec="earliest"))
    if to_latest:
        targets.append(_ResetTarget(spec="latest"))
    if to_current:
        targets.append(_ResetTarget())
    if to_offset is not None:
        targets.append(_ResetTarget(offset=to_offset))
    if to_datetime is not None:
        targets.append(_ResetTarget(spec=parse_time_ms(to_datetime, now_ms=now_ms)))
    if by_duration is not None:
        targets.append(_ResetTarget(spec=now_ms - (parse_duration_ms(by_duration) or 0)))
    if shift_by is not None:
        targets.append(_ResetTarget(shift=shift_by))
    if len(targets) != 1:
        raise typer.BadParameter(
            "pass exactly one of --to-earliest, --to-latest, --to-current, --to-offset, --to-datetime, --by-duration, "
            "--shift-by"
        )
    return targets[0]


def _require_idle(admin: "Admin", name: str) -> None:
    group = admin.list_groups().get(name)
    if group is not None and group.state in _ACTIVE_STATES:
        raise CliError(
            f"cannot reset offsets of group {name!r}: it has active members ({group.state})",
            "Stop its consumers and retry.",
        )


def _parse_partitions(admin: "Admin", texts: list[str]) -> "list[TopicPartition]":
    """Parse TOPIC (all its partitions) or TOPIC:0,1."""
    from ottla.client.records import TopicPartition

    selected = {text.partition(":")[0]: text.partition(":")[2] for text in texts}
    found = []
    for topic, described in require_topics(admin, selected).items():
        existing = [each.partition for each in described.partitions]
        try:
            chosen = [int(each) for each in selected[topic].split(",")] if selected[topic] else existing
        except ValueError:
            raise typer.BadParameter(f"{topic}:{selected[topic]} is not TOPIC or TOPIC:0,1") from None
        for each in chosen:
            if each not in existing:
                raise CliError(f"{topic} has no partition {each}", f"Its partitions are 0 to {len(existing) - 1}.")
        found += [TopicPartition(topic, each) for each in chosen]
    return sorted(found)


def _offsets_at(admin: "Admin", partitions: "list[TopicPartition]", spec: str | int) -> "dict[TopicPartition, int]":
    """Return the offsets of an end or a time; the end offset if all records are older."""
    if not partitions:
        return {}
    found = admin.list_offsets(dict.fromkeys(partitions, spec))
    late = [partition for partition in partitions if found[partition].offset < 0]
    ends = admin.list_offsets(dict.fromkeys(late, "latest")) if late else {}
    return {partition: (ends[partition] if partition in ends else found[partition]).offset for partition in partitions}


def _moved_offsets(
    admin: "Admin", partitions: "list[TopicPartition]", committed: "dict[TopicPartition, int]", target: _ResetTarget
) -> "dict[TopicPartition, int]":
    """Return the target offset, or the committed offset plus the shift, limited to the partition's range."""
    earliest, latest = _offsets_at(admin, partitions, "earliest"), _offsets_at(admin, partitions, "latest")
    new: dict[TopicPartition, int] = {}
    for partition in partitions:
        if target.offset is None and partition not in committed and target.shift:
            raise CliError(
                f"the group has no committed offset of {partition} to shift",
                "Use --to-earliest, --to-latest or --to-offset.",
            )
        offset = (
            target.offset if target.offset is not None else committed.get(partition, latest[partition]) + target.shift
        )
        new[partition] = min(max(offset, earliest[partition]), latest[partition])
        if new[partition] != offset:
            print_note(
                f"{partition}: offset {offset} is out of range {earliest[partition]} to {latest[partition]}; "
                f"using {new[partition]}"
            )
    return new


def _print_result(
    session: Session,
    name: str,
    committed: "dict[TopicPartition, int]",
    new: "dict[TopicPartition, int]",
    *,
    is_executed: bool,
) -> None:
    rows = [
        (partition.topic, partition.partition, committed.get(partition), offset) for partition, offset in new.items()
    ]
    if session.is_json:
        documents = [dict(zip(("topic", "partition", "old", "new"), row, strict=True)) for row in rows]
        print_json({"group": name, "is_executed": is_executed, "partitions": documents})
        return
    print_table(("topic", "partition", "old", "new"), rows)
    if not is_executed:
        print_note("\nDry run, nothing was changed; pass --execute to apply.")
