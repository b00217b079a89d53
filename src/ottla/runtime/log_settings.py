"""From a topic's effective configs to what its log is given."""

from collections.abc import Mapping
from functools import lru_cache
from typing import cast

from ottla.log.config import Compression, LogConfig, TimestampType
from ottla.metadata.configs import ConfigValue, broker_value, effective_topic_config

_LEVEL_CONFIGS = {
    Compression.GZIP: "compression.gzip.level",
    Compression.LZ4: "compression.lz4.level",
    Compression.ZSTD: "compression.zstd.level",
}


def log_config(overrides: Mapping[str, str], broker: Mapping[str, str], jitter: float) -> LogConfig:
    """`overrides` are the topic's own configs and `broker` the set configs of this broker; `jitter` is drawn once per log, from 0 to 1."""
    values = effective_topic_config(overrides, broker)
    policies = cast("tuple[str, ...]", values["cleanup.policy"])
    compression = Compression[str(values["compression.type"]).upper()]
    level = _LEVEL_CONFIGS.get(compression)
    return _one_for_all(
        LogConfig(
            segment_bytes=_int(
                values["segment.bytes"]
                if values["internal.segment.bytes"] is None
                else values["internal.segment.bytes"]
            ),
            segment_ms=_int(values["segment.ms"]),
            segment_jitter_ms=int(_int(values["segment.jitter.ms"]) * jitter),
            segment_index_bytes=_int(values["segment.index.bytes"]),
            index_interval_bytes=_int(values["index.interval.bytes"]),
            max_message_bytes=_int(values["max.message.bytes"]),
            compacted="compact" in policies,
            deletes="delete" in policies,
            timestamp_type=TimestampType.APPEND
            if values["message.timestamp.type"] == "LogAppendTime"
            else TimestampType.CREATE,
            timestamp_before_max_ms=_int(values["message.timestamp.before.max.ms"]),
            timestamp_after_max_ms=_int(values["message.timestamp.after.max.ms"]),
            compression=compression,
            compression_level=None if level is None else _int(values[level]),
            producer_expiration_ms=_int(broker_value("producer.id.expiration.ms", broker)),
            file_delete_delay_ms=_int(values["file.delete.delay.ms"]),
            flush_messages=_int(values["flush.messages"]),
            flush_ms=_int(values["flush.ms"]),
            retention_ms=_int(values["retention.ms"]),
            retention_bytes=_int(values["retention.bytes"]),
            delete_retention_ms=_int(values["delete.retention.ms"]),
            min_compaction_lag_ms=_int(values["min.compaction.lag.ms"]),
            max_compaction_lag_ms=_int(values["max.compaction.lag.ms"]),
            min_cleanable_dirty_ratio=float(cast("float", values["min.cleanable.dirty.ratio"])),
        )
    )


@lru_cache(maxsize=256)
def _one_for_all(config: LogConfig) -> LogConfig:
    """Thousands of partitions have the same: what they share stays in the processor's caches."""
    return config


def _int(value: ConfigValue) -> int:
    assert isinstance(value, int), value
    return value
