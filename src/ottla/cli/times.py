"""Times and durations as people write them, in milliseconds."""

import re
from datetime import datetime

import typer

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_ISO_DURATION = re.compile(
    r"P(?=.)(?:(\d+(?:\.\d+)?)D)?(?:T(?=.)(?:(\d+(?:\.\d+)?)H)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE,
)


def moment_ms(text: str, *, now_ms: int) -> int:
    """`2026-01-31T12:00:00Z` (without a zone: local time), `@1769860800000` (milliseconds since 1970), or `15m` (that long ago)."""
    if text.startswith("@") and text[1:].isdigit():
        return int(text[1:])
    ago_ms = duration_ms(text, is_optional=True)
    if ago_ms is not None:
        return now_ms - ago_ms
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is no time: write 2026-01-31T12:00:00Z, @ and milliseconds since 1970, or how long ago it was, such as 15m"
        ) from None


def duration_ms(text: str, *, is_optional: bool = False) -> int | None:
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
