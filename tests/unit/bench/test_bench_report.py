"""How figures become tables."""

import json
from dataclasses import replace

from bench.plot import Plot
from bench.report import END, START, Goal, Report, measured_table, ratio, row, table, update_readme, write

FIGURES = {"a": {"kafka": 1, "ottla": 2}}
REPORT = Report("Title", ["load", "Kafka", "Ottla"], [["a", "1", "2"]], "A note.", FIGURES, [["a", "1", "2", "2.00×"]])


def test_a_table_is_markdown_with_figures_to_the_right():
    assert (
        table(["load", "rate"], [["small", "1"], ["large", "2"]])
        == "| load | rate |\n| --- | ---: |\n| small | 1 |\n| large | 2 |\n"
    )


def test_a_column_without_a_figure_is_left_out():
    """The first column and those with at least one figure stay, in their order."""
    rows = [["a", "–", "1", "–", ""], ["b", "–", "–", "", ""]]
    assert measured_table(["load", "Kafka", "Ottla", "ratio", "note"], rows) == table(
        ["load", "Ottla"], [["a", "1"], ["b", "–"]]
    )


def test_a_ratio_with_a_missing_side_is_a_dash():
    assert [ratio(3, 2), ratio(None, 2), ratio(3, None), ratio(3, 0)] == ["1.50×", "–", "–", "–"]


def test_a_report_is_written_for_people_and_for_programs(tmp_path):
    write("one", REPORT, tmp_path)
    page = (tmp_path / "one.md").read_text()
    assert page.startswith("# Title\n\n| load | Kafka | Ottla |\n| --- | ---: | ---: |\n| a | 1 | 2 |\n\nA note.\n\n")
    kept = json.loads((tmp_path / "one.json").read_text())
    assert kept["figures"] == FIGURES
    assert sorted(kept["machine"]) == ["cores", "cpu", "date", "kernel", "memory_gb", "python"]


def test_a_goal_holds_on_its_side_of_the_limit():
    assert [Goal("p99", measured, 0.4).holds for measured in (0.3, 0.4, 0.5, None)] == [True, True, False, None]
    assert [Goal("rate", measured, 4, at_most=False).holds for measured in (3.9, 4.0, None)] == [False, True, None]
    assert Goal("rate", 3.9, 4, at_most=False).cells() == ["rate", "≥ 4×", "3.90×", "**no**"]
    assert Goal("memory", None, 60, unit=" MB").cells() == ["memory", "≤ 60 MB", "–", "–"]


def test_a_row_without_the_peer_has_dashes():
    assert row("a", {"kafka": 2.0, "ottla": 3.0}, ".1f", " s") == ["a", "2.0 s", "3.0 s", "1.50×"]
    assert row("a", {"ottla": 3.0}, ".1f", " s") == ["a", "–", "3.0 s", "–"]


def test_goals_and_plot_stand_below_the_table(tmp_path):
    plot = Plot("bars", "Rates", "req/s", ["a"], {"Ottla": [2.0]})
    write("one", replace(REPORT, goals=[Goal("rate", 2.0, 1.0, at_most=False)], plot=plot), tmp_path)
    page = (tmp_path / "one.md").read_text()
    assert "\n| bar | limit | measured | holds |\n| --- | ---: | ---: | ---: |\n| rate | ≥ 1× | 2.00× | yes |\n" in page
    assert "\n![Rates](one.svg)\n" in page
    assert (tmp_path / "one.svg").read_text().startswith("<svg ")
    kept = json.loads((tmp_path / "one.json").read_text())
    assert kept["goals"] == [
        {"what": "rate", "measured": 2.0, "limit": 1.0, "at_most": False, "unit": "×", "holds": True}
    ]
    readme = tmp_path / "README.md"
    readme.write_text(f"{START}\n{END}\n")
    assert update_readme(["one"], results=tmp_path, readme=readme)
    assert "\nPlots: [one](bench/results/one.svg).\n" in readme.read_text()


def test_readme_is_drawn_between_its_markers_only(tmp_path):
    """Text around the markers stays, and drawing twice gives the same page."""
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{START}\nold\n{END}\nafter\n")
    write("one", REPORT, tmp_path)
    assert update_readme(["one", "not_measured"], results=tmp_path, readme=readme)
    drawn = readme.read_text()
    assert drawn.startswith(f"before\n{START}\n|  | Apache Kafka 4.3 | Ottla | Ottla / Kafka |\n")
    assert "| a | 1 | 2 | 2.00× |\n" in drawn
    assert "old" not in drawn
    assert drawn.endswith(f"\n{END}\nafter\n")
    assert update_readme(["one"], results=tmp_path, readme=readme)
    assert readme.read_text() == drawn


def test_a_readme_without_figures_or_markers_is_left_alone(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(f"{START}\n{END}\n")
    assert not update_readme(["one"], results=tmp_path, readme=readme)
    write("one", REPORT, tmp_path)
    readme.write_text("no markers\n")
    assert not update_readme(["one"], results=tmp_path, readme=readme)
    assert readme.read_text() == "no markers\n"
