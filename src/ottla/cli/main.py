"""Where `ottla ...` begins. Only what a word needs is imported: a broker that starts fast starts here."""

import argparse
import os
import sys
from collections.abc import Sequence

from ottla import __version__
from ottla.cli.command_table import BUILTIN_COMMANDS, LAZY_COMMANDS

USAGE_ERROR = 2
INTERRUPTED = 130
COMPLETION_VARIABLE = "_OTTLA_COMPLETE"
"""Set by a shell that asks what may come next."""
COMPLETION_OPTIONS = ("--install-completion", "--show-completion")
_DESCRIPTION = "The event log that Apache Kafka describes, in Python. Any Kafka client connects unchanged."
_EXAMPLES = """\
begin here:
  ottla demo                              watch one: traffic, and a group that loses a consumer
  ottla start --ephemeral                 try it: a broker at 127.0.0.1:9092 that leaves nothing behind
  ottla start                             keep the data under ./ottla-data
  ottla start --help                      all that can be chosen
  ottla topic create orders               then: a topic,
  echo hello | ottla produce orders       something in it,
  ottla consume orders                    and out again
"""
_START_DESCRIPTION = """\
Start one node, broker and controller in one, in the foreground. Ctrl-C or SIGTERM stops it cleanly.

Without a file it listens at 127.0.0.1:9092 and keeps its data under ./ottla-data. The directory is made and formatted when the
node first starts on it; remove it to start afresh.
"""
_START_EXAMPLES = """\
examples:
  ottla start --ephemeral                           data in memory where possible, removed at exit
  ottla start --port 9192 --data /var/lib/ottla     another port, another directory
  ottla start server.properties                     Kafka's own file, with Kafka's names
  ottla start --set num.partitions=4 --set log.segment.bytes=104857600
  ottla start --host 0.0.0.0 --advertise broker.example.org
                                                    reachable from other machines: they are told broker.example.org:9092

Options win over --set, and --set wins over the file. A name that Kafka does not know is refused, with the nearest one that it does.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return the process's exit code: 0, 1 where it failed, 2 where it was called wrongly."""
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
                    "ottla: Ottla runs on Linux (and, untested, on macOS). On Windows, run it inside WSL 2.",
                    file=sys.stderr,
                )
                return 1
            try:
                from ottla.cli.start import start

                return start(arguments)
            except KeyboardInterrupt:  # before the node listens to signals
                return INTERRUPTED
        case _:
            parser.print_help()
            return USAGE_ERROR


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ottla", description=_DESCRIPTION, epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"ottla {__version__}")
    words = parser.add_subparsers(dest="command", metavar="WORD", title="words")
    start = words.add_parser(
        "start",
        help=BUILTIN_COMMANDS["start"],
        description=_START_DESCRIPTION,
        epilog=_START_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    start.add_argument(
        "file", nargs="?", metavar="FILE.properties", help="configuration as Apache Kafka's server.properties"
    )
    start.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="one config; may be given many times"
    )
    start.add_argument("--host", help="the address to listen at; 0.0.0.0 is all of this machine's (default: 127.0.0.1)")
    start.add_argument("--port", type=_port, help="the port to listen at; 0 takes a free one (default: 9092)")
    start.add_argument(
        "--advertise",
        metavar="HOST[:PORT]",
        help="the address that clients are told to connect to, if it is another one",
    )
    where = start.add_mutually_exclusive_group()
    where.add_argument("--data", metavar="DIR", help="where the data is kept (default: ./ottla-data)")
    where.add_argument(
        "--ephemeral", action="store_true", help="keep the data in a temporary directory and remove it at exit"
    )
    start.add_argument(
        "--cluster-id", metavar="ID", help="the cluster that the data must belong to; a new directory gets this id"
    )
    start.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="warning",
        help="what to log on stderr (default: warning)",
    )
    words.add_parser("version", help=BUILTIN_COMMANDS["version"])
    for name, word in LAZY_COMMANDS.items():
        words.add_parser(name, help=word.summary, add_help=False)  # listed here, understood elsewhere
    return parser


def _port(text: str) -> int:
    port = int(text) if text.isascii() and text.isdigit() else -1
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: a whole number from 0 to 65535 is")
    return port
