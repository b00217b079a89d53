"""`ottla completion`: the lines that teach a shell to complete the words of this command."""

from enum import StrEnum
from typing import Annotated

import typer

from ottla.cli.command import command
from ottla.cli.main import COMPLETION_VARIABLE


class Shell(StrEnum):
    """Those that can be taught."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"


def register(root: typer.Typer) -> None:
    command(root, "completion")(completion)


def completion(shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh, fish or powershell.")]) -> None:
    """Print what teaches a shell to complete commands, options, topics and groups; `ottla --install-completion` installs it.

    For the shell at hand: eval "$(ottla completion bash)".
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    print(get_completion_script(prog_name="ottla", complete_var=COMPLETION_VARIABLE, shell=shell.value))
