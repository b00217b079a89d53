"""`ottla topic describe`: partitions with their leaders and offsets, and the configs that are a topic's own."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ottla.cli.lookup import require_topics
from ottla.cli.options import Topics
from ottla.cli.output import print_json, print_table
from ottla.cli.session import Session

if TYPE_CHECKING:
    from ottla.client import Admin
    from ottla.client.admin_results import OffsetInfo, PartitionDescription, TopicDescription
    from ottla.client.partitions import TopicPartition

    Ends = dict[TopicPartition, OffsetInfo]

_COLUMNS = ("partition", "leader", "epoch", "replicas", "in sync", "offline", "earliest", "latest")
_KEYS = ("partition", "leader", "leader_epoch", "replicas", "in_sync", "offline", "earliest", "latest")


def describe(
    session: Session,
    names: Topics,
    under_replicated: Annotated[
        bool,
        typer.Option(
            "--under-replicated", help="Only partitions with replicas that are not in sync, or without a leader."
        ),
    ] = False,
) -> None:
    """Describe topics: partitions, leaders, replicas, offsets, and the configs that were set.

    JSON: a list of {"name", "id", "is_internal", "configs", "partitions": [{"partition", "leader", "leader_epoch", "replicas",
    "in_sync", "offline", "earliest", "latest"}]}; "leader", "earliest" and "latest" are null where there is no leader.
    """
    from ottla.base.ids import uuid_text
    from ottla.client.admin_results import ConfigResource

    with session.admin() as admin:
        topics = require_topics(admin, names)
        earliest, latest = offsets(admin, topics, "earliest"), offsets(admin, topics, "latest")
        resources = {name: ConfigResource("topic", name) for name in topics}
        configs = admin.describe_configs(resources.values())
    documents = []
    for name, topic in topics.items():
        own = {each.name: each.value for each in configs[resources[name]].values() if each.source == "dynamic_topic"}
        parts = [
            each
            for each in topic.partitions
            if not under_replicated or len(each.in_sync) < len(each.replicas) or each.leader is None
        ]
        rows = [_row(name, each, earliest, latest) for each in parts]
        documents.append((topic, own, rows))
    if session.is_json:
        print_json(
            [
                {"name": topic.name, "id": uuid_text(topic.id), "is_internal": topic.is_internal, "configs": own,
                 "partitions": [dict(zip(_KEYS, row, strict=True)) for row in rows]}
                for topic, own, rows in documents
            ]
        )  # fmt: skip
        return
    for index, (topic, own, rows) in enumerate(documents):
        told = "  ".join(f"{key}={value}" for key, value in sorted(own.items()))
        print(("\n" if index else "") + f"{topic.name}  id {uuid_text(topic.id)}" + (f"  {told}" if told else ""))
        print_table(_COLUMNS, rows)


def offsets(admin: "Admin", topics: "dict[str, TopicDescription]", spec: str) -> "Ends":
    """An end of every partition that has a leader to ask."""
    places: dict[tuple[str, int], str | int] = {
        (name, each.partition): spec
        for name, topic in topics.items()
        for each in topic.partitions
        if each.leader is not None
    }
    return admin.list_offsets(places) if places else {}


def _row(topic: str, each: "PartitionDescription", earliest: "Ends", latest: "Ends") -> tuple[Any, ...]:
    from ottla.client.partitions import TopicPartition

    place = TopicPartition(topic, each.partition)
    ends = (earliest[place].offset, latest[place].offset) if each.leader is not None else (None, None)
    leader = each.leader.id if each.leader is not None else None
    return (
        each.partition,
        leader,
        each.leader_epoch,
        list(each.replicas),
        list(each.in_sync),
        list(each.offline),
        *ends,
    )
