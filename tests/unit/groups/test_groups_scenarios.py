"""The shard responds and writes records like Apache Kafka, except for times, ids and unordered lists."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.groups.scenario_runner import ScenarioRun, ShardBackend
from tests.unit.groups.scenarios import SCENARIOS

RECORDED: dict[str, dict[str, list[str]]] = json.loads(
    (Path(__file__).parents[2] / "data" / "group_dialogues.json").read_text()
)
CASES = [(scenario, version) for scenario, versions in SCENARIOS.items() for version in versions]


@pytest.mark.parametrize(
    ("scenario", "version"), CASES, ids=[f"{scenario.__name__} v{version}" for scenario, version in CASES]
)
def test_scenario_matches_recorded_kafka_responses(scenario: Callable[[Any, int], None], version: int) -> None:
    backend = ShardBackend()
    run = ScenarioRun(backend, "0123456789ab-")
    scenario(run, version)
    recorded = RECORDED[f"{scenario.__name__} v{version}"]
    assert run.transcript == recorded["responses"]
    assert run.records(backend.log) == recorded["records"]


def test_every_recorded_scenario_exists() -> None:
    assert sorted(RECORDED) == sorted(f"{scenario.__name__} v{version}" for scenario, version in CASES)
