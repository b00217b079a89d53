"""Configs of topics, groups and client-metrics subscriptions, and the broker configs that topics inherit from."""

TOPIC = """
segment.bytes                           int      medium topic   1048576.. 1073741824
segment.ms                              long     medium topic   1..       604800000
segment.jitter.ms                       long     medium topic   0..       0
segment.index.bytes                     int      medium topic   4..       10485760
flush.messages                          long     medium topic   1..       9223372036854775807
flush.ms                                long     medium topic   0..       9223372036854775807
retention.bytes                         long     medium topic   *         -1
retention.ms                            long     medium topic   -1..      604800000
max.message.bytes                       int      medium topic   0..       1048588
index.interval.bytes                    int      medium topic   0..       4096
delete.retention.ms                     long     medium topic   0..       86400000
min.compaction.lag.ms                   long     medium topic   0..       0
max.compaction.lag.ms                   long     medium topic   1..       9223372036854775807
file.delete.delay.ms                    long     medium topic   0..       60000
min.cleanable.dirty.ratio               double   medium topic   0..1      0.5
cleanup.policy                          list     medium topic   [compact|delete] delete
unclean.leader.election.enable          bool     medium topic   *         false
min.insync.replicas                     int      medium topic   1..       1
compression.type                        string   medium topic   uncompressed|zstd|lz4|snappy|gzip|producer producer
compression.gzip.level                  int      medium topic   gzip-level -1
compression.lz4.level                   int      medium topic   1..17     9
compression.zstd.level                  int      medium topic   -131072..22 3
preallocate                             bool     medium topic   *         false
message.timestamp.type                  string   medium topic   CreateTime|LogAppendTime CreateTime
message.timestamp.before.max.ms         long     medium topic   0..       9223372036854775807
message.timestamp.after.max.ms          long     medium topic   0..       3600000
leader.replication.throttled.replicas   list     medium topic   throttled-replicas ""
follower.replication.throttled.replicas list     medium topic   throttled-replicas ""
remote.storage.enable                   bool     medium topic   *         false
local.retention.ms                      long     medium topic   -2..      -2
local.retention.bytes                   long     medium topic   -2..      -2
remote.log.copy.disable                 bool     medium topic   *         false
remote.log.delete.on.disable            bool     medium topic   *         false
internal.segment.bytes                  int      medium topic   *         null internal
"""

GROUP = """
consumer.session.timeout.ms        int      medium group   1..       45000
consumer.heartbeat.interval.ms     int      medium group   1..       5000
consumer.assignment.interval.ms    int      medium group   0..       1000
share.session.timeout.ms           int      medium group   1..       45000
share.heartbeat.interval.ms        int      medium group   1..       5000
share.record.lock.duration.ms      int      medium group   1000..    30000
share.delivery.count.limit         int      medium group   2..       5
share.partition.max.record.locks   int      medium group   100..     2000
share.auto.offset.reset            string   medium group   offset-reset latest
share.isolation.level              string   medium group   read_committed|read_uncommitted read_uncommitted
share.renew.acknowledge.enable     bool     medium group   *         true
share.assignment.interval.ms       int      medium group   0..       1000
streams.session.timeout.ms         int      medium group   1..       45000
streams.heartbeat.interval.ms      int      medium group   1..       5000
streams.num.standby.replicas       int      medium group   0..       0
streams.initial.rebalance.delay.ms int      medium group   0..       3000
streams.assignment.interval.ms     int      medium group   0..       1000
"""

CLIENT_METRICS = """
metrics     list     medium client  []        ""
interval.ms int      medium client  *         300000
match       list     medium client  []        ""
"""

_MINUTE_MS = 60_000
_HOUR_MS = 3_600_000

# Broker configs that a topic inherits from if it has no value: the first that is set applies, multiplied by its unit.
SYNONYMS: dict[str, tuple[tuple[str, int], ...]] = {
    "cleanup.policy": (("log.cleanup.policy", 1),),
    "compression.gzip.level": (("compression.gzip.level", 1),),
    "compression.lz4.level": (("compression.lz4.level", 1),),
    "compression.type": (("compression.type", 1),),
    "compression.zstd.level": (("compression.zstd.level", 1),),
    "delete.retention.ms": (("log.cleaner.delete.retention.ms", 1),),
    "file.delete.delay.ms": (("log.segment.delete.delay.ms", 1),),
    "flush.messages": (("log.flush.interval.messages", 1),),
    "flush.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
    "index.interval.bytes": (("log.index.interval.bytes", 1),),
    "local.retention.bytes": (("log.local.retention.bytes", 1),),
    "local.retention.ms": (("log.local.retention.ms", 1),),
    "max.compaction.lag.ms": (("log.cleaner.max.compaction.lag.ms", 1),),
    "max.message.bytes": (("message.max.bytes", 1),),
    "message.timestamp.after.max.ms": (("log.message.timestamp.after.max.ms", 1),),
    "message.timestamp.before.max.ms": (("log.message.timestamp.before.max.ms", 1),),
    "message.timestamp.type": (("log.message.timestamp.type", 1),),
    "min.cleanable.dirty.ratio": (("log.cleaner.min.cleanable.ratio", 1),),
    "min.compaction.lag.ms": (("log.cleaner.min.compaction.lag.ms", 1),),
    "min.insync.replicas": (("min.insync.replicas", 1),),
    "preallocate": (("log.preallocate", 1),),
    "retention.bytes": (("log.retention.bytes", 1),),
    "retention.ms": (("log.retention.ms", 1), ("log.retention.minutes", _MINUTE_MS), ("log.retention.hours", _HOUR_MS)),
    "segment.bytes": (("log.segment.bytes", 1),),
    "segment.index.bytes": (("log.index.size.max.bytes", 1),),
    "segment.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", _HOUR_MS)),
    "segment.ms": (("log.roll.ms", 1), ("log.roll.hours", _HOUR_MS)),
    "unclean.leader.election.enable": (("unclean.leader.election.enable", 1),),
}
