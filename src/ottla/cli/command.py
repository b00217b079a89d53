"""Turn a function into a command: add the shared options, and print expected errors without a traceback."""

import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Self, get_args

import typer

from ottla.cli.errors import CliError, is_text, print_error
from ottla.cli.main import INTERRUPTED
from ottla.cli.profile_completion import profile_completion
from ottla.cli.session import (
    BOOTSTRAP_VARIABLE,
    DEFAULT_BOOTSTRAP,
    PROFILE_VARIABLE,
    TIMEOUT_SECONDS,
    Session,
    open_session,
)
from ottla.cli.termination import TERMINATED, Terminated, TerminationHandler
from ottla.cli.usage import HelpCommand

JSON_HELP = "Print JSON instead of tables."
SHARED_NAMES = ("bootstrap", "client_config", "profile", "timeout", "is_json")
TIMEOUT_SECONDS_MAX = 86_400.0
TEXT_BYTES_MAX = 32_767
"""Upper limit of names and config values in Kafka's protocol."""
_PATH_METAVARS = ("FILE", "PATH", "DIR")
_PANEL = "Connection and output options"

BootstrapOption = Annotated[
    str | None,
    typer.Option(
        "--bootstrap",
        "-b",
        metavar="HOST:PORT,...",
        rich_help_panel=_PANEL,
        show_default=f"{BOOTSTRAP_VARIABLE}, or {DEFAULT_BOOTSTRAP}",
        help="Initial brokers to connect to.",
    ),
]
ClientConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--client-config",
        metavar="FILE",
        rich_help_panel=_PANEL,
        help="Client configs, as in Kafka's client.properties.",
    ),
]
ProfileOption = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        rich_help_panel=_PANEL,
        show_default=PROFILE_VARIABLE,
        autocompletion=profile_completion,
        help="Brokers and client configs that `ottla profile set` has stored.",
    ),
]
TimeoutOption = Annotated[
    float,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        min=0.1,
        max=TIMEOUT_SECONDS_MAX,
        rich_help_panel=_PANEL,
        help="Time limit for a response or a delivery, retries included.",
    ),
]


def command(
    app: typer.Typer, name: str, *, json_help: str = JSON_HELP, requires_broker: bool = True
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a function to an app as a command; with the shared options if its first parameter is a `Session`.

    Commands that require a broker fail at once if none listens.
    """

    def add(function: Callable[..., None]) -> Callable[..., None]:
        parameters = list(inspect.signature(function).parameters.values())
        has_session = bool(parameters) and parameters[0].annotation is Session
        shared = _shared_parameters(json_help) if has_session else []
        own = parameters[1:] if has_session else parameters

        def call(**arguments: Any) -> None:
            with _ErrorHandler() as errors, TerminationHandler():
                for each in named:
                    _check_text(each, arguments[each.name])
                if has_session:
                    shared_options = {each.name: arguments.pop(each.name) for each in shared}
                    session = open_session(**shared_options, requires_broker=requires_broker)
                    errors.bootstrap = session.bootstrap
                    function(session, **arguments)
                else:
                    function(**arguments)

        named = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*own, *shared)]
        call.__name__ = function.__name__
        call.__doc__ = function.__doc__
        call.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
        call.__annotations__ = {each.name: each.annotation for each in named}
        app.command(name, cls=HelpCommand)(call)
        return function

    return add


def _check_text(parameter: inspect.Parameter, value: Any) -> None:
    """Reject text that no request can contain. Paths may contain any bytes, and parts of records may be long."""
    metavars = [str(getattr(each, "metavar", "")) for each in get_args(parameter.annotation)]
    if any(each.startswith(_PATH_METAVARS) for each in metavars):
        return
    is_record = "TEXT" in metavars or parameter.name == "header"
    for each in value if isinstance(value, list) else [value]:
        if not isinstance(each, str):
            continue
        if "TEXT" not in metavars and not is_text(each):
            raise typer.BadParameter(f"{os.fsencode(each)!r} is not valid UTF-8")
        if not is_record and len(each.encode()) > TEXT_BYTES_MAX:
            raise typer.BadParameter(f"{each[:20]}... is longer than {TEXT_BYTES_MAX} bytes")


def _shared_parameters(json_help: str) -> list[inspect.Parameter]:
    is_json = Annotated[bool, typer.Option("--json", rich_help_panel=_PANEL, help=json_help)]
    options = {
        "bootstrap": (BootstrapOption, None),
        "client_config": (ClientConfigOption, None),
        "profile": (ProfileOption, None),
        "timeout": (TimeoutOption, TIMEOUT_SECONDS),
        "is_json": (is_json, False),
    }
    return [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
        for name, (annotation, default) in options.items()
    ]


class _ErrorHandler:
    """Turns expected errors into a message and an exit code.

    Ctrl-C, SIGTERM and a closed stdout end the command silently.
    """

    def __init__(self) -> None:
        self.bootstrap = ""
        """The addresses that the command was given, once it has a session."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None:
            return
        from ottla.client.errors import ADVICE, ClientError, ClientTimeoutError

        if isinstance(error, BrokenPipeError):
            # The reader has closed the pipe: avoid another error when the interpreter flushes the rest at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from error
        if isinstance(error, KeyboardInterrupt):
            raise typer.Exit(TERMINATED if isinstance(error, Terminated) else INTERRUPTED) from error
        if isinstance(error, CliError | ClientError):
            sys.stdout.flush()
            advice = error.advice
            is_general = isinstance(error, ClientTimeoutError) and advice == ADVICE[error.default_code]
            if is_general and self.bootstrap not in error.message:
                advice = f"Check that a broker serves at {self.bootstrap} and is not overloaded, then retry."
            print_error(error.message, advice)
            raise typer.Exit(1) from error
        if isinstance(error, OSError):
            path = f"{error.filename}: " if error.filename is not None else ""
            print_error(f"{path}{error.strerror or error}")
            raise typer.Exit(1) from error
