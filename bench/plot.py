"""SVG plots: horizontal bars, ratios around one, and lines.

The SVG has no background and its text follows the light or dark color scheme, so it fits any page.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

Series = Mapping[str, Sequence[float | None]]

WIDTH, LABELS, RIGHT = 760, 230, 90
TOP, ROW, GAP, FOOT = 64, 16, 12, 34
LINES_HEIGHT, LINES_LEFT = 240, 70
COLORS = ("#8a8f98", "#1f8fd6", "#d9822b", "#3fa45b")
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#333}.title{font-size:15px;font-weight:600}.value{font-size:11px}"
    ".grid{stroke:#8884;stroke-width:1}.one{stroke:#888;stroke-width:1.5}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}}"
)


@dataclass(frozen=True, slots=True)
class Plot:
    """Contents of a plot. Missing values are None. For `lines`, `labels` are numbers along an axis named `axis`."""

    chart: Literal["bars", "ratios", "lines"]
    title: str
    unit: str
    labels: Sequence[str]
    series: Series
    axis: str = ""


def draw(plot: Plot) -> str:
    """Return the SVG."""
    match plot.chart:
        case "bars":
            height, parts = _bars(plot)
        case "ratios":
            height, parts = _ratios(plot)
        case "lines":
            height, parts = _lines(plot)
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    title = f"{plot.title}, {plot.unit}" if plot.unit else plot.title
    opening = [
        head,
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        _text(8, 22, title, "title"),
        *_legend(plot),
    ]
    return "\n".join([*opening, *parts, "</svg>"]) + "\n"


def short(value: float) -> str:
    """Format a number with few characters."""
    return f"{value:.3g}" if value < 999.5 else f"{value:,.0f}"


def ticks(largest: float) -> list[float]:
    """Return about four ticks from 0 to the largest value, in steps of 1, 2 or 5."""
    if largest <= 0:
        return [0.0]
    rough = largest / 4
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    return [step * index for index in range(math.floor(largest / step) + 1)]


def _present(series: Series) -> list[float]:
    return [value for values in series.values() for value in values if value is not None]


def _text(x: float, y: float, text: str, css_class: str = "", anchor: str = "start") -> str:
    attribute = f' class="{css_class}"' if css_class else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{attribute}>{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, css_class: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{css_class}"/>'


def _legend(plot: Plot) -> Iterator[str]:
    x = 8.0
    for (name, _), color in zip(plot.series.items(), COLORS, strict=False):
        yield f'<rect x="{x:.1f}" y="34" width="11" height="11" rx="2" fill="{color}"/>'
        yield _text(x + 16, 44, name)
        x += 16 + 7.2 * len(name) + 20


def _bars(plot: Plot) -> tuple[int, list[str]]:
    largest = max(_present(plot.series), default=0.0) or 1.0
    scale = (WIDTH - LABELS - RIGHT) / largest
    group = ROW * len(plot.series) + GAP
    bottom = TOP + group * len(plot.labels)
    parts = []
    for tick in ticks(largest):
        parts.append(_line(LABELS + tick * scale, TOP - 4, LABELS + tick * scale, bottom, "grid"))
        parts.append(_text(LABELS + tick * scale, bottom + 16, short(tick), "value", "middle"))
    for row, label in enumerate(plot.labels):
        y = TOP + group * row
        parts.append(_text(LABELS - 10, y + (group - GAP) / 2 + 4, label, anchor="end"))
        for index, (values, color) in enumerate(zip(plot.series.values(), COLORS, strict=False)):
            value = values[row]
            if value is not None:
                top, width = y + index * ROW, max(value * scale, 1.0)
                parts.append(
                    f'<rect x="{LABELS}" y="{top}" width="{width:.1f}" height="{ROW - 3}" rx="2" fill="{color}"/>'
                )
                parts.append(_text(LABELS + width + 5, top + ROW - 6, short(value), "value"))
    return bottom + FOOT, parts


def _ratios(plot: Plot) -> tuple[int, list[str]]:
    """Draw each ratio as a dot on a logarithmic axis, where 2 and 1/2 have the same distance from 1."""
    found = [value for value in _present(plot.series) if value > 0]
    low = math.floor(math.log2(min([0.5, *found])))
    high = math.ceil(math.log2(max([2.0, *found])))
    scale = (WIDTH - LABELS - 40) / (high - low)
    row_height = ROW + 8
    bottom = TOP + row_height * len(plot.labels)
    parts = []
    for power in range(low, high + 1):
        x = LABELS + (power - low) * scale
        parts.append(_line(x, TOP - 4, x, bottom, "one" if power == 0 else "grid"))
        parts.append(_text(x, bottom + 16, f"{2**power}×" if power >= 0 else f"1/{2**-power}×", "value", "middle"))
    for row, label in enumerate(plot.labels):
        y = TOP + row_height * row + row_height / 2
        parts.append(_text(LABELS - 10, y + 4, label, anchor="end"))
        for values, color in zip(plot.series.values(), COLORS, strict=False):
            value = values[row]
            if value is not None and value > 0:
                x = LABELS + (math.log2(value) - low) * scale
                parts.append(
                    f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5.5" fill="{color}"><title>{value:.2f}×</title></circle>'
                )
    return bottom + FOOT, parts


def _lines(plot: Plot) -> tuple[int, list[str]]:
    """Draw lines. The numbers along the axis have equal distances, as they grow by factors."""
    largest = max(_present(plot.series), default=0.0) * 1.1 or 1.0  # space for the number above the highest point
    bottom, right = TOP + LINES_HEIGHT, WIDTH - 60
    scale, step = LINES_HEIGHT / largest, (right - LINES_LEFT - 20) / max(len(plot.labels) - 1, 1)
    parts = []
    for tick in ticks(largest):
        parts.append(_line(LINES_LEFT, bottom - tick * scale, right, bottom - tick * scale, "grid"))
        parts.append(_text(LINES_LEFT - 8, bottom - tick * scale + 4, short(tick), "value", "end"))
    for index, label in enumerate(plot.labels):
        parts.append(_text(LINES_LEFT + 20 + index * step, bottom + 18, label, "value", "middle"))
    parts.append(_text((LINES_LEFT + right) / 2, bottom + 36, plot.axis, anchor="middle"))
    for values, color in zip(plot.series.values(), COLORS, strict=False):
        points = [
            (LINES_LEFT + 20 + index * step, bottom - value * scale, value)
            for index, value in enumerate(values)
            if value is not None
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2.5"/>')
        for x, y, value in points:
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{color}"/>')
            parts.append(_text(x, y - 9, short(value), "value", "middle"))
    return bottom + FOOT + 14, parts
