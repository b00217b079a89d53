"""The typer app: build it with the commands that are needed, run it, and return an exit code."""

import argparse
import inspect
import os
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Annotated, Any

import typer

from ottla.cli.command_table import BUILTIN_COMMANDS, LAZY_COMMANDS
from ottla.cli.errors import print_error
from ottla.cli.main import ALL_COMMANDS, COMPLETION_VARIABLE, USAGE_ERROR, make_parsers
from ottla.cli.usage import USAGE_ERROR_TYPE, HelpCommand, HelpGroup, describe_usage_error


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code."""
    app = _build_for(arguments)
    try:
        result = app(list(arguments), prog_name="ottla", standalone_mode=False)
    except USAGE_ERROR_TYPE as error:
        return _print_usage_error(error, f"ottla {arguments[0]}" if arguments else "ottla")
    return result if isinstance(result, int) else 0


def build(commands: Iterable[str]) -> typer.Typer:
    """Build the app with these commands."""
    root = typer.Typer(
        name="ottla",
        cls=HelpGroup,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"]},
    )

    @root.callback()
    def ottla() -> None:
        """A Kafka-compatible event log in Python. Every Kafka client works unchanged."""

    for name in commands:
        if name in BUILTIN_COMMANDS:
            _add_builtin(root, name)
        else:
            import_module(LAZY_COMMANDS[name].module).register(root)
    return root


def _build_for(arguments: Sequence[str]) -> typer.Typer:
    """Build the app with the command that is used. A completing shell passes the line so far in a variable."""
    is_completing = COMPLETION_VARIABLE in os.environ
    line = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS") or ""
    words = line.split()[1:] if is_completing else list(arguments)
    is_complete = not is_completing or len(words) > 1 or line.endswith(" ")
    if words and is_complete and words[0] in ALL_COMMANDS:
        return build([words[0]])
    return _build_outline()


def _build_outline() -> typer.Typer:
    """Build an app with only the names and summaries of the commands, without importing their modules."""
    root = build([])
    for name, summary in {**BUILTIN_COMMANDS, **{name: spec.summary for name, spec in LAZY_COMMANDS.items()}}.items():
        root.command(name, help=f"{summary[0].upper()}{summary[1:]}.")(lambda: None)
    return root


def _print_usage_error(error: Any, command: str) -> int:
    """Print the error and where to find help. typer shows help by raising an error without a message."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error.ctx.get_help(), file=sys.stderr)
        return USAGE_ERROR
    message, advice = describe_usage_error(error)
    path = command if context is None else context.command_path
    print_error(message, advice, f"see: {path} --help")
    return int(error.exit_code)


def _add_builtin(root: typer.Typer, name: str) -> None:
    """Describe `start` or `version` to typer, from its argparse options, for completion and docs/cli.md."""
    parser = make_parsers()[name]

    def call(**_: Any) -> None:
        raise AssertionError(f"{name} runs without typer")

    actions = [each for each in parser._actions if not isinstance(each, argparse._HelpAction)]
    call.__signature__ = inspect.Signature([_parameter(each) for each in actions])  # type: ignore[attr-defined]
    call.__annotations__ = {each.dest: _typer_type(each) for each in actions}
    root.command(name, cls=HelpCommand, help=parser.description)(call)


def _parameter(action: argparse.Action) -> inspect.Parameter:
    default = False if _is_flag(action) else None
    return inspect.Parameter(
        action.dest, inspect.Parameter.KEYWORD_ONLY, annotation=_typer_type(action), default=default
    )


def _typer_type(action: argparse.Action) -> Any:
    metavar = (
        action.metavar if isinstance(action.metavar, str) else "|".join(action.choices) if action.choices else None
    )
    if not action.option_strings:
        return Annotated[str | None, typer.Argument(metavar=metavar, help=action.help)]
    type_: Any = (
        bool if _is_flag(action) else list[str] | None if isinstance(action, argparse._AppendAction) else str | None
    )
    choices = list(action.choices or ())
    return Annotated[
        type_,
        typer.Option(
            *action.option_strings,
            metavar=None if type_ is bool else metavar,
            help=action.help,
            autocompletion=(lambda: choices) if choices else None,
        ),
    ]


def _is_flag(action: argparse.Action) -> bool:
    return isinstance(action, argparse._StoreTrueAction)
