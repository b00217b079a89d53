"""Dividing what is to be read: how much one trigger takes, and which tasks read it. Numbers in, numbers out."""

from collections.abc import Mapping, Sequence
from math import ceil, floor
from typing import NamedTuple

from ottla.client.records import TopicPartition
from ottla.spark.offset_options import Offsets


class OffsetRange(NamedTuple):
    """Offsets of one partition: from `start` up to and without `end`."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


def limit_offsets(start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int], limit: int) -> Offsets:
    """Ends that take about `limit` offsets, shared among partitions by what each of them has; none with something is left out."""
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
    """One task for each partition; more where ranges hold more than `records_max`, or are fewer than `count_min`. Large ones are divided
    first, so that tasks become of one size."""
    found = [each for each in ranges if each.size > 0]
    if records_max is not None:
        found = [part for each in found for part in divide(each, ceil(each.size / records_max))]
    if count_min is None or len(found) >= count_min:
        return found
    # Ranges that are small stay whole, and the others share what is left.
    total = sum(each.size for each in found)
    small = {each for each in found if _parts(each.size, total, count_min) == 1}
    rest = sum(each.size for each in found if each not in small)
    parts_left = count_min - len(small)
    return [
        part for each in found for part in divide(each, 1 if each in small else _parts(each.size, rest, parts_left))
    ]


def _parts(size: int, total: int, count: int) -> int:
    return max(round(size / total * count), 1)


def divide(whole: OffsetRange, parts: int) -> list[OffsetRange]:
    """In so many of about one size; none of them is empty."""
    found, start = [], whole.start
    for index in range(parts):
        end = start + (whole.end - start) // (parts - index)
        if end > start:
            found.append(OffsetRange(whole.topic, whole.partition, start, end))
        start = end
    return found
