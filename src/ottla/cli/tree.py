"""The typer app: made of the words that are needed, run, and its ending turned into an exit code."""

import os
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any, cast

import typer

from ottla.cli.main import COMPLETION_VARIABLE
from ottla.cli.words import WORDS

CALLED_WRONGLY = cast(type[Exception], typer.BadParameter.__mro__[2])
"""The root of what typer raises for wrong calls. Some versions of typer carry it themselves, some take it from click."""

ALL_WORDS = ("start", *WORDS)
"""`start` stands for `version` as well: both are served without typer, and only described to it."""


def run(arguments: Sequence[str]) -> int:
    """Run a word; its exit code."""
    app = build(_needed(arguments))
    try:
        ended = app(list(arguments), prog_name="ottla", standalone_mode=False)
    except CALLED_WRONGLY as error:
        return _on_wrong_call(error)
    except typer.Abort:
        print("ottla: nothing was done", file=sys.stderr)
        return 1
    return ended if isinstance(ended, int) else 0


def build(words: Iterable[str]) -> typer.Typer:
    """`ottla` with these words."""
    root = typer.Typer(
        name="ottla", no_args_is_help=True, pretty_exceptions_enable=False, context_settings={"help_option_names": ["--help", "-h"]}
    )

    @root.callback()
    def ottla() -> None:
        """The event log that Apache Kafka describes, in Python. Any Kafka client connects unchanged."""

    for word in words:
        import_module(WORDS[word].module if word in WORDS else "ottla.cli.served_words").register(root)
    return root


def _needed(arguments: Sequence[str]) -> list[str]:
    """One word where it is known which, else all of them. A shell that asks for completion passes the line so far in its own variable."""
    line = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS") or ""
    asked = line.split()[1:] if COMPLETION_VARIABLE in os.environ else list(arguments)
    is_written = COMPLETION_VARIABLE not in os.environ or len(asked) > 1 or line.endswith(" ")
    if asked and asked[0] in ALL_WORDS and is_written:
        return [asked[0]]
    return list(ALL_WORDS)


def _on_wrong_call(error: Any) -> int:
    """One line, and where help is. An error without a message is typer's way of showing help."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return 2
    print(f"ottla: {error.format_message()}", file=sys.stderr)
    if context is not None:
        print(f"       see: {context.command_path} --help", file=sys.stderr)
    return int(error.exit_code)
