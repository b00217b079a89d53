"""Descriptions of the configs in `definitions_resources`."""

TOPIC = """
segment.bytes A segment is closed before it would exceed this size.
segment.ms A segment is closed when a record arrives that is this much newer than the segment's first record.
segment.jitter.ms Random part of this time that is subtracted from segment.ms, so that logs do not roll simultaneously.
segment.index.bytes A segment is closed when one of its index files reaches this size.
flush.messages The log is flushed to disk after this many records; by default the operating system decides.
flush.ms Records are flushed to disk after this time at the latest; by default the operating system decides.
retention.bytes The oldest segments of a partition are deleted while it exceeds this size; -1 means no limit.
retention.ms Segments whose newest record is older than this are deleted; -1 means no limit.
max.message.bytes Maximum size of a record batch, compressed if the producer compresses.
index.interval.bytes The offset index gets an entry after this many bytes of records.
delete.retention.ms How long compaction keeps tombstones, so that slow consumers see deletions.
min.compaction.lag.ms Minimum age of a record before it may be compacted.
max.compaction.lag.ms Maximum time until a record's segment becomes eligible for compaction.
file.delete.delay.ms Delay before the files of a deleted segment or topic are removed, so that readers can finish.
min.cleanable.dirty.ratio A log is compacted when at least this share of it has not been compacted.
cleanup.policy Retention policy: delete removes old segments by age and size, compact keeps the latest record per key.
unclean.leader.election.enable Whether a replica that may lack acknowledged records can become leader as a last resort.
min.insync.replicas Writes with acks=all are rejected while fewer replicas than this are in sync.
compression.type Compression on disk: producer keeps batches as sent, otherwise they are recompressed with this codec.
compression.gzip.level Compression level of gzip; -1 is the codec's default.
compression.lz4.level Compression level of LZ4.
compression.zstd.level Compression level of Zstandard.
preallocate Whether a new segment's file is allocated at its full size.
message.timestamp.type Whether records keep the producer's timestamp or get the time of the append.
message.timestamp.before.max.ms Records with a timestamp further than this before the broker's time are rejected.
message.timestamp.after.max.ms Records with a timestamp further than this after the broker's time are rejected.
leader.replication.throttled.replicas Replicas throttled on the leader, as partition:broker; * means all.
follower.replication.throttled.replicas Replicas throttled on the follower, as partition:broker; * means all.
remote.storage.enable Whether closed segments are also copied to tiered storage.
local.retention.ms How long a segment stays on the broker after it was copied to tiered storage; -2 means retention.ms.
local.retention.bytes Local size limit of a partition in tiered storage; -2 means retention.bytes.
remote.log.copy.disable Stops copying to tiered storage; copied segments stay readable until they expire.
remote.log.delete.on.disable Whether disabling tiered storage also deletes the copied segments.
internal.segment.bytes Like segment.bytes, without a lower limit, for tests.
"""

GROUP = """
consumer.session.timeout.ms A member that sends no heartbeat for this long is removed from its consumer group.
consumer.heartbeat.interval.ms Heartbeat interval of members of a consumer group.
consumer.assignment.interval.ms Minimum time between two assignments of a consumer group.
share.session.timeout.ms A member that sends no heartbeat for this long is removed from its share group.
share.heartbeat.interval.ms Heartbeat interval of members of a share group.
share.record.lock.duration.ms How long a record delivered to a member is locked for other members.
share.delivery.count.limit Maximum number of delivery attempts of a record.
share.partition.max.record.locks Maximum number of locked records per partition.
share.auto.offset.reset Where a share group without an offset starts: earliest, latest, or a duration ago.
share.isolation.level Whether a share group also gets records of open and aborted transactions.
share.renew.acknowledge.enable Whether a member may extend the lock of a record.
share.assignment.interval.ms Minimum time between two assignments of a share group.
streams.session.timeout.ms A member that sends no heartbeat for this long is removed from its streams group.
streams.heartbeat.interval.ms Heartbeat interval of members of a streams group.
streams.num.standby.replicas Number of standby copies of each task's state.
streams.initial.rebalance.delay.ms How long an empty streams group waits for more members before its first assignment.
streams.assignment.interval.ms Minimum time between two assignments of a streams group.
"""

CLIENT_METRICS = """
metrics Metrics to collect from matching clients, as name prefixes; * means all.
interval.ms Push interval of matching clients, from 100 ms to one hour.
match Clients to collect from, as name=pattern over id, software, version and address; all if empty.
"""
