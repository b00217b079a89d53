"""`ottla cluster describe`: brokers, controller, metadata quorum and features."""

from typing import TYPE_CHECKING, Any

import typer

from ottla.cli.command import command
from ottla.cli.output import print_json, print_table
from ottla.cli.session import Session
from ottla.cli.usage import new_group

if TYPE_CHECKING:
    from ottla.client import Admin
    from ottla.client.admin_results import Quorum, QuorumReplica

app = new_group("Describe the cluster.")


def register(root: typer.Typer) -> None:
    root.add_typer(app, name="cluster")


@app.callback()
def cluster() -> None:
    """Describe the cluster."""


@command(app, "describe")
def describe(session: Session) -> None:
    """Describe the cluster: brokers, controller, metadata quorum, features.

    JSON: {"cluster_id", "controller", "brokers": [{"id", "host", "port", "rack"}], "quorum": {"leader",
    "leader_epoch", "high_watermark", "voters": [{"id", "log_end_offset", "lag"}], "observers": [...]}, "features":
    [{"name", "level", "supported_min", "supported_max"}]}; "quorum" is null if the broker does not support it.
    """
    with session.admin() as admin:
        cluster_ = admin.describe_cluster()
        features = admin.describe_features()
        quorum = _quorum(admin)
    brokers = [(each.node.id, each.node.host, each.node.port, each.node.rack) for each in cluster_.brokers]
    levels = [
        (name, features.finalized[name][1] if name in features.finalized else 0, min_level, max_level)
        for name, (min_level, max_level) in sorted(features.supported.items())
    ]
    if session.is_json:
        print_json(
            {
                "cluster_id": cluster_.cluster_id,
                "controller": cluster_.controller,
                "brokers": [dict(zip(("id", "host", "port", "rack"), row, strict=True)) for row in brokers],
                "quorum": None if quorum is None else _quorum_document(quorum),
                "features": [
                    dict(zip(("name", "level", "supported_min", "supported_max"), row, strict=True)) for row in levels
                ],
            }
        )
        return
    print(f"cluster {cluster_.cluster_id}, controller {cluster_.controller}")
    print_table(("broker", "host", "port", "rack"), brokers, title="Brokers")
    if quorum is not None:
        rows = [
            (each.id, kind, each.log_end_offset, _lag(quorum, each))
            for kind, group in (("voter", quorum.voters), ("observer", quorum.observers))
            for each in group
        ]
        title = f"Quorum: leader {quorum.leader}, epoch {quorum.leader_epoch}, high watermark {quorum.high_watermark}"
        print_table(("node", "role", "log end", "lag"), rows, title=title)
    print_table(("feature", "level", "from", "to"), levels, title="Features")


def _quorum(admin: "Admin") -> "Quorum | None":
    from ottla.client.errors import UnsupportedVersionError

    try:
        return admin.describe_quorum()
    except UnsupportedVersionError:
        return None  # a ZooKeeper-based or older cluster


def _lag(quorum: "Quorum", replica: "QuorumReplica") -> int:
    ends = [each.log_end_offset for each in quorum.voters if each.id == quorum.leader]
    return max(0, max(ends, default=quorum.high_watermark) - replica.log_end_offset)


def _quorum_document(quorum: "Quorum") -> dict[str, Any]:
    def rows(replicas: "tuple[QuorumReplica, ...]") -> list[dict[str, int]]:
        return [{"id": each.id, "log_end_offset": each.log_end_offset, "lag": _lag(quorum, each)} for each in replicas]

    return {
        "leader": quorum.leader,
        "leader_epoch": quorum.leader_epoch,
        "high_watermark": quorum.high_watermark,
        "voters": rows(quorum.voters),
        "observers": rows(quorum.observers),
    }
