"""Entry point of `ottla`. Imports only what the command needs, so that `ottla start` starts fast."""

import argparse
import os
import sys
from collections.abc import Sequence

from ottla import __version__
from ottla.cli.command_table import BUILTIN_COMMANDS, LAZY_COMMANDS

USAGE_ERROR = 2
INTERRUPTED = 130
COMPLETION_VARIABLE = "_OTTLA_COMPLETE"
"""Set by the shell to request completions."""
COMPLETION_OPTIONS = ("--install-completion", "--show-completion")
_DESCRIPTION = "A Kafka-compatible event log in Python. Every Kafka client works unchanged."
_EXAMPLES = """\
getting started:
  ottla demo                              watch a consumer group lose a member and rebalance
  ottla start --ephemeral                 start a broker on 127.0.0.1:9092; delete its data on exit
  ottla start                             the same, with data kept in ./ottla-data
  ottla start --help                      all options of the broker
  ottla topic create orders               create a topic
  echo hello | ottla produce orders       write a record
  ottla consume orders                    read it back
"""
_START_DESCRIPTION = """\
Start a node (broker and controller in one process) in the foreground. Ctrl-C or SIGTERM stops it cleanly.

Without a file it listens on 127.0.0.1:9092 and keeps its data in ./ottla-data. The directory is created and
formatted on the first start; delete it to start from scratch.
"""
_START_EXAMPLES = """\
examples:
  ottla start --ephemeral                           data in memory if possible, deleted on exit
  ottla start --port 9192 --data /var/lib/ottla     a different port and directory
  ottla start server.properties                     a Kafka config file
  ottla start --set num.partitions=4 --set log.segment.bytes=104857600
  ottla start --host 0.0.0.0 --advertise broker.example.org
                                                    accept remote clients, which connect to broker.example.org:9092

Options override --set, and --set overrides the file. Unknown config names are rejected with a suggestion.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0, 1 if it failed, 2 for a usage error."""
    words = sys.argv[1:] if argv is None else list(argv)
    if COMPLETION_VARIABLE in os.environ or (words and (words[0] in LAZY_COMMANDS or words[0] in COMPLETION_OPTIONS)):
        from ottla.cli.app import run

        return run(words)
    parser = make_parser()
    arguments = parser.parse_args(words)
    match arguments.command:
        case "version":
            print(f"ottla {__version__}")
            return 0
        case "start":
            if sys.platform == "win32":
                print(
                    "ottla: Windows is not supported; run Ottla in WSL 2 (Linux is supported, macOS is untested).",
                    file=sys.stderr,
                )
                return 1
            try:
                from ottla.cli.start import start

                return start(arguments)
            except KeyboardInterrupt:  # before the node handles signals
                return INTERRUPTED
        case _:
            parser.print_help()
            return USAGE_ERROR


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ottla", description=_DESCRIPTION, epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"ottla {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    start = commands.add_parser(
        "start",
        help=BUILTIN_COMMANDS["start"],
        description=_START_DESCRIPTION,
        epilog=_START_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    start.add_argument(
        "file", nargs="?", metavar="FILE.properties", help="config file in the format of Kafka's server.properties"
    )
    start.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a config; repeatable")
    start.add_argument("--host", help="address to listen on; 0.0.0.0 for all interfaces (default: 127.0.0.1)")
    start.add_argument("--port", type=_port, help="port to listen on; 0 for any free port (default: 9092)")
    start.add_argument(
        "--advertise",
        metavar="HOST[:PORT]",
        help="address that clients connect to, if different",
    )
    location = start.add_mutually_exclusive_group()
    location.add_argument("--data", metavar="DIR", help="data directory (default: ./ottla-data)")
    location.add_argument(
        "--ephemeral", action="store_true", help="keep data in a temporary directory, deleted on exit"
    )
    start.add_argument("--cluster-id", metavar="ID", help="required cluster id; a new directory is formatted with it")
    start.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="warning",
        help="log level on stderr (default: warning)",
    )
    commands.add_parser("version", help=BUILTIN_COMMANDS["version"])
    for name, spec in LAZY_COMMANDS.items():
        commands.add_parser(name, help=spec.summary, add_help=False)  # listed here; typer parses it
    return parser


def _port(text: str) -> int:
    port = int(text) if text.isascii() and text.isdigit() else -1
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port number from 0 to 65535")
    return port
