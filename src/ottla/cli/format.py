"""`ottla format`: format data directories before the first start, as kafka-storage does."""

import argparse
import os
import socket
from typing import Annotated

import typer

from ottla.cli.command import command
from ottla.cli.errors import CliError
from ottla.cli.output import print_json
from ottla.cli.settings import UsageError, node_settings

PropertiesFile = Annotated[
    str | None,
    typer.Argument(metavar="FILE.properties", help="Config file in the format of Kafka's server.properties."),
]
ConfigFile = Annotated[
    str | None,
    typer.Option("--config", "-c", metavar="FILE.properties", help="The same, as kafka-storage spells it."),
]
Settings = Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A config; repeatable.")]
DataDirectory = Annotated[
    str | None, typer.Option("--data", metavar="DIR", help="Data directory.", show_default="./ottla-data")
]
ClusterId = Annotated[
    str | None,
    typer.Option("--cluster-id", "-t", metavar="ID", help="16 bytes in URL-safe base64.", show_default="a new one"),
]
IgnoreFormatted = Annotated[
    bool, typer.Option("--ignore-formatted", "-g", help="Do not fail if directories are already formatted.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def register(root: typer.Typer) -> None:
    command(root, "format")(format_)


def format_(
    file: PropertiesFile = None,
    config: ConfigFile = None,
    settings: Settings = None,
    data: DataDirectory = None,
    cluster_id: ClusterId = None,
    ignore_formatted: IgnoreFormatted = False,
    is_json: Json = False,
) -> None:
    """Format a node's data directories, which `ottla start` otherwise does on its first start.

    JSON: {"cluster_id", "node_id", "directories": [{"path", "directory_id", "is_new"}]}.
    """
    from ottla.base.ids import uuid_text
    from ottla.metadata.configs import InvalidConfig
    from ottla.node.config import ConfigError, node_config
    from ottla.node.errors import StartError
    from ottla.node.main import format_storage

    if file is not None and config is not None:
        raise typer.BadParameter("pass the file either as an argument or with --config, not both")
    arguments = argparse.Namespace(
        file=file or config, set=settings or [], data=data, host=None, port=None, advertise=None
    )
    try:
        configs, sources = node_settings(arguments, temporary=None, canonical_host=socket.getfqdn)
        node = node_config(configs, sources=sources, cluster_id=cluster_id)
        formatted = [
            path
            for path in dict.fromkeys((node.metadata_log_dir, *node.log_dirs))
            if os.path.exists(f"{path}/meta.properties")
        ]
        if formatted and not ignore_formatted:
            raise CliError(
                f"{', '.join(formatted)}: already formatted", "Pass --ignore-formatted to leave them as they are."
            )
        storage = format_storage(node)
    except UsageError as error:
        raise typer.BadParameter(str(error)) from error
    except (ConfigError, InvalidConfig, StartError) as error:
        raise CliError(str(error)) from error
    rows = [(each.path, uuid_text(each.directory_id), each.path not in formatted) for each in storage.directories]
    if is_json:
        directories = [dict(zip(("path", "directory_id", "is_new"), row, strict=True)) for row in rows]
        print_json({"cluster_id": storage.cluster_id, "node_id": storage.node_id, "directories": directories})
        return
    print(f"cluster {storage.cluster_id}, node {storage.node_id}")
    for path, directory_id, is_new in rows:
        print(f"{path}: {'formatted' if is_new else 'already formatted'}, id {directory_id}")
