"""`ottla profile set|list|show|delete`: bootstrap servers and client configs by name, for `--profile`."""

from typing import Annotated

import typer

from ottla.cli.client_configs import (
    check_values,
    known_configs,
    profile_names,
    profile_path,
    read_profile,
    require_profile,
    write_profile,
)
from ottla.cli.command import command
from ottla.cli.errors import CliError
from ottla.cli.options import parse_assignments
from ottla.cli.output import print_json, print_table
from ottla.cli.profile_completion import profile_completion
from ottla.cli.session import DEFAULT_BOOTSTRAP
from ottla.cli.usage import new_group

app = new_group("Keep bootstrap servers and client configs by name.")

BOOTSTRAP = "bootstrap.servers"
Name = Annotated[str, typer.Argument(metavar="NAME", autocompletion=profile_completion, help="Name of the profile.")]
Names = Annotated[
    list[str], typer.Argument(metavar="NAME...", autocompletion=profile_completion, help="Names of the profiles.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def register(root: typer.Typer) -> None:
    root.add_typer(app, name="profile")


@command(app, "set")
def set_(
    name: Name,
    assignments: Annotated[
        list[str] | None,
        typer.Argument(metavar="CONFIG=VALUE...", help="Client configs, as in Kafka's client.properties."),
    ] = None,
    unset: Annotated[
        list[str] | None, typer.Option("--unset", metavar="CONFIG", help="Remove this config; repeatable.")
    ] = None,
) -> None:
    """Create a profile or change its configs. Other configs of the profile stay as they are."""
    changes = known_configs(parse_assignments(assignments), "profile")
    if not changes and not unset:
        raise typer.BadParameter(f"no configs; set one, such as {BOOTSTRAP}={DEFAULT_BOOTSTRAP}")
    configs = read_profile(name) if profile_path(name).exists() else {}
    for each in unset or ():
        if configs.pop(each, None) is None:
            raise CliError(
                f"profile {name!r} has no config {each!r}", f"`ottla profile show {name}` shows its configs."
            )
    configs |= changes
    check_values(configs)
    write_profile(name, configs)


@command(app, "list")
def list_(is_json: Json = False) -> None:
    """List the profiles.

    JSON: a list of {"profile", "bootstrap"}.
    """
    rows = [(name, read_profile(name).get(BOOTSTRAP)) for name in profile_names()]
    if is_json:
        print_json([{"profile": name, "bootstrap": bootstrap} for name, bootstrap in rows])
    elif rows:
        print_table(("profile", "bootstrap"), rows)


@command(app, "show")
def show(name: Name, is_json: Json = False) -> None:
    """Show the configs of a profile.

    JSON: an object of configs and their values.
    """
    configs = read_profile(name)
    if is_json:
        print_json(configs)
        return
    for key, value in configs.items():
        print(f"{key}={value}")


@command(app, "delete")
def delete(names: Names) -> None:
    """Delete profiles."""
    for name in names:
        require_profile(name)
    for name in names:
        profile_path(name).unlink(missing_ok=True)
        print(f"{name}: deleted")
