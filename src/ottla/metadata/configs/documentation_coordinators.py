"""Sentences about a broker's configs: groups, transactions, tiered storage, quotas and metrics."""

TEXTS = """
group.coordinator.rebalance.protocols The kinds of groups that are served.
group.coordinator.threads How many threads of a Java broker run the group coordinator.
group.coordinator.background.threads How many threads of a Java broker compute assignments beside the group coordinator.
group.coordinator.append.linger.ms How long the group coordinator gathers records before it writes them; -1 adapts to the load.
group.coordinator.cached.buffer.max.bytes The largest write buffer that the group coordinator keeps for the next use.
offsets.commit.timeout.ms How long a commit of offsets may wait for its replicas.
offsets.load.buffer.size How many bytes are read at a time when a group coordinator loads its partitions.
offsets.topic.replication.factor How many replicas the topic of committed offsets has.
offsets.topic.num.partitions How many partitions the topic of committed offsets has; not to be changed later.
offsets.topic.segment.bytes The size of segments in the topic of committed offsets.
offsets.topic.compression.codec The codec, by number, in which committed offsets are written.
offset.metadata.max.bytes The longest note that may be committed with an offset.
offsets.retention.minutes Committed offsets are forgotten this long after their group was last in use.
offsets.retention.check.interval.ms How often committed offsets are looked at that are too old.
group.min.session.timeout.ms The shortest session timeout that a classic member may ask for.
group.max.session.timeout.ms The longest session timeout that a classic member may ask for.
group.initial.rebalance.delay.ms How long an empty classic group waits for more members before it first assigns partitions.
group.max.size How many members a classic group may have.
group.consumer.min.session.timeout.ms The shortest consumer.session.timeout.ms that a group may set.
group.consumer.max.session.timeout.ms The longest consumer.session.timeout.ms that a group may set.
group.consumer.min.heartbeat.interval.ms The shortest consumer.heartbeat.interval.ms that a group may set.
group.consumer.max.heartbeat.interval.ms The longest consumer.heartbeat.interval.ms that a group may set.
group.consumer.min.assignment.interval.ms The shortest consumer.assignment.interval.ms that a group may set.
group.consumer.max.assignment.interval.ms The longest consumer.assignment.interval.ms that a group may set.
group.consumer.max.size How many members a consumer group may have.
group.consumer.assignors The ways of assigning partitions that consumer groups may use; the first is the default.
group.consumer.migration.policy Which ways a group may go between the classic and the consumer protocol while it is in use.
group.consumer.regex.refresh.interval.ms How often subscriptions by pattern are matched against the topics again.
group.share.min.session.timeout.ms The shortest share.session.timeout.ms that a group may set.
group.share.max.session.timeout.ms The longest share.session.timeout.ms that a group may set.
group.share.min.heartbeat.interval.ms The shortest share.heartbeat.interval.ms that a group may set.
group.share.max.heartbeat.interval.ms The longest share.heartbeat.interval.ms that a group may set.
group.share.min.assignment.interval.ms The shortest share.assignment.interval.ms that a group may set.
group.share.max.assignment.interval.ms The longest share.assignment.interval.ms that a group may set.
group.share.max.size How many members a share group may have.
group.share.assignors The ways of assigning partitions that share groups may use.
group.share.initialize.retry.interval.ms The pause before the state of a share group's partition is initialised again after a failure.
group.share.min.delivery.count.limit The lowest share.delivery.count.limit that a group may set.
group.share.max.delivery.count.limit The highest share.delivery.count.limit that a group may set.
group.share.min.record.lock.duration.ms The shortest share.record.lock.duration.ms that a group may set.
group.share.max.record.lock.duration.ms The longest share.record.lock.duration.ms that a group may set.
group.share.min.partition.max.record.locks The lowest share.partition.max.record.locks that a group may set.
group.share.max.partition.max.record.locks The highest share.partition.max.record.locks that a group may set.
group.share.max.share.sessions How many share sessions the broker remembers.
group.share.persister.class.name The class of a Java broker that stores the state of share groups.
share.fetch.purgatory.purge.interval.requests How often a Java broker sweeps its waiting share fetches.
share.coordinator.state.topic.num.partitions How many partitions the topic of share-group state has; not to be changed later.
share.coordinator.state.topic.replication.factor How many replicas the topic of share-group state has.
share.coordinator.state.topic.min.isr How many replicas of the topic of share-group state must be in sync for a write.
share.coordinator.state.topic.segment.bytes The size of segments in the topic of share-group state.
share.coordinator.state.topic.compression.codec The codec, by number, in which share-group state is written.
share.coordinator.state.topic.prune.interval.ms How often share-group state that is no longer needed is deleted.
share.coordinator.threads How many threads of a Java broker run the share coordinator.
share.coordinator.snapshot.update.records.per.snapshot How many updates the share coordinator writes between two snapshots.
share.coordinator.load.buffer.size How many bytes are read at a time when a share coordinator loads its partitions.
share.coordinator.append.linger.ms How long the share coordinator gathers records before it writes them; -1 adapts to the load.
share.coordinator.write.timeout.ms How long a write of the share coordinator may wait for its replicas.
share.coordinator.cold.partition.snapshot.interval.ms How often a snapshot is written for share partitions that are not in use.
share.coordinator.cached.buffer.max.bytes The largest write buffer that the share coordinator keeps for the next use.
group.streams.min.session.timeout.ms The shortest streams.session.timeout.ms that a group may set.
group.streams.max.session.timeout.ms The longest streams.session.timeout.ms that a group may set.
group.streams.min.heartbeat.interval.ms The shortest streams.heartbeat.interval.ms that a group may set.
group.streams.max.heartbeat.interval.ms The longest streams.heartbeat.interval.ms that a group may set.
group.streams.min.assignment.interval.ms The shortest streams.assignment.interval.ms that a group may set.
group.streams.max.assignment.interval.ms The longest streams.assignment.interval.ms that a group may set.
group.streams.max.size How many members a streams group may have.
group.streams.max.standby.replicas The highest streams.num.standby.replicas that a group may set.
transaction.state.log.min.isr How many replicas of the transaction log must be in sync for a write.
transaction.state.log.load.buffer.size How many bytes are read at a time when a transaction coordinator loads its partitions.
transaction.state.log.replication.factor How many replicas the transaction log has.
transaction.state.log.num.partitions How many partitions the transaction log has; not to be changed later.
transaction.state.log.segment.bytes The size of segments in the transaction log.
transaction.partition.verification.enable Whether a write is checked to belong to an open transaction.
transactional.id.expiration.ms A transactional id that is not used for this long is forgotten.
transaction.max.timeout.ms The longest timeout that a transaction may ask for.
transaction.abort.timed.out.transaction.cleanup.interval.ms How often transactions are looked at that took too long.
transaction.remove.expired.transaction.cleanup.interval.ms How often transactional ids are looked at that are too old.
transaction.two.phase.commit.enable Whether transactions may be prepared, and then wait for their coordinator without a timeout.
producer.id.expiration.ms A log forgets the sequence numbers of a producer that has not written for this long.
producer.id.expiration.check.interval.ms How often a log is looked at for producers to forget.
add.partitions.to.txn.retry.backoff.ms The pause before a partition is again offered to a transaction that is busy.
add.partitions.to.txn.retry.backoff.max.ms How long a broker tries to add a partition to a transaction that is busy.
remote.log.storage.system.enable Whether tiered storage exists on this broker.
remote.log.storage.manager.impl.prefix With what the names of the tiered store's own configs begin.
remote.log.metadata.manager.impl.prefix With what the names of the tiered metadata's own configs begin.
remote.log.storage.manager.class.name The class that reaches the tiered store.
remote.log.storage.manager.class.path Where a Java broker finds that class.
remote.log.metadata.manager.class.name The class that keeps the metadata of tiered segments.
remote.log.metadata.manager.class.path Where a Java broker finds the class for tiered metadata.
remote.log.metadata.manager.listener.name The listener through which tiered metadata is kept.
remote.log.metadata.custom.metadata.max.bytes The most bytes that a store may attach to a tiered segment.
remote.log.index.file.cache.total.size.bytes How much disk the indexes of tiered segments may take.
remote.log.index.file.cache.ttl.ms How long an index of a tiered segment stays on disk without being used.
remote.log.manager.thread.pool.size How many threads look after tiered partitions.
remote.log.manager.copier.thread.pool.size How many threads copy segments to the tiered store.
remote.log.manager.expiration.thread.pool.size How many threads delete segments from the tiered store.
remote.log.manager.follower.thread.pool.size How many threads follow what the leaders of tiered partitions do.
remote.log.manager.task.interval.ms How often each tiered partition is looked at for work.
remote.log.manager.task.retry.backoff.ms The first pause after failed work on a tiered partition.
remote.log.manager.task.retry.backoff.max.ms The longest pause after repeatedly failed work on a tiered partition.
remote.log.manager.task.retry.jitter How much these pauses vary at random.
remote.log.reader.threads How many threads read from the tiered store.
remote.log.reader.max.pending.tasks How many reads of the tiered store may wait; more are refused.
remote.log.manager.copy.max.bytes.per.second How fast segments are copied to the tiered store.
remote.log.manager.copy.quota.window.num How many samples the rate of copying is measured over.
remote.log.manager.copy.quota.window.size.seconds How long each sample of the rate of copying is.
remote.log.manager.fetch.max.bytes.per.second How fast the tiered store is read.
remote.log.manager.fetch.quota.window.num How many samples the rate of reading is measured over.
remote.log.manager.fetch.quota.window.size.seconds How long each sample of the rate of reading is.
remote.fetch.max.wait.ms How long a fetch may wait for the tiered store.
remote.list.offsets.request.timeout.ms How long a look-up of offsets may wait for the tiered store.
quota.window.num How many samples clients' rates are measured over.
quota.window.size.seconds How long each sample of clients' rates is.
replication.quota.window.num How many samples the rate of throttled replication is measured over.
replication.quota.window.size.seconds How long each sample of the rate of throttled replication is.
alter.log.dirs.replication.quota.window.num How many samples the rate of moves between directories is measured over.
alter.log.dirs.replication.quota.window.size.seconds How long each sample of the rate of moves between directories is.
controller.quota.window.num How many samples the rate of changes to the cluster is measured over.
controller.quota.window.size.seconds How long each sample of the rate of changes to the cluster is.
client.quota.callback.class A plug-in that decides clients' quotas.
metrics.num.samples How many samples a metric is computed over.
metrics.sample.window.ms How long each sample of a metric is.
metric.reporters Plug-ins that report metrics.
metrics.recording.level How much is measured: INFO, DEBUG or TRACE.
kafka.metrics.reporters Plug-ins that report the older metrics of a Java broker.
kafka.metrics.polling.interval.secs How often those plug-ins are asked.
telemetry.max.bytes The most bytes of metrics that a client may send at a time, before and after decompression.
"""
