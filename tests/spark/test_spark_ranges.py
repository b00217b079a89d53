"""Splitting of offset ranges into tasks."""

import pytest

from ottla.spark.ranges import OffsetRange, split_ranges


def counts(sizes, count_min, records_max=None):
    ranges = [OffsetRange("t", index, 0, size) for index, size in enumerate(sizes)]
    found = split_ranges(ranges, count_min=count_min, records_max=records_max)
    assert [(each.partition, offset) for each in found for offset in range(each.start, each.end)] == [
        (index, offset) for index, size in enumerate(sizes) for offset in range(size)
    ]
    return [sum(each.partition == index for each in found) for index in range(len(sizes))]


def test_shares_are_rounded_half_up_as_in_sparks_connector():
    """Spark makes 12 tasks of four equal partitions for `minPartitions=10`."""
    assert counts([100] * 4, 10) == [3] * 4


@pytest.mark.parametrize(
    ("sizes", "count_min", "expected"),
    [
        ([100] * 3, 4, [2, 1, 1]),
        ([300, 100, 100], 6, [4, 1, 1]),
        ([1000, 1, 1], 5, [3, 1, 1]),
        ([10, 10], 3, [2, 2]),
        ([2, 3], 100, [2, 3]),
        ([0, 10, 0], 2, [0, 2, 0]),
        ([], 4, []),
        ([5], 1, [1]),
    ],
)
def test_there_are_at_least_min_partitions_if_there_are_records(sizes, count_min, expected):
    assert counts(sizes, count_min) == expected


def test_min_partitions_and_max_records_together():
    assert counts([10, 4], 7, records_max=5) == [6, 2]


@pytest.mark.parametrize("count_min", range(1, 60))
def test_any_count_is_reached(count_min):
    sizes = [7, 90, 13, 1, 33]
    assert sum(counts(sizes, count_min)) >= count_min
