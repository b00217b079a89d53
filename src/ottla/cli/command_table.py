"""The words of the command line that are loaded late: where each lives, and one line about it.

A word's module has `register(root)`, which adds its command or its group of commands to the typer app `root`:

    def register(root: typer.Typer) -> None:
        command(root, "demo")(demo)              # ottla.cli.command: the guard against tracebacks, and the options all words share

To add a word is to write its module and its line here; help, completion and docs/cli.md follow.
"""

from typing import NamedTuple


class CommandSpec(NamedTuple):
    """`module` is imported when the word is used, not before: `ottla start` must not pay for it."""

    module: str
    summary: str


BUILTIN_COMMANDS = {"start": "start a node in the foreground", "version": "print the version"}
"""Words that run without typer, in ottla.cli.main: a broker that starts fast."""

LAZY_COMMANDS: dict[str, CommandSpec] = {
    "topic": CommandSpec("ottla.cli.topic", "create, list, describe, alter and delete topics"),
    "produce": CommandSpec("ottla.cli.produce", "send records: lines of files, of a pipe or of the command line"),
    "consume": CommandSpec("ottla.cli.consume", "read records, up to the end or for as long as they come"),
    "group": CommandSpec("ottla.cli.group", "look at groups and their lag, reset their offsets, delete them"),
    "config": CommandSpec("ottla.cli.config", "show and change configs of topics, brokers and groups"),
    "cluster": CommandSpec("ottla.cli.cluster", "describe the cluster: nodes, controller, quorum, features"),
    "log": CommandSpec("ottla.cli.log", "look into data directories: dump, verify and measure what is stored"),
    "perf": CommandSpec("ottla.cli.perf", "measure rates and latencies"),
    "format": CommandSpec("ottla.cli.format", "format the data directories of a node"),
    "completion": CommandSpec("ottla.cli.completion", "teach a shell to complete these words"),
    "demo": CommandSpec("ottla.cli.demo", "watch a broker, traffic, and a group that loses a consumer"),
}
