"""The shard answers as Apache Kafka did, and writes the same records, but for times, made-up ids and the order of what has no order."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.groups.scenario_runner import ShardSpeaker, Talk
from tests.unit.groups.scenarios import DIALOGUES

RECORDED: dict[str, dict[str, list[str]]] = json.loads(
    (Path(__file__).parents[2] / "data" / "group_dialogues.json").read_text()
)
HELD = [(dialogue, version) for dialogue, versions in DIALOGUES.items() for version in versions]


@pytest.mark.parametrize(
    ("dialogue", "version"), HELD, ids=[f"{dialogue.__name__} v{version}" for dialogue, version in HELD]
)
def test_a_dialogue_goes_as_with_kafka(dialogue: Callable[[Any, int], None], version: int) -> None:
    speaker = ShardSpeaker()
    talk = Talk(speaker, "0123456789ab-")
    dialogue(talk, version)
    recorded = RECORDED[f"{dialogue.__name__} v{version}"]
    assert talk.transcript == recorded["answers"]
    assert talk.records(speaker.log) == recorded["records"]


def test_every_recorded_dialogue_is_held() -> None:
    assert sorted(RECORDED) == sorted(f"{dialogue.__name__} v{version}" for dialogue, version in HELD)
