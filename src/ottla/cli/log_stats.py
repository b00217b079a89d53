"""`ottla log stats`: sizes, rates, compression and keys by partition and topic."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ottla.cli.log_dump import CODECS
from ottla.cli.log_files import FileType, LogFile, batches, partition_name

if TYPE_CHECKING:
    from ottla.wire.batches import BatchHeader

KEYS_MAX = 1_000_000
"""Upper limit of distinct keys counted; with more keys, the count is reported as inexact."""


class PartitionStats:
    """Statistics of a partition, or of several merged."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.segments = self.log_bytes = self.other_bytes = self.batches = self.records = 0
        self.stored_bytes = self.plain_bytes = self.tombstones = self.keyless = self.control_batches = 0
        self.batch_bytes_max = 0
        self.codecs: dict[str, int] = {}
        self.keys: dict[int, None] = {}
        self.producers: dict[int, None] = {}
        self.first_timestamp = self.last_timestamp = -1
        self.first_offset = self.next_offset = -1

    def add_file(self, file: LogFile) -> None:
        if file.file_type is FileType.SEGMENT:
            self.segments += 1
            self.log_bytes += file.size
        else:
            self.other_bytes += file.size

    def add_batch(self, header: "BatchHeader", batch: memoryview, *, with_records: bool) -> None:
        self.batches += 1
        self.batch_bytes_max = max(self.batch_bytes_max, header.size)
        if self.first_offset < 0:
            self.first_offset = header.base_offset
        self.next_offset = header.last_offset + 1
        if header.is_control:
            self.control_batches += 1
            return
        self.records += header.record_count
        codec = CODECS[header.codec] if header.codec < len(CODECS) else str(header.codec)
        self.codecs[codec] = self.codecs.get(codec, 0) + 1
        if header.producer_id >= 0:
            self.producers[header.producer_id] = None
        if header.max_timestamp >= 0:
            first = header.max_timestamp if header.has_log_append_time else header.base_timestamp
            self.first_timestamp = first if self.first_timestamp < 0 else min(self.first_timestamp, first)
            self.last_timestamp = max(self.last_timestamp, header.max_timestamp)
        if with_records:
            self._add_records(header, batch)

    def _add_records(self, header: "BatchHeader", batch: memoryview) -> None:
        from ottla.wire.batches import RECORDS_AT, decode_payload
        from ottla.wire.compression import decompress

        payload = bytes(batch[RECORDS_AT:])
        self.stored_bytes += len(payload)
        if header.codec:
            payload = decompress(header.codec, payload, 1 << 30)
        self.plain_bytes += len(payload)
        for record in decode_payload(header, payload):
            if record.key is None:
                self.keyless += 1
            elif len(self.keys) < KEYS_MAX:
                self.keys[hash(record.key)] = None
            self.tombstones += record.value is None

    def merge(self, other: "PartitionStats") -> None:
        for name in (
            "segments",
            "log_bytes",
            "other_bytes",
            "batches",
            "records",
            "stored_bytes",
            "plain_bytes",
            "tombstones",
            "keyless",
            "control_batches",
        ):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.batch_bytes_max = max(self.batch_bytes_max, other.batch_bytes_max)
        for codec, count in other.codecs.items():
            self.codecs[codec] = self.codecs.get(codec, 0) + count
        self.keys.update(other.keys)
        self.producers.update(other.producers)
        if other.last_timestamp >= 0:
            self.first_timestamp = (
                other.first_timestamp if self.first_timestamp < 0 else min(self.first_timestamp, other.first_timestamp)
            )
            self.last_timestamp = max(self.last_timestamp, other.last_timestamp)

    def document(self, *, with_records: bool) -> dict[str, Any]:
        """Return the statistics as JSON. Without records, the fields about keys and compression are omitted."""
        seconds = max(self.last_timestamp - self.first_timestamp, 0) / 1000
        document: dict[str, Any] = {
            "name": self.name,
            "segments": self.segments,
            "log_bytes": self.log_bytes,
            "other_bytes": self.other_bytes,
            "batches": self.batches,
            "records": self.records,
            "first_offset": self.first_offset,
            "next_offset": self.next_offset,
            "batch_bytes_average": round(self.log_bytes / self.batches, 1) if self.batches else None,
            "batch_bytes_max": self.batch_bytes_max,
            "records_per_batch": round(self.records / self.batches, 2) if self.batches else None,
            "codecs": self.codecs,
            "control_batches": self.control_batches,
            "producers": len(self.producers),
            "first_timestamp": self.first_timestamp,
            "last_timestamp": self.last_timestamp,
            "seconds": seconds,
            "records_per_second": round(self.records / seconds, 3) if seconds else None,
            "bytes_per_second": round(self.log_bytes / seconds, 1) if seconds else None,
        }
        if with_records:
            document |= {
                "compression_ratio": round(self.plain_bytes / self.stored_bytes, 3) if self.stored_bytes else None,
                "distinct_keys": len(self.keys),
                "is_distinct_keys_exact": len(self.keys) < KEYS_MAX,
                "records_without_key": self.keyless,
                "tombstones": self.tombstones,
            }
        return document


def gather(
    files: Iterable[LogFile], *, with_records: bool, on_bytes: Callable[[int], None] = lambda size: None
) -> list[PartitionStats]:
    """Return statistics by partition, sorted by name. Files that a running node deletes meanwhile are skipped."""
    found: dict[str, PartitionStats] = {}
    for file in files:
        if file.file_type not in (
            FileType.SEGMENT,
            FileType.OFFSET_INDEX,
            FileType.TIME_INDEX,
            FileType.TRANSACTION_INDEX,
            FileType.PRODUCERS,
        ):
            continue
        name = partition_name(file.path)
        stats = found.setdefault(name, PartitionStats(name))
        try:
            stats.add_file(file)
            if file.file_type is FileType.SEGMENT:
                for _, header, batch in batches(file.path):
                    stats.add_batch(header, batch, with_records=with_records)
                    on_bytes(header.size)
        except FileNotFoundError:
            continue
    return [found[name] for name in sorted(found)]


def by_topic(partitions: Iterable[PartitionStats]) -> list[PartitionStats]:
    topics: dict[str, PartitionStats] = {}
    for stats in partitions:
        topic = stats.name.rpartition("-")[0] or stats.name
        topics.setdefault(topic, PartitionStats(topic)).merge(stats)
    return list(topics.values())


def stats_table(documents: Iterable[dict[str, Any]], *, with_records: bool) -> tuple[list[str], list[list[Any]]]:
    """Return the headings and rows of a table: rounded figures, and one row for a topic's empty partitions."""
    columns = ["name", "segments", "size", "records", "batch", "span", "rec/s"]
    columns += ["ratio", "keys"] if with_records else []
    rows: dict[str, list[Any]] = {}
    empty: dict[str, int] = {}
    for each in documents:
        topic = each["name"].rpartition("-")[0]
        if not each["batches"] and topic:
            empty[topic] = empty.get(topic, 0) + 1
            name = f"{topic} ({empty[topic]} empty)" if empty[topic] > 1 else each["name"]
            rows[f"{topic} empty"] = [name, *[None] * (len(columns) - 1)]
            continue
        rate, seconds, batch = each["records_per_second"], each["seconds"], each["batch_bytes_average"]
        row = [each["name"], each["segments"], _size(each["log_bytes"]), _count(each["records"])]
        row += [_size(batch), _span(seconds), None if rate is None else _count(rate) if rate >= 10 else f"{rate:.2f}"]
        if with_records:
            ratio = each["compression_ratio"]
            keys = f"{_count(each['distinct_keys'])}{'' if each['is_distinct_keys_exact'] else '+'}"
            row += [None if ratio is None else f"{ratio:.1f}", keys]
        rows[each["name"]] = row
    return columns, list(rows.values())


def _count(count: float) -> str:
    """Return a number with up to five digits, or with three and a unit."""
    if count < 100_000:
        return f"{count:.0f}"
    return (
        f"{count / 1e3:.3g} k"
        if count < 999_500
        else f"{count / 1e6:,.3g} M"
        if count < 1e9
        else f"{count / 1e9:,.4g} G"
    )


def _size(size: float | None) -> str | None:
    """Return a number of bytes with three digits: `512 B`, `1.25 MB`."""
    if size is None:
        return None
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


def _span(seconds: float) -> str:
    """Return a duration in its largest unit: `0.7 s`, `25 min`, `36 h`, `90 d`."""
    for unit, length, below in (("s", 1, 120), ("min", 60, 7200), ("h", 3600, 172_800)):
        if seconds < below:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds / 86_400:,.0f} d"
