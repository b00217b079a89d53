"""`start` and `version` as typer knows them: their options, read off argparse, for completion and docs/cli.md. Both run without typer."""

import argparse
import inspect
from typing import Annotated, Any

import typer

from ottla.cli.main import make_parser


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
