"""The offset map returns the latest offset of each key, as a dictionary would."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.log import offset_map
from ottla.log.offset_map import KEY_BYTES_MAX, PADDING, OffsetMap

SPECIAL = [b"", b"\0", b"\0" * 8, b"\0" * 9, b"k" * (KEY_BYTES_MAX + 1)]
keys = st.one_of(st.binary(max_size=3), st.binary(max_size=40), st.sampled_from(SPECIAL))


def read(offset_map_: OffsetMap, listed: list[bytes]) -> offset_map.Keys:
    data = b"".join(listed)
    sizes = np.array([len(key) for key in listed], np.int64)
    return offset_map_.read_keys(np.frombuffer(data + PADDING, np.uint8), np.cumsum(sizes) - sizes, sizes)


def check(windows: list[list[bytes]], map_under_test: OffsetMap, lookups: list[bytes]) -> None:
    expected: dict[bytes, int] = {}
    offset = 10
    for window in windows:
        offsets = np.arange(offset, offset + len(window))
        map_under_test.put(read(map_under_test, window), offsets)
        expected.update(zip(window, offsets.tolist(), strict=True))
        offset += len(window) + 3
    lookups = lookups + list(expected)
    assert map_under_test.latest(read(map_under_test, lookups)).tolist() == [expected.get(key, -1) for key in lookups]
    assert sorted(entry for entry in map_under_test.latest_offsets().tolist() if entry >= 0) == sorted(
        expected.values()
    )


@given(st.lists(st.lists(keys, max_size=60), max_size=5), st.lists(keys, max_size=10), st.integers(0, 1 << 62))
@settings(deadline=None, max_examples=150)
def test_offset_map_equals_a_dictionary(windows, lookups, seed):
    check(windows, OffsetMap(seed), lookups)


@given(st.lists(st.lists(keys, max_size=60), max_size=5), st.lists(keys, max_size=10))
@settings(deadline=None, max_examples=50)
def test_keys_with_colliding_hashes_are_distinguished(windows, lookups):
    """With two hashes for all keys and few probes, most keys are stored in the overflow dictionary."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(offset_map, "PROBES_MAX", 3)

        class Colliding(OffsetMap):
            def read_keys(self, octets, starts, sizes):
                found = super().read_keys(octets, starts, sizes)
                found.hashes[:] = found.sizes.astype(np.uint64) & np.uint64(1)
                return found

        check(windows, Colliding(), lookups)


def test_offset_map_grows(tmp_path):
    """With more keys than initial slots; memory use is counted."""
    map_under_test = OffsetMap(7)
    before = map_under_test.memory_bytes
    windows = [[b"key-%d" % number for number in range(first, first + 20_000)] for first in (0, 10_000, 30_000)]
    check(windows, map_under_test, [b"key-50001"])
    assert len(map_under_test) == 50_000
    assert before + 50_000 * 30 < map_under_test.memory_bytes < before + 50_000 * 80
