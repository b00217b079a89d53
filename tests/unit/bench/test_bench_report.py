"""Tables and files of reports."""

import json
from dataclasses import replace

from bench.plot import Plot
from bench.report import END, START, Goal, Report, measured_table, ratio, row, table, update_readme, write_report

MEASUREMENTS = {"a": {"kafka": 1, "ottla": 2}}
REPORT = Report(
    "Title", ["load", "Kafka", "Ottla"], [["a", "1", "2"]], "A note.", MEASUREMENTS, [["a", "1", "2", "2.00×"]]
)


def test_table_is_markdown_with_right_aligned_numbers():
    assert (
        table(["load", "rate"], [["small", "1"], ["large", "2"]])
        == "| load | rate |\n| --- | ---: |\n| small | 1 |\n| large | 2 |\n"
    )


def test_columns_without_values_are_removed():
    """The first column and columns with at least one value stay, in order."""
    rows = [["a", "–", "1", "–", ""], ["b", "–", "–", "", ""]]
    assert measured_table(["load", "Kafka", "Ottla", "ratio", "note"], rows) == table(
        ["load", "Ottla"], [["a", "1"], ["b", "–"]]
    )


def test_ratio_without_a_value_is_a_dash():
    assert [ratio(3, 2), ratio(None, 2), ratio(3, None), ratio(3, 0)] == ["1.50×", "–", "–", "–"]


def test_write_report_creates_markdown_and_json(tmp_path):
    write_report("one", REPORT, tmp_path)
    page = (tmp_path / "one.md").read_text()
    assert page.startswith("# Title\n\n| load | Kafka | Ottla |\n| --- | ---: | ---: |\n| a | 1 | 2 |\n\nA note.\n\n")
    saved = json.loads((tmp_path / "one.json").read_text())
    assert saved["figures"] == MEASUREMENTS
    assert sorted(saved["machine"]) == ["cores", "cpu", "date", "kernel", "memory_gb", "python"]


def test_goal_holds_on_its_side_of_the_limit():
    assert [Goal("p99", measured, 0.4).holds for measured in (0.3, 0.4, 0.5, None)] == [True, True, False, None]
    assert [Goal("rate", measured, 4, at_most=False).holds for measured in (3.9, 4.0, None)] == [False, True, None]
    assert Goal("rate", 3.9, 4, at_most=False).cells() == ["rate", "≥ 4×", "3.90×", "**no**"]
    assert Goal("memory", None, 60, unit=" MB").cells() == ["memory", "≤ 60 MB", "–", "–"]


def test_row_without_the_peer_has_dashes():
    assert row("a", {"kafka": 2.0, "ottla": 3.0}, ".1f", " s") == ["a", "2.0 s", "3.0 s", "1.50×"]
    assert row("a", {"ottla": 3.0}, ".1f", " s") == ["a", "–", "3.0 s", "–"]


def test_goals_and_plot_follow_the_table(tmp_path):
    plot = Plot("bars", "Rates", "req/s", ["a"], {"Ottla": [2.0]})
    write_report("one", replace(REPORT, goals=[Goal("rate", 2.0, 1.0, at_most=False)], plot=plot), tmp_path)
    page = (tmp_path / "one.md").read_text()
    assert (
        "\n| threshold | limit | measured | met |\n| --- | ---: | ---: | ---: |\n| rate | ≥ 1× | 2.00× | yes |\n"
        in page
    )
    assert "\n![Rates](one.svg)\n" in page
    assert (tmp_path / "one.svg").read_text().startswith("<svg ")
    saved = json.loads((tmp_path / "one.json").read_text())
    assert saved["goals"] == [
        {"what": "rate", "measured": 2.0, "limit": 1.0, "at_most": False, "unit": "×", "holds": True}
    ]
    readme = tmp_path / "README.md"
    readme.write_text(f"{START}\n{END}\n")
    assert update_readme(["one"], results=tmp_path, readme=readme)
    assert "\nPlots: [one](bench/results/one.svg).\n" in readme.read_text()


def test_update_readme_changes_only_text_between_markers(tmp_path):
    """Text around the markers stays, and a second update changes nothing."""
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{START}\nold\n{END}\nafter\n")
    write_report("one", REPORT, tmp_path)
    assert update_readme(["one", "not_measured"], results=tmp_path, readme=readme)
    updated = readme.read_text()
    assert updated.startswith(f"before\n{START}\n|  | Apache Kafka 4.3 | Ottla | Ottla / Kafka |\n")
    assert "| a | 1 | 2 | 2.00× |\n" in updated
    assert "old" not in updated
    assert updated.endswith(f"\n{END}\nafter\n")
    assert update_readme(["one"], results=tmp_path, readme=readme)
    assert readme.read_text() == updated


def test_update_readme_needs_results_and_markers(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(f"{START}\n{END}\n")
    assert not update_readme(["one"], results=tmp_path, readme=readme)
    write_report("one", REPORT, tmp_path)
    readme.write_text("no markers\n")
    assert not update_readme(["one"], results=tmp_path, readme=readme)
    assert readme.read_text() == "no markers\n"
