"""A large index of an active segment is mapped, not loaded, after a clean stop, and returns the same results."""

import random
from pathlib import Path

import pytest

from ottla.log import resumed_index
from ottla.log.offset_index import MutableOffsetIndex
from ottla.log.resumed_index import ResumedOffsetIndex, ResumedTimeIndex
from ottla.log.time_index import MutableTimeIndex
from tests.unit.log.log_fixtures import NOW, append, batch, index_entries, open_log, read_all


@pytest.mark.parametrize("split", [0, 1, 7, 40])
@pytest.mark.parametrize("zeros", [0, 960])
def test_resumed_index_equals_one_in_memory(split: int, zeros: int) -> None:
    """With any entries in the file, with and without the zeros that Apache Kafka pads it with."""
    source = random.Random(split)
    entries = []
    offset, position, time = 100, 0, 50
    for _ in range(40):
        offset, position, time = (
            offset + source.randint(1, 9),
            position + source.randint(1, 9),
            time + source.randint(0, 3),
        )
        entries.append((offset, position, time))
    offsets, times = MutableOffsetIndex(100), MutableTimeIndex(100)
    for offset, position, time in entries[:split]:
        offsets.append(offset, position)
        times.maybe_append(time, offset)
    resumed_offsets = ResumedOffsetIndex(100, memoryview(offsets.encode() + bytes(zeros)))
    resumed_times = ResumedTimeIndex(100, memoryview(times.encode() + bytes(zeros if split else 0)))
    for offset, position, time in entries[split:]:
        for one in (offsets, resumed_offsets):
            one.append(offset, position)
        for other in (times, resumed_times):
            other.maybe_append(time, offset)
    assert [resumed_offsets.position_range(offset) for offset in range(100, 500)] == [
        offsets.position_range(n) for n in range(100, 500)
    ]
    assert [resumed_times.offset_before(time) for time in range(200)] == [
        times.offset_before(time) for time in range(200)
    ]
    for resumed, original in ((resumed_offsets, offsets), (resumed_times, times)):
        assert len(resumed) == len(original)
        assert resumed.entries() == original.entries()
        assert resumed.encode() == original.encode()
    assert resumed_offsets.last_position() == offsets.last_position()
    assert resumed_times.last() == times.last()


def test_log_continues_with_a_mapped_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over several clean stops, and a final roll."""
    monkeypatch.setattr(resumed_index, "LOADED_BYTES_MAX", 40)
    expected = open_log(tmp_path / "expected", index_interval_bytes=100)
    for number in range(90):
        append(expected, batch(b"%d" % number, timestamp=NOW + number))
    for number in range(90):
        if number % 30 == 0:
            log = open_log(tmp_path / "parts", index_interval_bytes=100)
        append(log, batch(b"%d" % number, timestamp=NOW + number))
        if number % 30 == 29:
            assert isinstance(log.segments[0].offset_index, ResumedOffsetIndex) == (number > 30)
            if number == 89:
                break
            log.close()
    assert log.segments[0].offsets().entries() == expected.segments[0].offsets().entries()
    assert [record.value for record in read_all(log, 0)] == [b"%d" % number for number in range(90)]
    for one in (log, expected):
        one.roll(now_ms=NOW)
        append(one)
        one.flush()
    assert log.offset_for_timestamp(NOW + 45) == (NOW + 45, 45, 0)
    # Each clean stop adds the highest timestamp to the time index, so there may be more entries, but never fewer.
    (offsets, times), (expected_offsets, expected_times) = index_entries(log)[0], index_entries(expected)[0]
    assert offsets == expected_offsets
    assert [entry for entry in times if entry in expected_times] == expected_times
