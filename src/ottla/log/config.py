"""The topic configs that a log needs, in typed fields with Kafka's defaults."""

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from ottla.wire.batch_validation import BatchRules

LONG_MAX = (1 << 63) - 1


class TimestampType(Enum):
    """`message.timestamp.type`."""

    CREATE = "create"
    APPEND = "append"


class Compression(Enum):
    """`compression.type`; the numbers are the codecs of record batches."""

    PRODUCER = -1
    UNCOMPRESSED = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


@dataclass(frozen=True, slots=True)
class LogConfig:
    """The defaults are Kafka's. `segment_jitter_ms` is the value drawn for this log, not the configured maximum."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3_600_000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    max_message_bytes: int = 1_048_588
    compacted: bool = False
    deletes: bool = True
    timestamp_type: TimestampType = TimestampType.CREATE
    timestamp_before_max_ms: int = LONG_MAX
    timestamp_after_max_ms: int = 3_600_000
    compression: Compression = Compression.PRODUCER
    compression_level: int | None = None
    producer_expiration_ms: int = 24 * 3_600_000
    file_delete_delay_ms: int = 60_000
    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX
    retention_ms: int = 7 * 24 * 3_600_000
    """-1: no limit."""
    retention_bytes: int = -1
    """-1: no limit."""
    delete_retention_ms: int = 24 * 3_600_000
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = LONG_MAX
    min_cleanable_dirty_ratio: float = 0.5

    @property
    def segment_age_max_ms(self) -> int:
        """Age at which the active segment is closed. It is never compacted, so `max.compaction.lag.ms` applies too."""
        age = (
            min(self.segment_ms, self.max_compaction_lag_ms)
            if self.compacted and self.max_compaction_lag_ms > 0
            else self.segment_ms
        )
        return age - self.segment_jitter_ms

    def rules(self) -> BatchRules:
        """Return the rules for validating batches. Logs with equal rules share one object, to stay in CPU caches."""
        return _shared(
            BatchRules(
                max_message_bytes=self.max_message_bytes,
                compacted=self.compacted,
                log_append_time=self.timestamp_type is TimestampType.APPEND,
                timestamp_before_max_ms=self.timestamp_before_max_ms,
                timestamp_after_max_ms=self.timestamp_after_max_ms,
                target_codec=None if self.compression is Compression.PRODUCER else self.compression.value,
                target_level=self.compression_level,
            )
        )


@lru_cache(maxsize=256)
def _shared(rules: BatchRules) -> BatchRules:
    return rules
