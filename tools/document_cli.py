"""Generate docs/cli.md from the commands' help. `--check` only compares."""

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import typer

from ottla.cli.app import build
from ottla.cli.command import SHARED_NAMES
from ottla.cli.command_table import LAZY_COMMANDS
from ottla.cli.examples import EXAMPLES
from ottla.cli.main import ALL_COMMANDS
from ottla.cli.usage import argument_usage

TARGET = Path(__file__).resolve().parent.parent / "docs" / "cli.md"
INTRODUCTION = """\
# The command line

This page is generated from `ottla COMMAND --help` by `python tools/document_cli.py`.

Commands that connect to a broker also work with Apache Kafka: point `--bootstrap` at it.

- **Broker address**: `--bootstrap HOST:PORT,...`, otherwise the `--profile`, otherwise the variable `OTTLA_BOOTSTRAP`,
  otherwise `bootstrap.servers` in the `--client-config` file or in the profile that `OTTLA_PROFILE` names, otherwise
  127.0.0.1:9092. Other configs in the file or profile apply to the clients that know them.
- **Profiles** are files in `~/.config/ottla/profiles` (`$XDG_CONFIG_HOME/ottla/profiles`) with the same content as a
  `--client-config` file.
- **Exit codes**: 0 for success; 1 for a failure, with the error and a suggestion on stderr; 2 for wrong usage; 130
  after Ctrl-C, 143 after SIGTERM. A closed pipe, as with `head`, is not a failure.
- **Errors** are one to three lines on stderr. `OTTLA_TRACEBACK=1` prints the traceback of an unexpected error, which is
  a bug to report.
- **JSON**: `--json` prints one document on one line, or one line per record or refresh. Existing fields do not
  change; new ones may be added. Offsets, sizes and milliseconds are numbers, config values are strings, unknown
  values are null.
- **Tables** are for people. Colors, questions and progress bars appear on a terminal only. Without a terminal, a
  command that would ask for confirmation fails unless `--yes` is given.
- **Completion**: run `ottla --install-completion` once, or `eval "$(ottla completion bash)"` in each shell. Topic,
  group and broker names are completed too.

## Connection and output options
All commands that connect to a broker accept these:

"""
RECORDS = """
Records as JSON, in `ottla consume --json` and `ottla produce --json`:

```json
{"topic":"orders","partition":0,"offset":41,"timestamp":1769860800000,"timestamp_type":"create",\
"key":"ada","value":"bread","headers":[{"key":"shop","value":"north"}]}
```

`timestamp_type` is `create` or `append`. Bytes that are not UTF-8 are in base64 under `key_base64` and
`value_base64`, instead of `key` and `value`. `produce` needs only the value and rejects unknown fields; a null
value is a tombstone. An object, list or number as value is sent as JSON text, and headers may be an object.
`produce` ignores `topic`, `offset` and `timestamp_type`, and reads `partition` only with `--keep-partitions`, so
`ottla consume orders --json | ottla produce copy --json` copies a topic.

With `--registry URL`, values are bytes with a schema in a schema registry (Confluent's interface; `pip install
'ottla[avro]'` or `'ottla[protobuf]'`), and JSON on the command line. In JSON records they are not text but part of the
document. `produce` uses the latest schema of the subject `TOPIC-value`, or registers one with `--schema`. Avro's bytes
are strings with one character per byte, unions have no type names, and logical types are numbers or bytes. Protobuf
messages are JSON as the protobuf library writes it; `produce` sends the first message of the file. Values of JSON
schemas are not validated.
"""


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--check", action="store_true", help="fail if the page is out of date; write nothing")
    page = render()
    if arguments.parse_args().check:
        if TARGET.read_text() == page:
            return 0
        print(f"{TARGET} is out of date; run python {sys.argv[0]}", file=sys.stderr)
        return 1
    TARGET.write_text(page)
    return 0


def render() -> str:
    root: Any = typer.main.get_command(build(ALL_COMMANDS))
    shared = [each for each in root.commands["topic"].commands["list"].params if each.name in SHARED_NAMES]
    parts = [INTRODUCTION, _table(shared)]
    for name in ("start", *LAZY_COMMANDS, "version"):
        command = root.commands[name]
        inside = getattr(command, "commands", None)
        if inside is None:
            parts += _command(f"## ottla {name}", f"ottla {name}", command)
        else:
            parts.append(f"\n## ottla {name}\n{_text(command.help)}\n")
            for each, below in inside.items():
                parts += _command(f"### ottla {name} {each}", f"ottla {name} {each}", below)
        if name == "consume":
            parts.append(RECORDS)
    return "".join(parts)


def _command(heading: str, path: str, command: Any) -> Iterator[str]:
    own = [each for each in command.params if each.name not in SHARED_NAMES or _is_own(each)]
    usage = " ".join([path, *(argument_usage(each) for each in own if not each.opts[0].startswith("-"))])
    yield f"\n{heading}\n```\n{usage}{' [OPTIONS]' if command.params else ''}\n```\n\n{_text(command.help)}\n"
    yield f"\n```\n{EXAMPLES[path.removeprefix('ottla ')]}\n```\n"
    if own:
        yield "\n" + _table(own)


def _is_own(parameter: Any) -> bool:
    """Return whether a shared option has a different meaning for this command."""
    from ottla.cli.command import JSON_HELP

    return bool(parameter.name == "is_json" and parameter.help != JSON_HELP)


def _text(help_: str | None) -> str:
    """Join the lines of each paragraph, and format the JSON schema as code."""
    paragraphs = [" ".join(each.split()) for each in re.split(r"\n\s*\n", (help_ or "").strip())]
    return "\n\n".join(_quoted(each) for each in paragraphs)


def _quoted(text: str) -> str:
    return re.sub(r"(\{.*\})", r"`\1`", text, count=1) if text.startswith("JSON: ") else text


def _table(parameters: Iterable[Any]) -> str:
    rows = ["| option | | |\n|---|---|---|\n"]
    for each in parameters:
        is_option = each.opts[0].startswith("-")
        is_flag = bool(getattr(each, "is_flag", False))
        metavar = "" if is_flag or not is_option else f" {each.metavar or each.name.upper()}"
        names = (
            ", ".join(
                f"`{name}{metavar if index == 0 else ''}`"
                for index, name in enumerate([*each.opts, *each.secondary_opts])
            )
            if is_option
            else f"`{argument_usage(each)}`"
        )
        default = _default(each, is_flag=is_flag)
        rows.append(f"| {_cell(names)} | {_cell(each.help or '')} | {_cell(default)} |\n")
    return "".join(rows)


def _default(parameter: Any, *, is_flag: bool) -> str:
    shown = getattr(parameter, "show_default", None)
    if isinstance(shown, str):
        return f"default: {shown}"
    if parameter.required or parameter.default in (None, False, [], ()) or is_flag:
        return ""
    return f"default: `{parameter.default}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
