"""`ottla completion`, and completion of topic, group and resource names by asking the broker.

Without a broker that responds within a second, no names are offered.
"""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.command import command
from ottla.cli.main import COMPLETION_VARIABLE
from ottla.cli.session import open_session

if TYPE_CHECKING:
    from ottla.client import Admin

COMPLETION_SECONDS_MAX = 1.0


def _names(context: typer.Context, incomplete: str, list_names: "Callable[[Admin], list[str]]") -> list[str]:
    file = context.params.get("client_config")
    try:
        session = open_session(
            bootstrap=context.params.get("bootstrap"),
            profile=context.params.get("profile"),
            client_config=Path(file) if file else None,
            timeout=COMPLETION_SECONDS_MAX,
            is_json=False,
        )
        with session.admin() as admin:
            return [name for name in list_names(admin) if name.startswith(incomplete)]
    except Exception:  # an error message would garble the line being typed
        return []


def complete_from(*values: str) -> "Callable[[str], list[str]]":
    """Return a completion of fixed values."""
    return lambda incomplete: [value for value in values if value.startswith(incomplete)]


def topic_names(context: typer.Context, incomplete: str) -> list[str]:
    return _names(context, incomplete, lambda admin: list(admin.list_topics()))


def group_names(context: typer.Context, incomplete: str) -> list[str]:
    return _names(context, incomplete, lambda admin: list(admin.list_groups()))


def resource_names(context: typer.Context, incomplete: str) -> list[str]:
    """Complete names of the resource type that was typed before."""

    def list_names(admin: "Admin") -> list[str]:
        match str(context.params.get("resource_type")):
            case "topic":
                return list(admin.list_topics())
            case "group":
                return list(admin.list_groups())
            case "broker" | "broker-logger":
                return [str(each.node.id) for each in admin.describe_cluster().brokers]
            case _:
                return [each.name for each in admin.list_config_resources(["client_metrics"])]

    return _names(context, incomplete, list_names)


class Shell(StrEnum):
    """Shells with completion support."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"


def register(root: typer.Typer) -> None:
    command(root, "completion")(completion)


def completion(shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh, fish or powershell.")]) -> None:
    """Print a script that completes commands, options, topics and groups; `ottla --install-completion` installs it.

    For the current shell only: eval "$(ottla completion bash)".
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    print(get_completion_script(prog_name="ottla", complete_var=COMPLETION_VARIABLE, shell=shell.value))
