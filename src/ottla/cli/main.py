"""Entry point of `ottla`. Imports only what the command needs, so that `ottla start` starts fast."""

import argparse
import io
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from ottla import __version__
from ottla.cli.command_table import BUILTIN_COMMANDS, LAZY_COMMANDS
from ottla.cli.errors import nearest, print_error
from ottla.cli.examples import EXAMPLES
from ottla.cli.help import HelpPage

USAGE_ERROR = 2
INTERRUPTED = 130
COMPLETION_VARIABLE = "_OTTLA_COMPLETE"
"""Set by the shell to request completions."""
COMPLETION_OPTIONS = ("--install-completion", "--show-completion")
ALL_COMMANDS = (*BUILTIN_COMMANDS, *LAZY_COMMANDS)
TRACEBACK_VARIABLE = "OTTLA_TRACEBACK"
"""Set it to see the traceback of an unexpected error."""
_DESCRIPTION = "A Kafka-compatible event log in Python. Every Kafka client works unchanged."
_EXAMPLES = """\
ottla demo                              watch a consumer group lose a member and rebalance
ottla start --ephemeral                 start a broker on 127.0.0.1:9092; delete its data on exit
ottla start                             the same, with data kept in ./ottla-data
ottla topic create orders               create a topic
echo hello | ottla produce orders       write a record
ottla consume orders                    read it back"""
_START_DESCRIPTION = """\
Start a node (broker and controller in one process) in the foreground. Ctrl-C or SIGTERM stops it cleanly.

Without a file it listens on 127.0.0.1:9092 and keeps its data in ./ottla-data. A new or empty directory is formatted on
the first start; a directory with other files is rejected.

Options override --set, and --set overrides the file. Unknown config names are rejected with a suggestion."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0, 1 if it failed, 2 for a usage error, 130 after Ctrl-C."""
    _open_missing_streams()
    try:
        code = _run(sys.argv[1:] if argv is None else list(argv))
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # the last resort: a bug, or a full disk behind stdout
        _discard_output()
        _print_unexpected(error)
        return 1
    return code


def _run(words: list[str]) -> int:
    first = words[0] if words else ""
    if COMPLETION_VARIABLE in os.environ or first in LAZY_COMMANDS or first in COMPLETION_OPTIONS:
        from ottla.cli.app import run

        return run(words)
    match first:
        case "":
            print(_help_page().render())
            return USAGE_ERROR
        case "--help" | "-h":
            print(_help_page().render())
            return 0
        case "--version":
            print(f"ottla {__version__}")
            return 0
        case "start" | "version":
            return _run_builtin(words)
    what = "option" if first.startswith("-") else "command"
    meant = nearest(first, (*ALL_COMMANDS, "--help", "--version", *COMPLETION_OPTIONS))
    print_error(f"no {what} {first!r}", f"Did you mean {meant}?" if meant else "", "see: ottla --help")
    return USAGE_ERROR


def _run_builtin(words: list[str]) -> int:
    try:
        arguments = make_parsers()[words[0]].parse_args(words[1:])
    except SystemExit as ended:  # argparse has printed help or an error
        return ended.code if isinstance(ended.code, int) else USAGE_ERROR
    if words[0] == "version":
        print(f"ottla {__version__}")
        return 0
    if sys.platform == "win32":
        print_error("Windows is not supported; run Ottla in WSL 2 (Linux is supported, macOS is untested).")
        return 1
    from ottla.cli.start import start

    return start(arguments)


def _open_missing_streams() -> None:
    """Replace standard streams that are closed, and make the others accept any text."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115  # until the process ends
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Discard what stdout still buffers: the interpreter would fail to flush it at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_unexpected(error: Exception) -> None:
    if isinstance(error, OSError):
        path = f"{error.filename}: " if error.filename is not None else ""
        print_error(f"{path}{error.strerror or error}")
        return
    if os.environ.get(TRACEBACK_VARIABLE):
        import traceback

        traceback.print_exception(error)
    text = " ".join(f"{type(error).__name__}: {error}".split())
    print_error(f"unexpected error: {text[:200]}", f"This is a bug; {TRACEBACK_VARIABLE}=1 prints where it happened.")


class _Parser(argparse.ArgumentParser):
    """A parser whose help and errors look like those of the other commands."""

    def format_help(self) -> str:
        rows = [(_option_names(each), str(each.help)) for each in self._actions if each.option_strings]
        arguments = [(f"[{each.metavar}]", str(each.help)) for each in self._actions if not each.option_strings]
        usage = " ".join([self.prog, *(name for name, _ in arguments), "[OPTIONS]"])
        sections = [("Arguments", arguments), ("Options", rows)]
        return HelpPage(usage, self.description or "", sections, EXAMPLES[self.prog.partition(" ")[2]]).render() + "\n"

    def error(self, message: str) -> NoReturn:
        message, advice = _rephrase(message, [name for each in self._actions for name in each.option_strings])
        print_error(message, advice, f"see: {self.prog} --help")
        sys.exit(USAGE_ERROR)


def _rephrase(message: str, options: Sequence[str]) -> tuple[str, str]:
    """Return argparse's message in the words of this command line, and a suggestion or an empty string."""
    unknown = re.fullmatch(r"unrecognized arguments: (.*)", message, re.DOTALL)
    if unknown is not None:
        first = unknown[1].partition(" ")[0]
        meant = nearest(first, options)
        if first.startswith("-"):
            return f"no option {first}", f"Did you mean {meant}?" if meant else ""
        return f"unexpected argument: {first}", ""
    message = message.removeprefix("argument ").replace(": expected one argument", " needs a value")
    message = re.sub(r"^(\S+): ignored explicit argument .*", r"\1 does not take a value", message, flags=re.DOTALL)
    choice = re.fullmatch(r"(\S+): invalid choice: (.*) \(choose from (.*)\)", message, re.DOTALL)
    if choice is not None:
        return f"{choice[1]}: {choice[2]} is not one of {choice[3].replace(chr(39), '')}", ""
    return message.replace("not allowed with argument", "cannot be combined with"), ""


def _option_names(action: argparse.Action) -> str:
    choices = "|".join(str(each) for each in action.choices or ())
    metavar = action.metavar if isinstance(action.metavar, str) else choices or action.dest.upper()
    return ", ".join(action.option_strings) + (f" {metavar}" if action.nargs != 0 else "")


def _help_page() -> HelpPage:
    summaries = {**BUILTIN_COMMANDS, **{name: spec.summary for name, spec in LAZY_COMMANDS.items()}}
    commands = [(name, f"{summary[0].upper()}{summary[1:]}.") for name, summary in summaries.items()]
    options = [
        ("-h, --help", "Show this page."),
        ("--version", "Print the version."),
        ("--install-completion", "Complete commands, options, topics and groups in this shell from now on."),
        ("--show-completion", "Print the completion script of this shell."),
    ]
    return HelpPage("ottla COMMAND [OPTIONS]", _DESCRIPTION, [("Commands", commands), ("Options", options)], _EXAMPLES)


def make_parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of the commands that run without typer."""
    start = _Parser(prog="ottla start", description=_START_DESCRIPTION, add_help=False)
    start.add_argument(
        "file", nargs="?", metavar="FILE.properties", help="Config file in the format of Kafka's server.properties."
    )
    start.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="A config; repeatable.")
    start.add_argument(
        "--host", metavar="HOST", help="Address to listen on; 0.0.0.0 for all interfaces. [default: 127.0.0.1]"
    )
    start.add_argument(
        "--port", metavar="PORT", type=_port, help="Port to listen on; 0 for any free port. [default: 9092]"
    )
    start.add_argument("--advertise", metavar="HOST[:PORT]", help="Address that clients connect to, if different.")
    location = start.add_mutually_exclusive_group()
    location.add_argument("--data", metavar="DIR", help="Data directory. [default: ./ottla-data]")
    location.add_argument(
        "--ephemeral", action="store_true", help="Keep data in a temporary directory, deleted on exit."
    )
    start.add_argument("--cluster-id", metavar="ID", help="Required cluster id; a new directory is formatted with it.")
    start.add_argument(
        "--log-level",
        metavar="LEVEL",
        choices=("debug", "info", "warning", "error"),
        default="warning",
        help="Log level on stderr: debug, info, warning or error. [default: warning]",
    )
    version = _Parser(prog="ottla version", description="Print the version.", add_help=False)
    for each in (start, version):
        each.add_argument("-h", "--help", action="help", help="Show this page.")
    return {"start": start, "version": version}


def _port(text: str) -> int:
    port = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else -1
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port number from 0 to 65535")
    return port
