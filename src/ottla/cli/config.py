"""`ottla config describe|set|unset`: configs of topics, brokers, groups and client metrics."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ottla.cli.command import command
from ottla.cli.completion import resource_names
from ottla.cli.errors import CliError, nearest, require_topics
from ottla.cli.options import DryRun
from ottla.cli.output import print_json, print_table
from ottla.cli.session import Session
from ottla.cli.usage import new_group

if TYPE_CHECKING:
    from ottla.client import Admin
    from ottla.client.admin_results import ConfigEntry

app = new_group("Show and change configs of topics, brokers, groups and client metrics.")

CLUSTER_DEFAULT = "default"
Change = tuple[str, str, str | None]


class ResourceType(StrEnum):
    """Types of resources that have configs."""

    TOPIC = "topic"
    BROKER = "broker"
    GROUP = "group"
    CLIENT_METRICS = "client-metrics"
    BROKER_LOGGER = "broker-logger"


TypeArgument = Annotated[
    ResourceType, typer.Argument(metavar="TYPE", help="topic, broker, group, client-metrics or broker-logger.")
]
NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        autocompletion=resource_names,
        help="Resource name; broker 'default' is the cluster-wide default.",
    ),
]


def register(root: typer.Typer) -> None:
    root.add_typer(app, name="config")


@command(app, "describe")
def describe(
    session: Session,
    resource_type: TypeArgument,
    name: NameArgument,
    names: Annotated[list[str] | None, typer.Argument(metavar="CONFIG...", help="Only these configs.")] = None,
    show_all: Annotated[bool, typer.Option("--all", "-a", help="Also show configs with default values.")] = False,
    doc: Annotated[bool, typer.Option("--doc", "-d", help="Show the documentation of each config.")] = False,
) -> None:
    """Show configs and the source of each value. Defaults are shown only with --all, or if named.

    JSON: a list of {"name", "value", "source", "is_read_only", "is_sensitive", "synonyms": [{"name", "value",
    "source"}], "documentation"}; "documentation" is included only with --doc.
    """
    from ottla.client.admin_results import ConfigResource

    resource = ConfigResource(_wire_type(resource_type), _wire_name(resource_type, name))
    with session.admin() as admin:
        _require_resource(admin, resource_type, resource.name)
        found = admin.describe_configs([resource], synonyms=True, documentation=doc)[resource]
    for each in names or ():
        if each not in found:
            meant = nearest(each, found)
            raise CliError(
                f"{resource_type} {name} has no config {each!r}",
                f"Did you mean {meant}?" if meant else "--all shows all configs.",
            )
    is_shown = set(names or ())
    chosen = [
        entry
        for each, entry in sorted(found.items())
        if each in is_shown or (not names and (show_all or not entry.is_default))
    ]
    if session.is_json:
        print_json([_document(entry, has_doc=doc) for entry in chosen])
    elif not chosen:
        print(f"{resource_type} {name}: no configs are set; --all shows the defaults")
    elif doc:
        for entry in chosen:
            print(f"{entry.name} = {_value(entry)}  ({entry.source.replace('_', ' ')})")
            print(f"    {entry.documentation or 'no documentation'}")
    else:
        rows = [
            (entry.name, _value(entry), entry.source.replace("_", " "), "read only" if entry.is_read_only else "")
            for entry in chosen
        ]
        print_table(("config", "value", "source", ""), rows)


@command(app, "set")
def set_(
    session: Session,
    resource_type: TypeArgument,
    name: NameArgument,
    changes: Annotated[
        list[str], typer.Argument(metavar="CONFIG=VALUE...", help="CONFIG+=VALUE and CONFIG-=VALUE change lists.")
    ],
    dry_run: DryRun = False,
) -> None:
    """Set configs; the others stay unchanged.

    JSON: {"kind", "name", "changes": [{"operation", "config", "value"}]}.
    """
    _change(session, resource_type, name, [_parse_change(text) for text in changes], is_dry_run=dry_run)


@command(app, "unset")
def unset(
    session: Session,
    resource_type: TypeArgument,
    name: NameArgument,
    names: Annotated[list[str], typer.Argument(metavar="CONFIG...", help="Configs to reset to their defaults.")],
    dry_run: DryRun = False,
) -> None:
    """Reset configs to their defaults.

    JSON: same as `set`.
    """
    _change(session, resource_type, name, [("delete", each, None) for each in names], is_dry_run=dry_run)


def _change(
    session: Session, resource_type: ResourceType, name: str, changes: list[Change], *, is_dry_run: bool
) -> None:
    with session.admin() as admin:
        _require_resource(admin, resource_type, _wire_name(resource_type, name))
        change_configs(
            admin, _wire_type(resource_type), _wire_name(resource_type, name), changes, is_dry_run=is_dry_run
        )
    if session.is_json:
        documents = [{"operation": operation, "config": config, "value": value} for operation, config, value in changes]
        print_json({"kind": str(resource_type), "name": name, "changes": documents})
        return
    formats = {"set": "{0} = {1}", "append": "{0} += {1}", "subtract": "{0} -= {1}", "delete": "{0} unset"}
    shown = ", ".join(formats[operation].format(config, value) for operation, config, value in changes)
    print(f"{resource_type} {name}: {'valid: ' if is_dry_run else ''}{shown}")


def _parse_change(text: str) -> Change:
    config, separator, value = text.partition("=")
    operation = {"+": "append", "-": "subtract"}.get(config[-1:], "set")
    config = config.rstrip("+-") if operation != "set" else config
    if not separator or not config.strip():
        raise typer.BadParameter(f"{text!r} is not CONFIG=VALUE")
    return operation, config.strip(), value.strip()


def _require_resource(admin: "Admin", resource_type: ResourceType, name: str) -> None:
    """Fail at once for a missing topic or broker: the client would retry. Others need not exist."""
    if resource_type is ResourceType.TOPIC:
        require_topics(admin, [name])
    elif resource_type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) and name:
        ids = [str(each.node.id) for each in admin.describe_cluster().brokers]
        if name not in ids:
            raise CliError(
                f"broker {name!r} does not exist",
                f"Brokers: {', '.join(ids)}; '{CLUSTER_DEFAULT}' is the cluster-wide default.",
            )


def _wire_type(resource_type: ResourceType) -> str:
    return resource_type.value.replace("-", "_")


def _wire_name(resource_type: ResourceType, name: str) -> str:
    return "" if resource_type is ResourceType.BROKER and name == CLUSTER_DEFAULT else name


def _value(entry: "ConfigEntry") -> str:
    return "(secret)" if entry.is_sensitive else "" if entry.value is None else entry.value


def _document(entry: "ConfigEntry", *, has_doc: bool) -> dict[str, Any]:
    document: dict[str, Any] = {
        "name": entry.name,
        "value": entry.value,
        "source": entry.source,
        "is_read_only": entry.is_read_only,
        "is_sensitive": entry.is_sensitive,
        "synonyms": [{"name": name, "value": value, "source": source} for name, value, source in entry.synonyms],
    }
    return document | ({"documentation": entry.documentation} if has_doc else {})


def change_configs(
    admin: "Admin",
    resource_type: str,
    name: str,
    changes: Mapping[str, str | None] | Sequence[Change],
    *,
    is_dry_run: bool = False,
) -> None:
    """Change configs. Raises `CliError` for an unknown name, suggesting the most similar one."""
    from ottla.base.errors import ErrorCode
    from ottla.client.admin_results import ConfigResource
    from ottla.client.errors import BrokerError

    resource = ConfigResource(resource_type, name)
    try:
        admin.alter_configs({resource: changes}, validate_only=is_dry_run)
    except BrokerError as error:
        if error.code not in (ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST):
            raise
        known = admin.describe_configs([resource])[resource]
        names = list(changes) if isinstance(changes, Mapping) else [change[1] for change in changes]
        unknown = next((each for each in names if each not in known), None)
        if unknown is None:
            raise
        meant = nearest(unknown, known)
        advice = f"Did you mean {meant}? " if meant else ""
        shown = f"{resource_type.replace('_', '-')} {name or 'default'}"
        advice += f"`ottla config describe {shown} --all` shows all configs."
        raise CliError(f"{shown} has no config {unknown!r}", advice) from error
