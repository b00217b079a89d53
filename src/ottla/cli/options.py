"""Arguments and options that several words take, written once."""

import re
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

import typer

from ottla.cli.completion import group_names, topic_names
from ottla.cli.errors import CliError

Topic = Annotated[str, typer.Argument(metavar="TOPIC", autocompletion=topic_names, help="The topic's name.")]
Topics = Annotated[list[str], typer.Argument(metavar="TOPIC...", autocompletion=topic_names, help="Names of topics.")]
Group = Annotated[str, typer.Argument(metavar="GROUP", autocompletion=group_names, help="The group's name.")]
Groups = Annotated[list[str], typer.Argument(metavar="GROUP...", autocompletion=group_names, help="Names of groups.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Ask the broker whether it would work, and change nothing.")]
Configs = Annotated[
    list[str] | None, typer.Option("--config", "-c", metavar="NAME=VALUE", help="A config; may be given many times.")
]
Compression = Annotated[
    str | None, typer.Option(metavar="CODEC", help="none, gzip, snappy, lz4 or zstd.", show_default="none")
]
Acks = Annotated[
    str | None,
    typer.Option(
        metavar="ACKS",
        help="Who has to have a record before it counts: all, 1 (the leader) or 0 (nobody).",
        show_default="all",
    ),
]
Linger = Annotated[
    float | None,
    typer.Option("--linger", min=0, metavar="MS", help="How long a batch waits for more records.", show_default="5"),
]
Partitions = Annotated[
    list[int] | None,
    typer.Option("--partition", "-p", min=0, metavar="N", help="This partition only; may be given many times."),
]


def drop_none(configs: Mapping[str, Any]) -> dict[str, Any]:
    """Configs that options have set: those that were not said are left to the file, or to the client."""
    return {name: value for name, value in configs.items() if value is not None}


def parse_pairs(texts: Sequence[str] | None) -> list[tuple[str, str]]:
    """NAME=VALUE, each."""
    found = []
    for text in texts or ():
        name, separator, value = text.partition("=")
        if not separator or not name.strip():
            raise typer.BadParameter(f"{text!r} is not NAME=VALUE")
        found.append((name.strip(), value.strip()))
    return found


def parse_assignments(texts: Sequence[str] | None) -> dict[str, str]:
    """As `parse_pairs`; where a name comes twice, the last one counts."""
    return dict(parse_pairs(texts))


def confirm_or_fail(question: str, *, is_given: bool) -> None:
    """Ask at a terminal; without one `--yes` has to be there. What was not agreed to is not done."""
    if is_given:
        return
    if not sys.stdin.isatty():
        raise CliError(question.rstrip("?") + ": nobody is there to be asked", "Say --yes if that is what you want.")
    if not typer.confirm(question, err=True):
        raise CliError("nothing was done")


_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_ISO_DURATION = re.compile(
    r"P(?=.)(?:(\d+(?:\.\d+)?)D)?(?:T(?=.)(?:(\d+(?:\.\d+)?)H)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE,
)


def parse_time_ms(text: str, *, now_ms: int) -> int:
    """`2026-01-31T12:00:00Z` (without a zone: local time), `@1769860800000` (milliseconds since 1970), or `15m` (that long ago)."""
    if text.startswith("@") and text[1:].isdigit():
        return int(text[1:])
    ago_ms = parse_duration_ms(text, is_optional=True)
    if ago_ms is not None:
        return now_ms - ago_ms
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is no time: write 2026-01-31T12:00:00Z, @ and milliseconds since 1970, or how long ago it was, such as 15m"
        ) from None


def parse_duration_ms(text: str, *, is_optional: bool = False) -> int | None:
    """`90s`, `15m`, `1h30m`, `2d`, or as ISO 8601 writes it, `PT1H30M`. None for what is no duration, if that is allowed."""
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
    raise typer.BadParameter(f"{text!r} is no duration: write 90s, 15m, 1h30m, 2d or PT1H30M")
