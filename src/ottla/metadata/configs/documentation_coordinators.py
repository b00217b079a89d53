"""Descriptions of the configs in `definitions_coordinators`."""

TEXTS = """
group.coordinator.rebalance.protocols Group protocols that are served.
group.coordinator.threads Number of group coordinator threads of a Java broker.
group.coordinator.background.threads Number of threads of a Java broker that compute assignments.
group.coordinator.append.linger.ms How long the group coordinator collects records before a write; -1 is adaptive.
group.coordinator.cached.buffer.max.bytes Maximum size of the group coordinator's reused write buffer.
offsets.commit.timeout.ms Maximum time an offset commit waits for replication.
offsets.load.buffer.size Bytes per read while a group coordinator loads a partition.
offsets.topic.replication.factor Number of replicas of __consumer_offsets.
offsets.topic.num.partitions Number of partitions of __consumer_offsets; must not be changed later.
offsets.topic.segment.bytes Segment size of __consumer_offsets.
offsets.topic.compression.codec Compression codec of __consumer_offsets, as a number.
offset.metadata.max.bytes Maximum size of the metadata string of a committed offset.
offsets.retention.minutes Committed offsets expire this long after their group was last in use.
offsets.retention.check.interval.ms How often committed offsets are checked for expiration.
group.min.session.timeout.ms Minimum session timeout of classic members.
group.max.session.timeout.ms Maximum session timeout of classic members.
group.initial.rebalance.delay.ms How long an empty classic group waits for more members before its first assignment.
group.max.size Maximum number of members of a classic group.
group.consumer.min.session.timeout.ms Minimum consumer.session.timeout.ms of a group.
group.consumer.max.session.timeout.ms Maximum consumer.session.timeout.ms of a group.
group.consumer.min.heartbeat.interval.ms Minimum consumer.heartbeat.interval.ms of a group.
group.consumer.max.heartbeat.interval.ms Maximum consumer.heartbeat.interval.ms of a group.
group.consumer.min.assignment.interval.ms Minimum consumer.assignment.interval.ms of a group.
group.consumer.max.assignment.interval.ms Maximum consumer.assignment.interval.ms of a group.
group.consumer.max.size Maximum number of members of a consumer group.
group.consumer.assignors Assignors of consumer groups; the first is the default.
group.consumer.migration.policy Allowed live migrations between the classic and the consumer protocol.
group.consumer.regex.refresh.interval.ms How often subscribed patterns are matched against the topics.
group.share.min.session.timeout.ms Minimum share.session.timeout.ms of a group.
group.share.max.session.timeout.ms Maximum share.session.timeout.ms of a group.
group.share.min.heartbeat.interval.ms Minimum share.heartbeat.interval.ms of a group.
group.share.max.heartbeat.interval.ms Maximum share.heartbeat.interval.ms of a group.
group.share.min.assignment.interval.ms Minimum share.assignment.interval.ms of a group.
group.share.max.assignment.interval.ms Maximum share.assignment.interval.ms of a group.
group.share.max.size Maximum number of members of a share group.
group.share.assignors Assignors of share groups.
group.share.initialize.retry.interval.ms Backoff after a failed initialization of a share partition.
group.share.min.delivery.count.limit Minimum share.delivery.count.limit of a group.
group.share.max.delivery.count.limit Maximum share.delivery.count.limit of a group.
group.share.min.record.lock.duration.ms Minimum share.record.lock.duration.ms of a group.
group.share.max.record.lock.duration.ms Maximum share.record.lock.duration.ms of a group.
group.share.min.partition.max.record.locks Minimum share.partition.max.record.locks of a group.
group.share.max.partition.max.record.locks Maximum share.partition.max.record.locks of a group.
group.share.max.share.sessions Maximum number of share sessions.
group.share.persister.class.name Class of a Java broker that persists the state of share groups.
share.fetch.purgatory.purge.interval.requests Purge interval of delayed share fetches in a Java broker.
share.coordinator.state.topic.num.partitions Number of partitions of __share_group_state; must not be changed later.
share.coordinator.state.topic.replication.factor Number of replicas of __share_group_state.
share.coordinator.state.topic.min.isr Minimum number of in-sync replicas of __share_group_state for a write.
share.coordinator.state.topic.segment.bytes Segment size of __share_group_state.
share.coordinator.state.topic.compression.codec Compression codec of __share_group_state, as a number.
share.coordinator.state.topic.prune.interval.ms How often obsolete share-group state is deleted.
share.coordinator.threads Number of share coordinator threads of a Java broker.
share.coordinator.snapshot.update.records.per.snapshot Number of updates between two snapshots of the share coordinator.
share.coordinator.load.buffer.size Bytes per read while a share coordinator loads a partition.
share.coordinator.append.linger.ms How long the share coordinator collects records before a write; -1 is adaptive.
share.coordinator.write.timeout.ms Maximum time a write of the share coordinator waits for replication.
share.coordinator.cold.partition.snapshot.interval.ms How often snapshots are written for idle share partitions.
share.coordinator.cached.buffer.max.bytes Maximum size of the share coordinator's reused write buffer.
group.streams.min.session.timeout.ms Minimum streams.session.timeout.ms of a group.
group.streams.max.session.timeout.ms Maximum streams.session.timeout.ms of a group.
group.streams.min.heartbeat.interval.ms Minimum streams.heartbeat.interval.ms of a group.
group.streams.max.heartbeat.interval.ms Maximum streams.heartbeat.interval.ms of a group.
group.streams.min.assignment.interval.ms Minimum streams.assignment.interval.ms of a group.
group.streams.max.assignment.interval.ms Maximum streams.assignment.interval.ms of a group.
group.streams.max.size Maximum number of members of a streams group.
group.streams.max.standby.replicas Maximum streams.num.standby.replicas of a group.
transaction.state.log.min.isr Minimum number of in-sync replicas of __transaction_state for a write.
transaction.state.log.load.buffer.size Bytes per read while a transaction coordinator loads a partition.
transaction.state.log.replication.factor Number of replicas of __transaction_state.
transaction.state.log.num.partitions Number of partitions of __transaction_state; must not be changed later.
transaction.state.log.segment.bytes Segment size of __transaction_state.
transaction.partition.verification.enable Whether transactional writes must belong to an open transaction.
transactional.id.expiration.ms A transactional id expires after this time without use.
transaction.max.timeout.ms Maximum transaction timeout that a client may request.
transaction.abort.timed.out.transaction.cleanup.interval.ms How often transactions are checked for timeouts.
transaction.remove.expired.transaction.cleanup.interval.ms How often transactional ids are checked for expiration.
transaction.two.phase.commit.enable Whether two-phase commit is allowed: prepared transactions have no timeout.
producer.id.expiration.ms A producer's state in a log expires after this time without writes.
producer.id.expiration.check.interval.ms How often logs are checked for expired producer state.
add.partitions.to.txn.retry.backoff.ms Backoff before a partition is again added to a busy transaction.
add.partitions.to.txn.retry.backoff.max.ms How long a broker tries to add a partition to a busy transaction.
remote.log.storage.system.enable Whether tiered storage is enabled on this broker.
remote.log.storage.manager.impl.prefix Prefix of the storage plug-in's own configs.
remote.log.metadata.manager.impl.prefix Prefix of the metadata plug-in's own configs.
remote.log.storage.manager.class.name Class of the tiered storage plug-in.
remote.log.storage.manager.class.path Class path of the tiered storage plug-in in a Java broker.
remote.log.metadata.manager.class.name Class of the tiered metadata plug-in.
remote.log.metadata.manager.class.path Class path of the tiered metadata plug-in in a Java broker.
remote.log.metadata.manager.listener.name Listener that the tiered metadata plug-in uses.
remote.log.metadata.custom.metadata.max.bytes Maximum custom metadata that a storage plug-in may attach to a segment.
remote.log.index.file.cache.total.size.bytes Maximum disk space for indexes of tiered segments.
remote.log.index.file.cache.ttl.ms How long an unused index of a tiered segment stays on disk.
remote.log.manager.thread.pool.size Number of threads that manage tiered partitions.
remote.log.manager.copier.thread.pool.size Number of threads that copy segments to tiered storage.
remote.log.manager.expiration.thread.pool.size Number of threads that delete expired segments from tiered storage.
remote.log.manager.follower.thread.pool.size Number of threads for follower partitions in tiered storage.
remote.log.manager.task.interval.ms How often tiered partitions are checked for work.
remote.log.manager.task.retry.backoff.ms Initial backoff after a failed task on a tiered partition.
remote.log.manager.task.retry.backoff.max.ms Maximum backoff after failed tasks on a tiered partition.
remote.log.manager.task.retry.jitter Random variation of these backoffs.
remote.log.reader.threads Number of threads that read from tiered storage.
remote.log.reader.max.pending.tasks Maximum number of queued reads of tiered storage; more are rejected.
remote.log.manager.copy.max.bytes.per.second Maximum copy rate to tiered storage.
remote.log.manager.copy.quota.window.num Number of samples for measuring the copy rate.
remote.log.manager.copy.quota.window.size.seconds Length of each sample of the copy rate.
remote.log.manager.fetch.max.bytes.per.second Maximum read rate from tiered storage.
remote.log.manager.fetch.quota.window.num Number of samples for measuring the read rate.
remote.log.manager.fetch.quota.window.size.seconds Length of each sample of the read rate.
remote.fetch.max.wait.ms Maximum time a fetch waits for tiered storage.
remote.list.offsets.request.timeout.ms Maximum time ListOffsets waits for tiered storage.
quota.window.num Number of samples for client quotas.
quota.window.size.seconds Length of each sample for client quotas.
replication.quota.window.num Number of samples for replication quotas.
replication.quota.window.size.seconds Length of each sample for replication quotas.
alter.log.dirs.replication.quota.window.num Number of samples for the quota of moves between directories.
alter.log.dirs.replication.quota.window.size.seconds Length of each sample for the quota of moves between directories.
controller.quota.window.num Number of samples for controller mutation quotas.
controller.quota.window.size.seconds Length of each sample for controller mutation quotas.
client.quota.callback.class A plug-in that determines client quotas.
metrics.num.samples Number of samples per metric.
metrics.sample.window.ms Length of each metric sample.
metric.reporters Plug-ins that report metrics.
metrics.recording.level Metrics recording level: INFO, DEBUG or TRACE.
kafka.metrics.reporters Plug-ins that report the Yammer metrics of a Java broker.
kafka.metrics.polling.interval.secs Polling interval of those plug-ins.
telemetry.max.bytes Maximum size of a client's metrics push, before and after decompression.
"""
