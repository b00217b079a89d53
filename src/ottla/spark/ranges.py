"""Planning of micro-batches and tasks as pure functions: how much one trigger reads, and which task reads what."""

from collections.abc import Mapping, Sequence
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
    """Return one range per task: one per partition, and more for ranges over `records_max` or if there are fewer than
    `count_min`.

    Larger ranges are split first, so that tasks have about the same size.
    """
    found = [each for each in ranges if each.size > 0]
    if records_max is not None:
        found = [part for each in found for part in divide(each, ceil(each.size / records_max))]
    if count_min is None or len(found) >= count_min:
        return found
    # Small ranges stay whole; the others share the remaining tasks.
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
    """Split into `parts` non-empty ranges of about the same size."""
    found, start = [], whole.start
    for index in range(parts):
        end = start + (whole.end - start) // (parts - index)
        if end > start:
            found.append(OffsetRange(whole.topic, whole.partition, start, end))
        start = end
    return found
