"""Arguments and options that several commands share, and parsers for their values."""

import re
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

import typer

from ottla.cli.completion import complete_from, group_names, topic_names
from ottla.cli.errors import CliError

Topic = Annotated[str, typer.Argument(metavar="TOPIC", autocompletion=topic_names, help="Topic name.")]
Topics = Annotated[list[str], typer.Argument(metavar="TOPIC...", autocompletion=topic_names, help="Topic names.")]
Group = Annotated[str, typer.Argument(metavar="GROUP", autocompletion=group_names, help="Group name.")]
Groups = Annotated[list[str], typer.Argument(metavar="GROUP...", autocompletion=group_names, help="Group names.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only validate the request; change nothing.")]
Configs = Annotated[
    list[str] | None, typer.Option("--config", "-c", metavar="NAME=VALUE", help="A config; repeatable.")
]
Compression = Annotated[
    str | None,
    typer.Option(
        metavar="CODEC",
        autocompletion=complete_from("none", "gzip", "snappy", "lz4", "zstd"),
        help="none, gzip, snappy, lz4 or zstd.",
        show_default="none",
    ),
]
Acks = Annotated[
    str | None,
    typer.Option(
        metavar="ACKS",
        autocompletion=complete_from("all", "1", "0"),
        help="Required acknowledgements: all (in-sync replicas), 1 (leader only) or 0 (none).",
        show_default="all",
    ),
]
Linger = Annotated[
    float | None,
    typer.Option("--linger", min=0, metavar="MS", help="Time a batch waits for more records.", show_default="5"),
]
Partitions = Annotated[
    list[int] | None,
    typer.Option("--partition", "-p", min=0, metavar="N", help="Only this partition; repeatable."),
]

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_ISO_DURATION = re.compile(
    r"P(?=.)(?:(\d+(?:\.\d+)?)D)?(?:T(?=.)(?:(\d+(?:\.\d+)?)H)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE,
)


def drop_none(configs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configs that options have set; others come from the client config file or the defaults."""
    return {name: value for name, value in configs.items() if value is not None}


def parse_pairs(texts: Sequence[str] | None) -> list[tuple[str, str]]:
    """Parse NAME=VALUE pairs."""
    found = []
    for text in texts or ():
        name, separator, value = text.partition("=")
        if not separator or not name.strip():
            raise typer.BadParameter(f"{text!r} is not NAME=VALUE")
        found.append((name.strip(), value.strip()))
    return found


def parse_assignments(texts: Sequence[str] | None) -> dict[str, str]:
    """Parse NAME=VALUE pairs into a dict; the last value of a name wins."""
    return dict(parse_pairs(texts))


def confirm_or_fail(question: str, *, is_given: bool) -> None:
    """Ask for confirmation unless `--yes` is given. Raises `CliError` if denied, or without a terminal."""
    if is_given:
        return
    if not sys.stdin.isatty():
        raise CliError(
            f'cannot confirm "{question.rstrip("?")}": stdin is not a terminal', "Pass --yes to skip the question."
        )
    answer = ""
    while answer not in ("y", "yes", "n", "no"):
        print(f"{question} [y/N]: ", end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line.endswith("\n"):
            print(file=sys.stderr)  # Ctrl-D
        answer = line.strip().lower() or "no"
    if answer.startswith("n"):
        raise CliError("aborted; nothing was changed")


def parse_time_ms(text: str, *, now_ms: int) -> int:
    """Parse `2026-01-31T12:00:00Z` (local time if without zone), `@1769860800000` (epoch ms) or `15m` (ago)."""
    if text.startswith("@") and text[1:].isdigit():
        return int(text[1:])
    ago_ms = parse_duration_ms(text, is_optional=True)
    if ago_ms is not None:
        return now_ms - ago_ms
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is not a time: use 2026-01-31T12:00:00Z, @ and epoch milliseconds, "
            "or a duration such as 15m for 15 minutes ago"
        ) from None


def parse_duration_ms(text: str, *, is_optional: bool = False) -> int | None:
    """Parse `90s`, `15m`, `1h30m`, `2d` or ISO 8601 `PT1H30M`. Returns None for anything else if `is_optional`."""
    iso = _ISO_DURATION.fullmatch(text)
    if iso is not None:
        units = (_UNITS_MS["d"], _UNITS_MS["h"], _UNITS_MS["m"], _UNITS_MS["s"])
        return round(sum(float(part) * unit for part, unit in zip(iso.groups(), units, strict=True) if part))
    if re.fullmatch(r"(\d+(\.\d+)?(ms|s|m|h|d|w))+", text):
        return round(
            sum(float(number) * _UNITS_MS[unit] for number, _, unit in re.findall(r"(\d+(\.\d+)?)(ms|s|m|h|d|w)", text))
        )
    if is_optional:
        return None
    raise typer.BadParameter(f"{text!r} is not a duration: use 90s, 15m, 1h30m, 2d or PT1H30M")
