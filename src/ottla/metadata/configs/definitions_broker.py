"""Broker configs of node, quorum, network, topics, logs and replication, in the notation of `definition.read_table`."""

NODE = """
# node id, roles, quorum
broker.id                                      int      high   static  *         -1
request.timeout.ms                             int      high   static  *         30000
config.providers                               list     low    cluster []        ""
early.start.listeners                          list     high   static  []        null
broker.rack                                    string   medium static  *         null
controlled.shutdown.enable                     bool     medium static  *         true
unstable.api.versions.enable                   bool     high   static  *         false internal
unstable.feature.versions.enable               bool     high   static  *         false internal
process.roles                                  list     high   static  [+broker|controller] -
node.id                                        int      high   static  0..       -
initial.broker.registration.timeout.ms         int      medium static  *         60000
broker.heartbeat.interval.ms                   int      medium static  *         2000
broker.session.timeout.ms                      int      medium static  *         9000
controller.listener.names                      list     high   static  [+]       -
sasl.mechanism.controller.protocol             string   high   static  *         GSSAPI
controller.performance.sample.period.ms        long     medium static  100..     60000 internal
controller.performance.always.log.threshold.ms long     medium static  0..       2000 internal
server.max.startup.time.ms                     long     medium static  0..       9223372036854775807 internal
controller.socket.timeout.ms                   int      medium static  *         30000
controller.quorum.voters                       list     high   static  voters    ""
controller.quorum.bootstrap.servers            list     high   static  servers   ""
controller.quorum.election.timeout.ms          int      high   static  0..       1000
controller.quorum.fetch.timeout.ms             int      high   static  0..       2000
controller.quorum.election.backoff.max.ms      int      high   static  0..       1000
controller.quorum.append.linger.ms             int      medium static  0..       25
controller.quorum.request.timeout.ms           int      medium static  0..       2000
controller.quorum.retry.backoff.ms             int      low    static  0..       20
controller.quorum.auto.join.enable             bool     low    static  *         false
controller.quorum.fetch.snapshot.max.bytes     int      low    static  1..       1048576
controller.quorum.fetch.max.bytes              int      low    static  1..       1048576
"""

METADATA_LOG = """
# the metadata log
metadata.log.max.record.bytes.between.snapshots long     high   static  1..       20971520
metadata.log.max.snapshot.interval.ms           long     high   static  0..       3600000
metadata.log.dir                                string   high   static  *         null
metadata.log.segment.bytes                      int      high   static  8388608.. 1073741824
metadata.log.segment.ms                         long     high   static  *         604800000
metadata.max.retention.bytes                    long     high   static  *         104857600
metadata.max.retention.ms                       long     high   static  *         604800000
metadata.max.idle.interval.ms                   int      low    static  0..       500
internal.metadata.log.segment.bytes             int      low    static  *         null internal
internal.metadata.max.batch.size.in.bytes       int      low    static  *         8388608 internal
internal.metadata.delete.delay.millis           long     low    static  *         60000 internal
"""

NETWORK = """
# listeners, connections, threads
num.io.threads                            int      high   cluster 1..       8
background.threads                        int      high   cluster 1..       10
socket.connection.setup.timeout.ms        long     medium static  *         10000
socket.connection.setup.timeout.max.ms    long     medium static  *         30000
listeners                                 list     high   broker  [+]       PLAINTEXT://:9092
advertised.listeners                      list     high   static  [+]       null
listener.security.protocol.map            string   low    broker  *         SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT
socket.send.buffer.bytes                  int      high   static  *         102400
socket.receive.buffer.bytes               int      high   static  *         102400
socket.request.max.bytes                  int      high   static  1..       104857600
socket.listen.backlog.size                int      medium static  1..       50
max.connections.per.ip                    int      medium cluster 0..       2147483647
max.connections.per.ip.overrides          string   medium cluster *         ""
max.connections                           int      medium cluster 0..       2147483647
max.connection.creation.rate              int      medium cluster 0..       2147483647
connections.max.idle.ms                   long     medium static  *         600000
connection.failed.authentication.delay.ms int      low    static  0..       100
queued.max.requests                       int      high   static  1..       500
queued.max.request.bytes                  long     medium static  *         -1
num.network.threads                       int      high   cluster 1..       3
"""  # noqa: E501

TOPICS = """
# topics and request limits
message.max.bytes                         int      high   cluster 0..       1048588
delete.topic.enable                       bool     high   static  *         true
compression.type                          string   high   cluster uncompressed|zstd|lz4|snappy|gzip|producer producer
compression.gzip.level                    int      medium cluster gzip-level -1
compression.lz4.level                     int      medium cluster 1..17     9
compression.zstd.level                    int      medium cluster -131072..22 3
max.incremental.fetch.session.cache.slots int      medium static  0..       1000
fetch.max.bytes                           int      medium static  1024..    57671680
max.request.partition.size.limit          int      medium static  1..       2000
default.replication.factor                int      medium static  *         1
unclean.leader.election.interval.ms       long     medium static  1..       300000 internal
unclean.leader.election.enable            bool     high   cluster *         false
num.partitions                            int      medium static  1..       1
auto.create.topics.enable                 bool     high   static  *         true
min.insync.replicas                       int      high   cluster 1..       1
create.topic.policy.class.name            class    low    static  *         null
alter.config.policy.class.name            class    low    static  *         null
"""

LOG = """
# logs
num.replica.alter.log.dirs.threads            int      high   static  *         null
log.cleaner.threads                           int      medium cluster 0..       1
log.cleaner.io.max.bytes.per.second           double   medium cluster *         1.7976931348623157E308
log.cleaner.dedupe.buffer.size                long     medium cluster *         134217728
log.cleaner.io.buffer.size                    int      medium cluster 0..       524288
log.cleaner.io.buffer.load.factor             double   medium cluster *         0.9
log.cleaner.backoff.ms                        long     medium cluster 0..       15000
log.cleaner.min.cleanable.ratio               double   medium cluster 0..1      0.5
log.cleaner.enable                            bool     medium static  *         true
log.cleaner.delete.retention.ms               long     medium cluster 0..       86400000
log.cleaner.min.compaction.lag.ms             long     medium cluster 0..       0
log.cleaner.max.compaction.lag.ms             long     medium cluster 1..       9223372036854775807
log.dir                                       list     high   static  [+]       /tmp/kafka-logs
log.dirs                                      list     high   static  [+]       null
cordoned.log.dirs                             list     medium broker  []        ""
log.segment.bytes                             int      high   cluster 1048576.. 1073741824
log.roll.ms                                   long     high   cluster *         null
log.roll.hours                                int      high   static  1..       168
log.roll.jitter.ms                            long     high   cluster *         null
log.roll.jitter.hours                         int      high   static  0..       0
log.retention.ms                              long     high   cluster *         null
log.retention.minutes                         int      high   static  *         null
log.retention.hours                           int      high   static  *         168
log.retention.bytes                           long     high   cluster *         -1
log.retention.check.interval.ms               long     medium static  1..       300000
log.cleanup.policy                            list     medium cluster [compact|delete] delete
log.index.size.max.bytes                      int      medium cluster 4..       10485760
log.index.interval.bytes                      int      medium cluster 0..       4096
log.flush.interval.messages                   long     high   cluster 1..       9223372036854775807
log.segment.delete.delay.ms                   long     high   cluster 0..       60000
log.flush.scheduler.interval.ms               long     high   static  *         9223372036854775807
log.flush.interval.ms                         long     high   cluster *         null
log.flush.offset.checkpoint.interval.ms       int      high   static  0..       60000
log.flush.start.offset.checkpoint.interval.ms int      high   static  0..       60000
log.preallocate                               bool     medium cluster *         false
num.recovery.threads.per.data.dir             int      high   cluster 1..       2
log.message.timestamp.type                    string   medium cluster CreateTime|LogAppendTime CreateTime
log.message.timestamp.before.max.ms           long     medium cluster 0..       9223372036854775807
log.message.timestamp.after.max.ms            long     medium cluster 0..       3600000
log.dir.failure.timeout.ms                    long     low    static  1..       30000
log.initial.task.delay.ms                     long     low    static  0..       30000 internal
"""

REPLICATION = """
# replicas and leaders
replica.lag.time.max.ms                          long     high   static  *         30000
replica.socket.timeout.ms                        int      high   static  *         30000
replica.socket.receive.buffer.bytes              int      high   static  *         65536
replica.fetch.max.bytes                          int      medium static  0..       1048576
replica.fetch.wait.max.ms                        int      high   static  *         500
replica.fetch.backoff.ms                         int      medium static  0..       1000
replica.fetch.min.bytes                          int      high   static  *         1
replica.fetch.response.max.bytes                 int      medium static  0..       10485760
num.replica.fetchers                             int      high   cluster 1..       1
replica.high.watermark.checkpoint.interval.ms    long     high   static  *         5000
fetch.purgatory.purge.interval.requests          int      medium static  *         1000
producer.purgatory.purge.interval.requests       int      medium static  *         1000
delete.records.purgatory.purge.interval.requests int      medium static  *         1
auto.leader.rebalance.enable                     bool     high   static  *         true
leader.imbalance.check.interval.seconds          long     high   static  1..       300
security.inter.broker.protocol                   string   medium static  PLAINTEXT|SSL|SASL_PLAINTEXT|SASL_SSL PLAINTEXT
inter.broker.listener.name                       string   medium static  *         null
replica.selector.class                           string   medium static  *         null
follower.fetch.last.tiered.offset.enable         bool     medium cluster *         false
leader.replication.throttled.rate                long     medium cluster 0..       null internal
follower.replication.throttled.rate              long     medium cluster 0..       null internal
replica.alter.log.dirs.io.max.bytes.per.second   long     medium cluster 0..       null internal
"""
