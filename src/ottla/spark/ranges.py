"""Planning of micro-batches and tasks as pure functions: how much one trigger reads, and which task reads what."""

from collections.abc import Mapping, Sequence
from heapq import heapify, heapreplace
from math import ceil, floor
from typing import NamedTuple

from ottla.client.records import TopicPartition
from ottla.spark.offset_options import Offsets


class OffsetRange(NamedTuple):
    """Offsets of one partition from `start` up to, but not including, `end`."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


def limit_offsets(start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int], limit: int) -> Offsets:
    """Return end offsets for about `limit` records, shared by backlog; every partition with a backlog gets some."""
    sizes = {partition: max(end - start[partition], 0) for partition, end in latest.items()}
    total = sum(sizes.values())
    if total <= limit:
        return dict(latest)
    ends: Offsets = {}
    for partition, end in latest.items():
        share = limit * sizes[partition] / total
        ends[partition] = min(
            start[partition] + (ceil(share) if share < 1 else floor(share)), max(end, start[partition])
        )
    return ends


def split_ranges(ranges: Sequence[OffsetRange], *, count_min: int | None, records_max: int | None) -> list[OffsetRange]:
    """Return one range per task: one per partition, and more for ranges over `records_max`, or for `count_min` tasks.

    Larger ranges are split first, so that tasks have about the same size.
    """
    found = [each for each in ranges if each.size > 0]
    if records_max is not None:
        found = [part for each in found for part in divide(each, ceil(each.size / records_max))]
    if count_min is None or len(found) >= count_min:
        return found
    counts = _part_counts([each.size for each in found], count_min)
    return [part for each, count in zip(found, counts, strict=True) for part in divide(each, count)]


def _part_counts(sizes: list[int], count_min: int) -> list[int]:
    """Return into how many parts each range is split: as in Spark's connector, and then at least `count_min` in all."""
    # Small ranges stay whole; the others share the remaining tasks.
    total = sum(sizes)
    small = [_share(size, total, count_min) == 1 for size in sizes]
    rest = sum(size for size, is_small in zip(sizes, small, strict=True) if not is_small)
    parts_left = count_min - sum(small)
    counts = [
        1 if is_small else min(_share(size, rest, parts_left), size)
        for size, is_small in zip(sizes, small, strict=True)
    ]
    # Rounding down may leave too few: split the ranges with the largest parts further.
    largest = [(-size / count, index) for index, (size, count) in enumerate(zip(sizes, counts, strict=True))]
    heapify(largest)
    for _ in range(min(count_min, total) - sum(counts)):
        index = largest[0][1]
        counts[index] += 1
        heapreplace(largest, (-sizes[index] / counts[index], index))
    return counts


def _share(size: int, total: int, count: int) -> int:
    return max(floor(size / total * count + 0.5), 1)


def divide(whole: OffsetRange, parts: int) -> list[OffsetRange]:
    """Split into `parts` non-empty ranges of about the same size."""
    found, start = [], whole.start
    for index in range(parts):
        end = start + (whole.end - start) // (parts - index)
        if end > start:
            found.append(OffsetRange(whole.topic, whole.partition, start, end))
        start = end
    return found
