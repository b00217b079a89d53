"""Broker configs of groups, transactions, tiered storage, quotas and metrics."""

GROUPS = """
# classic and consumer groups
group.coordinator.rebalance.protocols     list     medium static  [+consumer|classic|share|streams] classic,consumer,streams
group.coordinator.threads                 int      high   static  1..       4
group.coordinator.background.threads      int      high   static  1..       2
group.coordinator.append.linger.ms        int      medium static  -1..      -1
offsets.commit.timeout.ms                 int      high   static  1..       5000
offsets.load.buffer.size                  int      high   static  1..       5242880
offsets.topic.replication.factor          short    high   static  1..       3
offsets.topic.num.partitions              int      high   static  1..       50
offsets.topic.segment.bytes               int      high   static  1..       104857600
offsets.topic.compression.codec           int      high   static  *         0
group.coordinator.cached.buffer.max.bytes int      medium cluster 524288..  1048588
offset.metadata.max.bytes                 int      high   static  *         4096
offsets.retention.minutes                 int      high   static  1..       10080
offsets.retention.check.interval.ms       long     high   static  1..       600000
group.min.session.timeout.ms              int      medium static  *         6000
group.max.session.timeout.ms              int      medium static  *         1800000
group.initial.rebalance.delay.ms          int      medium static  *         3000
group.max.size                            int      medium static  1..       2147483647
group.consumer.session.timeout.ms         int      medium static  1..       45000
group.consumer.min.session.timeout.ms     int      medium static  1..       45000
group.consumer.max.session.timeout.ms     int      medium static  1..       60000
group.consumer.heartbeat.interval.ms      int      medium static  1..       5000
group.consumer.min.heartbeat.interval.ms  int      medium static  1..       5000
group.consumer.max.heartbeat.interval.ms  int      medium static  1..       15000
group.consumer.max.size                   int      medium static  1..       2147483647
group.consumer.assignors                  list     medium static  [+]       uniform,range
group.consumer.migration.policy           string   medium static  ~DISABLED|DOWNGRADE|UPGRADE|BIDIRECTIONAL bidirectional
group.consumer.assignment.interval.ms     int      medium cluster 0..       1000
group.consumer.min.assignment.interval.ms int      medium static  0..       0
group.consumer.max.assignment.interval.ms int      medium static  0..       15000
group.consumer.regex.refresh.interval.ms  int      medium static  10000..   600000 internal
"""  # noqa: E501

SHARE_GROUPS = """
# share groups
group.share.session.timeout.ms                       int      medium static  1..       45000
group.share.min.session.timeout.ms                   int      medium static  1..       45000
group.share.max.session.timeout.ms                   int      medium static  1..       60000
group.share.heartbeat.interval.ms                    int      medium static  1..       5000
group.share.min.heartbeat.interval.ms                int      medium static  1..       5000
group.share.max.heartbeat.interval.ms                int      medium static  1..       15000
group.share.max.size                                 int      medium static  1..1000   200
group.share.assignors                                list     medium static  [+]       simple
group.share.assignment.interval.ms                   int      medium cluster 0..       1000
group.share.min.assignment.interval.ms               int      medium static  0..       0
group.share.max.assignment.interval.ms               int      medium static  0..       15000
group.share.initialize.retry.interval.ms             int      low    static  1..       30000 internal
group.share.delivery.count.limit                     int      medium static  2..10     5
group.share.max.delivery.count.limit                 int      medium static  5..25     10
group.share.min.delivery.count.limit                 int      medium static  2..5      2
group.share.record.lock.duration.ms                  int      medium static  1000..3600000 30000
group.share.min.record.lock.duration.ms              int      medium static  1000..30000 15000
group.share.max.record.lock.duration.ms              int      medium static  30000..3600000 60000
group.share.partition.max.record.locks               int      medium static  100..10000 2000
group.share.max.partition.max.record.locks           int      medium static  2000..10000 4000
group.share.min.partition.max.record.locks           int      medium static  100..2000 100
share.fetch.purgatory.purge.interval.requests        int      medium static  *         1000
group.share.max.share.sessions                       int      medium static  1..       2000
group.share.persister.class.name                     string   medium static  *         org.apache.kafka.server.share.persister.DefaultStatePersister internal
share.coordinator.state.topic.num.partitions         int      high   static  1..       50
share.coordinator.state.topic.replication.factor     short    high   static  1..       3
share.coordinator.state.topic.min.isr                short    high   static  1..       2
share.coordinator.state.topic.segment.bytes          int      high   static  1..       104857600
share.coordinator.threads                            int      medium static  1..       1
share.coordinator.snapshot.update.records.per.snapshot int      medium static  0..500    500
share.coordinator.load.buffer.size                   int      high   static  1..       5242880
share.coordinator.state.topic.compression.codec      int      high   static  *         0
share.coordinator.append.linger.ms                   int      medium static  -1..      -1
share.coordinator.write.timeout.ms                   int      high   static  1..       5000
share.coordinator.state.topic.prune.interval.ms      int      low    static  1..       300000 internal
share.coordinator.cold.partition.snapshot.interval.ms int      low    static  1..       300000 internal
share.coordinator.cached.buffer.max.bytes            int      medium cluster 524288..  1048588
"""  # noqa: E501

STREAMS_GROUPS = """
# streams groups
group.streams.session.timeout.ms         int      medium static  1..       45000
group.streams.min.session.timeout.ms     int      medium static  1..       45000
group.streams.max.session.timeout.ms     int      medium static  1..       60000
group.streams.heartbeat.interval.ms      int      medium static  1..       5000
group.streams.min.heartbeat.interval.ms  int      medium static  1..       5000
group.streams.max.heartbeat.interval.ms  int      medium static  1..       15000
group.streams.max.size                   int      medium static  1..       2147483647
group.streams.num.standby.replicas       int      medium static  0..       0
group.streams.max.standby.replicas       int      medium static  0..       2
group.streams.initial.rebalance.delay.ms int      medium static  0..       3000
group.streams.assignment.interval.ms     int      medium cluster 0..       1000
group.streams.min.assignment.interval.ms int      medium static  0..       0
group.streams.max.assignment.interval.ms int      medium static  0..       15000
"""

TRANSACTIONS = """
# producers and transactions
transaction.state.log.min.isr                        int      high   static  1..       2
transaction.state.log.load.buffer.size               int      high   static  1..       5242880
transaction.state.log.replication.factor             short    high   static  1..       3
transaction.state.log.num.partitions                 int      high   static  1..       50
transaction.state.log.segment.bytes                  int      high   static  1..       104857600
transaction.partition.verification.enable            bool     low    cluster *         true
producer.id.expiration.ms                            int      low    cluster 1..       86400000
producer.id.expiration.check.interval.ms             int      low    static  1..       600000 internal
transactional.id.expiration.ms                       int      high   static  1..       604800000
transaction.max.timeout.ms                           int      high   static  1..       900000
transaction.abort.timed.out.transaction.cleanup.interval.ms int      low    static  1..       10000
transaction.remove.expired.transaction.cleanup.interval.ms int      low    static  1..       3600000
transaction.two.phase.commit.enable                  bool     low    static  *         false
add.partitions.to.txn.retry.backoff.max.ms           int      high   static  0..       100
add.partitions.to.txn.retry.backoff.ms               int      high   static  1..       20
"""

TIERED_STORAGE = """
# tiered storage
remote.log.storage.system.enable                   bool     medium static  *         false
remote.log.storage.manager.impl.prefix             string   medium static  +         rsm.config.
remote.log.metadata.manager.impl.prefix            string   medium static  +         rlmm.config.
remote.log.storage.manager.class.name              string   medium static  +         null
remote.log.storage.manager.class.path              string   medium static  *         null
remote.log.metadata.manager.class.name             string   medium static  +         org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager
remote.log.metadata.manager.class.path             string   medium static  *         null
remote.log.metadata.manager.listener.name          string   medium static  +         null
remote.log.metadata.custom.metadata.max.bytes      int      low    static  0..       128
remote.log.index.file.cache.total.size.bytes       long     low    cluster 1..       1073741824
remote.log.index.file.cache.ttl.ms                 long     low    static  -1..      900000 internal
remote.log.manager.thread.pool.size                int      medium static  1..       2
remote.log.manager.copier.thread.pool.size         int      medium cluster 1..       10
remote.log.manager.expiration.thread.pool.size     int      medium cluster 1..       10
remote.log.manager.follower.thread.pool.size       int      medium cluster 1..       2
remote.log.manager.task.interval.ms                long     low    static  1..       30000
remote.log.manager.task.retry.backoff.ms           long     low    static  1..       500 internal
remote.log.manager.task.retry.backoff.max.ms       long     low    static  1..       30000 internal
remote.log.manager.task.retry.jitter               double   low    static  0..0.5    0.2 internal
remote.log.reader.threads                          int      medium cluster 1..       10
remote.log.reader.max.pending.tasks                int      medium static  1..       100
log.local.retention.ms                             long     medium cluster -2..      -2
log.local.retention.bytes                          long     medium cluster -2..      -2
remote.log.manager.copy.max.bytes.per.second       long     medium cluster 1..       9223372036854775807
remote.log.manager.copy.quota.window.num           int      medium static  1..       11
remote.log.manager.copy.quota.window.size.seconds  int      medium static  1..       1
remote.log.manager.fetch.max.bytes.per.second      long     medium cluster 1..       9223372036854775807
remote.log.manager.fetch.quota.window.num          int      medium static  1..       11
remote.log.manager.fetch.quota.window.size.seconds int      medium static  1..       1
remote.fetch.max.wait.ms                           int      medium cluster 1..       500
remote.list.offsets.request.timeout.ms             long     medium cluster 1..       30000
"""  # noqa: E501

QUOTAS = """
# quotas
quota.window.num                                     int      low    static  1..       11
replication.quota.window.num                         int      low    static  1..       11
alter.log.dirs.replication.quota.window.num          int      low    static  1..       11
controller.quota.window.num                          int      low    static  1..       11
quota.window.size.seconds                            int      low    static  1..       1
replication.quota.window.size.seconds                int      low    static  1..       1
alter.log.dirs.replication.quota.window.size.seconds int      low    static  1..       1
controller.quota.window.size.seconds                 int      low    static  1..       1
client.quota.callback.class                          class    low    static  *         null
"""

METRICS = """
# metrics
metrics.num.samples                 int      low    static  1..       2
metrics.sample.window.ms            long     low    static  1..       30000
metric.reporters                    list     low    cluster []        org.apache.kafka.common.metrics.JmxReporter
metrics.recording.level             string   low    static  *         INFO
kafka.metrics.reporters             list     low    static  []        ""
kafka.metrics.polling.interval.secs int      low    static  1..       10
telemetry.max.bytes                 int      low    static  1..       1048576
"""
