"""The typer app: made of the words that are needed, run, and its ending turned into an exit code."""

import argparse
import inspect
import os
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Annotated, Any, cast

import typer

from ottla.cli.command_table import BUILTIN_COMMANDS, LAZY_COMMANDS
from ottla.cli.main import COMPLETION_VARIABLE, make_parser

USAGE_ERROR_TYPE = cast(type[Exception], typer.BadParameter.__mro__[2])
"""The root of what typer raises for wrong calls. Some versions of typer carry it themselves, some take it from click."""

ALL_COMMANDS = (*BUILTIN_COMMANDS, *LAZY_COMMANDS)


def run(arguments: Sequence[str]) -> int:
    """Run a word; its exit code."""
    app = _build_for(arguments)
    try:
        ended = app(list(arguments), prog_name="ottla", standalone_mode=False)
    except USAGE_ERROR_TYPE as error:
        return _print_usage_error(error)
    except typer.Abort:
        print("ottla: nothing was done", file=sys.stderr)
        return 1
    return ended if isinstance(ended, int) else 0


def build(words: Iterable[str]) -> typer.Typer:
    """`ottla` with these words."""
    root = typer.Typer(
        name="ottla",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"]},
    )

    @root.callback()
    def ottla() -> None:
        """The event log that Apache Kafka describes, in Python. Any Kafka client connects unchanged."""

    for word in words:
        if word in BUILTIN_COMMANDS:
            describe(root, word)
        else:
            import_module(LAZY_COMMANDS[word].module).register(root)
    return root


def _build_for(arguments: Sequence[str]) -> typer.Typer:
    """The app with the one word that is needed. A shell that asks for completion passes the line so far in a variable of its own."""
    is_completing = COMPLETION_VARIABLE in os.environ
    line = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS") or ""
    asked = line.split()[1:] if is_completing else list(arguments)
    is_written = not is_completing or len(asked) > 1 or line.endswith(" ")
    if asked and is_written and asked[0] in ALL_COMMANDS:
        return build([asked[0]])
    return _build_outline()


def _build_outline() -> typer.Typer:
    """Only the names of the words, and what each is about: enough to choose one, and nothing is loaded."""
    root = build([])
    for name, summary in {**BUILTIN_COMMANDS, **{name: word.summary for name, word in LAZY_COMMANDS.items()}}.items():
        root.command(name, help=f"{summary[0].upper()}{summary[1:]}.")(lambda: None)
    return root


def _print_usage_error(error: Any) -> int:
    """One line, and where help is. An error without a message is typer's way of showing help."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return 2
    print(f"ottla: {error.format_message()}", file=sys.stderr)
    if context is not None:
        print(f"       see: {context.command_path} --help", file=sys.stderr)
    return int(error.exit_code)


def describe(root: typer.Typer, name: str) -> None:
    words = next(each for each in make_parser()._actions if isinstance(each, argparse._SubParsersAction))
    parser = words.choices[name]

    def call(**_: Any) -> None:
        raise AssertionError(f"{name} is served before typer is asked")

    actions = [each for each in parser._actions if not isinstance(each, argparse._HelpAction)]
    call.__signature__ = inspect.Signature([_parameter(each) for each in actions])  # type: ignore[attr-defined]
    call.__annotations__ = {each.dest: _kind(each) for each in actions}
    root.command(name, help=parser.description.strip() if parser.description else "Print the version.")(call)


def _parameter(action: argparse.Action) -> inspect.Parameter:
    default = False if _is_flag(action) else None
    return inspect.Parameter(action.dest, inspect.Parameter.KEYWORD_ONLY, annotation=_kind(action), default=default)


def _kind(action: argparse.Action) -> Any:
    metavar = (
        action.metavar if isinstance(action.metavar, str) else "|".join(action.choices) if action.choices else None
    )
    if not action.option_strings:
        return Annotated[str | None, typer.Argument(metavar=metavar, help=action.help)]
    kind: Any = (
        bool if _is_flag(action) else list[str] | None if isinstance(action, argparse._AppendAction) else str | None
    )
    choices = list(action.choices or ())
    return Annotated[
        kind,
        typer.Option(
            *action.option_strings,
            metavar=None if kind is bool else metavar,
            help=action.help,
            autocompletion=(lambda: choices) if choices else None,
        ),
    ]


def _is_flag(action: argparse.Action) -> bool:
    return isinstance(action, argparse._StoreTrueAction)
