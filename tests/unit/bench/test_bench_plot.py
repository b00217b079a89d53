"""Plots are well-formed SVG with the given values."""

import re
from xml.etree import ElementTree

import pytest

from bench.plot import Plot, draw, short, ticks

SVG = "{http://www.w3.org/2000/svg}"
BARS = Plot(
    "bars", "Rates <of> both", "req/s", ["small", "large & slow"], {"Kafka": [100.0, None], "Ottla": [400.0, 50.0]}
)


def parsed(plot):
    return ElementTree.fromstring(draw(plot))


def texts(root):
    return ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]


def test_bar_length_is_proportional():
    root = parsed(BARS)
    bars = [float(rect.get("width")) for rect in root.iter(f"{SVG}rect") if rect.get("height") == "13"]
    assert bars == [pytest.approx(bars[1] / 4, abs=0.1), bars[1], pytest.approx(bars[1] / 8, abs=0.1)]
    assert {"Rates <of> both, req/s", "Kafka", "Ottla", "small", "large & slow", "100", "400", "50"} <= set(texts(root))


def test_ratios_2_and_one_half_have_the_same_distance_from_1():
    root = parsed(Plot("ratios", "Ratios", "", ["a", "b", "c", "d"], {"rate": [2.0, 0.5, 1.0, None]}))
    twice, half, same = (float(circle.get("cx")) for circle in root.iter(f"{SVG}circle"))
    assert twice - same == pytest.approx(same - half, abs=0.2)
    assert {"1/2×", "1×", "2×"} <= set(texts(root))


def test_line_skips_missing_values():
    root = parsed(
        Plot(
            "lines",
            "Rates",
            "req/s",
            ["1", "10", "100"],
            {"Kafka": [1.0, None, 3.0], "Ottla": [3.0, 2.0, 1.0]},
            "connections",
        )
    )
    lines = [line.get("points").split() for line in root.iter(f"{SVG}polyline")]
    assert [len(points) for points in lines] == [2, 3]
    assert lines[0][0].split(",")[0] == lines[1][0].split(",")[0]
    assert lines[0][1].split(",")[0] == lines[1][2].split(",")[0]
    assert "connections" in texts(root)


@pytest.mark.parametrize("chart", ["bars", "ratios", "lines"])
def test_everything_is_inside_the_view_box(chart):
    root = parsed(
        Plot(
            chart,
            "t",
            "u",
            [str(number) for number in range(9)],
            {name: [0.1, 3, 7, 0.2, 5, 1, 1, 12, 64] for name in "ab"},
        )
    )
    width, height = (float(root.get(side)) for side in ("width", "height"))
    for name in ("x", "cx", "x1", "x2"):
        assert all(0 <= float(element.get(name)) <= width for element in root.iter() if element.get(name))
    for name in ("y", "cy", "y1", "y2"):
        assert all(0 <= float(element.get(name)) <= height for element in root.iter() if element.get(name))


def test_text_follows_the_color_scheme():
    style = re.search(r"<style>(.*)</style>", draw(BARS))
    assert style is not None
    assert "prefers-color-scheme:dark" in style[1]


def test_ticks_are_round_and_reach_the_largest_value():
    assert ticks(400.0) == [0, 100, 200, 300, 400]
    assert ticks(7.3) == [0, 2, 4, 6]
    assert ticks(0.0) == [0.0]


def test_short_numbers():
    assert [short(value) for value in (0.1234, 12.345, 999.4, 1234.5, 78682.4)] == [
        "0.123",
        "12.3",
        "999",
        "1,234",
        "78,682",
    ]
