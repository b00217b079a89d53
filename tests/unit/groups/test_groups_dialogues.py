"""The shard answers as Apache Kafka did, word for word of what a client can see."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.groups.dialogues import DIALOGUES
from tests.unit.groups.talking import ShardSpeaker, Talk

RECORDED: dict[str, list[str]] = json.loads((Path(__file__).parents[2] / "data" / "group_dialogues.json").read_text())
HELD = [(dialogue, version) for dialogue, versions in DIALOGUES.items() for version in versions]


@pytest.mark.parametrize(("dialogue", "version"), HELD, ids=[f"{dialogue.__name__} v{version}" for dialogue, version in HELD])
def test_a_dialogue_goes_as_with_kafka(dialogue: Callable[[Any, int], None], version: int) -> None:
    talk = Talk(ShardSpeaker(), "0123456789ab-")
    dialogue(talk, version)
    assert talk.transcript == RECORDED[f"{dialogue.__name__} v{version}"]


def test_every_recorded_dialogue_is_held() -> None:
    assert sorted(RECORDED) == sorted(f"{dialogue.__name__} v{version}" for dialogue, version in HELD)
