"""Text form of ids, and random ids."""

import pytest

from ottla.base.ids import METADATA_TOPIC_ID, ZERO_UUID, Uuid, random_uuid, uuid_from_text, uuid_text


class ScriptedRng:
    """An Rng that returns given values in order."""

    def __init__(self, *values: bytes) -> None:
        self._values = list(values)

    def random_bytes(self, size: int) -> bytes:
        return self._values.pop(0)

    def below(self, limit: int) -> int:
        return 0


def test_uuid_text_is_kafkas() -> None:
    assert uuid_text(ZERO_UUID) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert uuid_text(METADATA_TOPIC_ID) == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert uuid_from_text("AAAAAAAAAAAAAAAAAAAAAQ") == METADATA_TOPIC_ID


@pytest.mark.parametrize("text", ["", "AAAA", "A" * 23, "A" * 44])
def test_uuid_from_text_rejects_other_sizes(text: str) -> None:
    with pytest.raises(ValueError):
        uuid_from_text(text)


def test_random_uuid_is_version_4_and_never_begins_with_a_dash() -> None:
    dashed, good = b"\xf8" + bytes(15), b"\xff" * 16
    assert uuid_text(Uuid(dashed)).startswith("-")
    made = random_uuid(ScriptedRng(dashed, good))
    assert (made[6] >> 4, made[8] >> 6) == (4, 2)
    assert made == Uuid(b"\xff" * 6 + b"\x4f\xff\xbf" + b"\xff" * 7)
