"""Writes docs/cli.md: every word of the command line, as `--help` has it. `--check` only compares."""

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import typer

from ottla.cli.app import ALL_COMMANDS, build
from ottla.cli.command import SHARED_NAMES
from ottla.cli.command_table import LAZY_COMMANDS

TARGET = Path(__file__).resolve().parent.parent / "docs" / "cli.md"
INTRODUCTION = """\
# The command line

`ottla WORD --help` says all of this, too. This page is generated: `python tools/document_cli.py` writes it.

The words that speak to a broker speak to Apache Kafka as well: point `--bootstrap` at it.

- **Which broker**: `--bootstrap HOST:PORT,...`, else the variable `OTTLA_BOOTSTRAP`, else `bootstrap.servers` of the `--client-config`
  file, else 127.0.0.1:9092. Other configs of that file, with Kafka's names, hold for whichever client they belong to.
- **How it ends**: with 0; with 1 where something failed, and a line on stderr that says what, and one that says what to do next; with 2
  where the command was called wrongly; with 130 after Ctrl-C. A reader that goes away early, such as `head`, is no failure.
- **For programs**: `--json` prints one JSON document on one line, or one for each record or look where there are many. Names and
  meanings of fields stay as they are; fields may be added. Offsets, sizes and milliseconds are numbers, configs are texts, and what is
  not known is null.
- **For people**: tables. Colours, questions and progress bars appear on a terminal only. Where a question would be asked and nobody is
  there, the command fails unless `--yes` is said.
- **Completion**: `ottla --install-completion` once, or `eval "$(ottla completion bash)"`. Names of topics, groups and brokers are
  completed, too.

## Options of all words
All that speak to a broker have these:

"""
RECORDS = """
A record as JSON, for `ottla consume --json` and `ottla produce --json`:

```json
{"topic":"orders","partition":0,"offset":41,"timestamp":1769860800000,"timestamp_type":"create","key":"ada","value":"bread","headers":[{"key":"shop","value":"north"}]}
```

`timestamp_type` is `create` or `append`. Bytes that are no UTF-8 stand in base 64 under `key_base64` and `value_base64`, instead of
`key` and `value`. What `produce` reads may leave out everything but the value; a value that is an object, a list or a number becomes
JSON again, and headers may be an object. `topic`, `offset` and `timestamp_type` are not read, and `partition` with `--keep-partitions`
only.
So `ottla consume orders --json | ottla produce copy --json` copies a topic.
"""


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--check", action="store_true", help="fail where the page differs, and write nothing")
    page = render()
    if arguments.parse_args().check:
        if TARGET.read_text() == page:
            return 0
        print(f"{TARGET} is out of date: python {sys.argv[0]} writes it", file=sys.stderr)
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
    usage = " ".join([path, *(_argument(each) for each in own if not each.opts[0].startswith("-"))])
    yield f"\n{heading}\n```\n{usage}{' [OPTIONS]' if command.params else ''}\n```\n\n{_text(command.help)}\n"
    if own:
        yield "\n" + _table(own)


def _is_own(parameter: Any) -> bool:
    """A shared option that means something else here."""
    from ottla.cli.command import JSON_HELP

    return parameter.name == "is_json" and parameter.help != JSON_HELP


def _argument(parameter: Any) -> str:
    name = (parameter.metavar or parameter.name).removesuffix("...")
    shown = f"{name}..." if parameter.nargs == -1 else name
    return shown if parameter.required else f"[{shown}]"


def _text(help_: str | None) -> str:
    """Paragraphs. The shape of JSON stands as code; lines of options and examples of argparse are folded by nobody."""
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
            else f"`{_argument(each)}`"
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
