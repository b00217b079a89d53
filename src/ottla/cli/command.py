"""How a function becomes a command: with the options that all words share, and without tracebacks for what is expected to go wrong."""

import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from ottla.cli.errors import CliError
from ottla.cli.main import INTERRUPTED
from ottla.cli.session import DEFAULT_BOOTSTRAP, TIMEOUT_SECONDS, Session, open_session

JSON_HELP = "Print JSON for programs instead of tables for people."
SHARED_NAMES = ("bootstrap", "client_config", "timeout", "is_json")
_PANEL = "Options of all words"


def command(
    app: typer.Typer, name: str, *, json_help: str = JSON_HELP
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a function to an app. Where its first parameter is a Session, the command gets the options that a session is made of."""

    def add(function: Callable[..., None]) -> Callable[..., None]:
        parameters = list(inspect.signature(function).parameters.values())
        has_session = bool(parameters) and parameters[0].annotation is Session
        shared = _shared_parameters(json_help) if has_session else []
        own = parameters[1:] if has_session else parameters

        def call(**arguments: Any) -> None:
            with _ErrorHandler():
                if has_session:
                    given = {each.name: arguments.pop(each.name) for each in shared}
                    function(open_session(**given), **arguments)
                else:
                    function(**arguments)

        named = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*own, *shared)]
        call.__name__ = function.__name__
        call.__doc__ = function.__doc__
        call.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
        call.__annotations__ = {each.name: each.annotation for each in named}
        app.command(name)(call)
        return function

    return add


def _shared_parameters(json_help: str) -> list[inspect.Parameter]:
    bootstrap = Annotated[
        str | None,
        typer.Option(
            "--bootstrap", "-b", metavar="HOST:PORT,...", envvar="OTTLA_BOOTSTRAP", rich_help_panel=_PANEL, show_default=DEFAULT_BOOTSTRAP,
            help="Brokers to begin with.",
        ),
    ]  # fmt: skip
    client_config = Annotated[
        Path | None,
        typer.Option(
            "--client-config",
            metavar="FILE",
            rich_help_panel=_PANEL,
            help="Configs of clients, as Kafka's client.properties.",
        ),
    ]
    timeout = Annotated[
        float,
        typer.Option(
            "--timeout", metavar="SECONDS", min=0.1, rich_help_panel=_PANEL, help="How long to wait for an answer."
        ),
    ]
    is_json = Annotated[bool, typer.Option("--json", rich_help_panel=_PANEL, help=json_help)]
    kinds = {"bootstrap": (bootstrap, None), "client_config": (client_config, None), "timeout": (timeout, TIMEOUT_SECONDS),
             "is_json": (is_json, False)}  # fmt: skip
    return [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
        for name, (kind, default) in kinds.items()
    ]


class _ErrorHandler:
    """Expected failures become a line and an exit code; Ctrl-C and a reader that has gone end the command without a word."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None:
            return
        from ottla.client.errors import ClientError

        if isinstance(error, BrokenPipeError):
            # Whoever read has seen enough. What is still in the buffer must not be complained about when the interpreter flushes it.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from error
        if isinstance(error, KeyboardInterrupt):
            raise typer.Exit(INTERRUPTED) from error
        if isinstance(error, CliError | ClientError):
            _print_error(error.message, error.advice)
            raise typer.Exit(1) from error
        if isinstance(error, OSError):
            where = f"{error.filename}: " if error.filename is not None else ""
            _print_error(f"{where}{error.strerror or error}", "")
            raise typer.Exit(1) from error


def _print_error(message: str, advice: str) -> None:
    sys.stdout.flush()
    print(f"ottla: {message}", file=sys.stderr)
    if advice:
        print(f"       {advice}", file=sys.stderr)
