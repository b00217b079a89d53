"""The command table: which module implements each command, and a one-line summary.

The module of a lazy command has `register(root)`, which adds the command or command group to the typer app `root`:

    def register(root: typer.Typer) -> None:
        command(root, "demo")(demo)              # ottla.cli.command: error handling and shared options

To add a command, write its module and add a line here; help, completion and docs/cli.md follow.
"""

from typing import NamedTuple


class CommandSpec(NamedTuple):
    """A lazy command. `module` is imported only when the command runs, so that `ottla start` stays fast."""

    module: str
    summary: str


BUILTIN_COMMANDS = {"start": "start a node in the foreground", "version": "print the version"}
"""Commands that `ottla.cli.main` runs with argparse alone, without importing typer."""

LAZY_COMMANDS: dict[str, CommandSpec] = {
    "topic": CommandSpec("ottla.cli.topic", "create, list, describe, alter and delete topics"),
    "produce": CommandSpec("ottla.cli.produce", "send records from files, stdin or the command line"),
    "consume": CommandSpec("ottla.cli.consume", "read records up to the end of the topic, or follow it"),
    "wait": CommandSpec("ottla.cli.wait", "wait until a broker serves, for scripts and CI"),
    "group": CommandSpec("ottla.cli.group", "list and describe groups, show lag, reset offsets, delete"),
    "config": CommandSpec("ottla.cli.config", "show and change configs of topics, brokers and groups"),
    "profile": CommandSpec("ottla.cli.profile", "keep bootstrap servers and client configs by name"),
    "cluster": CommandSpec("ottla.cli.cluster", "describe the cluster: nodes, controller, quorum, features"),
    "log": CommandSpec("ottla.cli.log", "inspect data directories: dump, verify, statistics"),
    "perf": CommandSpec("ottla.cli.perf", "measure throughput and latency"),
    "format": CommandSpec("ottla.cli.format", "format a node's data directories"),
    "completion": CommandSpec("ottla.cli.completion", "print a shell completion script"),
    "demo": CommandSpec("ottla.cli.demo", "watch a consumer group lose a member and rebalance"),
}
