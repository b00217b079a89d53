"""Descriptions of the configs in `definitions_broker`."""

TEXTS = """
broker.id Old name of node.id; if both are set they must be equal.
node.id Id of this node, unique in the cluster.
process.roles Roles of the node: broker, controller, or both.
broker.rack Rack of the broker; replicas of a partition are spread over racks.
request.timeout.ms Timeout of requests that the broker sends.
config.providers Plug-ins that resolve ${...} in config values.
early.start.listeners Listeners that open before the authorizer is ready.
controlled.shutdown.enable Whether a broker transfers its leaderships before it stops.
unstable.api.versions.enable Whether API versions in development are served.
unstable.feature.versions.enable Whether feature levels in development may be used.
initial.broker.registration.timeout.ms How long a starting broker tries to register with the controller.
broker.heartbeat.interval.ms Interval of heartbeats to the controller.
broker.session.timeout.ms A broker is fenced if the controller gets no heartbeat for this long.
controller.listener.names Listeners of the controller.
sasl.mechanism.controller.protocol SASL mechanism for connections to controllers.
controller.performance.sample.period.ms How often the controller logs its slowest events.
controller.performance.always.log.threshold.ms The controller logs each event that takes longer than this.
server.max.startup.time.ms Maximum startup time.
controller.socket.timeout.ms Timeout of requests to a controller.
controller.quorum.voters Controllers of a static quorum, as id@host:port.
controller.quorum.bootstrap.servers Controllers for discovering the quorum, as host:port.
controller.quorum.election.timeout.ms How long a candidate waits for votes before it retries.
controller.quorum.fetch.timeout.ms A voter that cannot fetch for this long starts an election.
controller.quorum.election.backoff.max.ms Maximum random backoff between election attempts.
controller.quorum.append.linger.ms How long the quorum leader collects records before it writes them.
controller.quorum.request.timeout.ms Timeout of requests within the quorum.
controller.quorum.retry.backoff.ms Backoff before a failed request within the quorum is retried.
controller.quorum.auto.join.enable Whether a controller that is not a voter joins the quorum automatically.
controller.quorum.fetch.snapshot.max.bytes Maximum bytes per fetch of a snapshot.
controller.quorum.fetch.max.bytes Maximum bytes per fetch of the metadata log.
metadata.log.max.record.bytes.between.snapshots A metadata snapshot is written after this many bytes of records.
metadata.log.max.snapshot.interval.ms Maximum interval between metadata snapshots; 0 disables it.
metadata.log.dir Directory of the metadata log; the first of log.dirs by default.
metadata.log.segment.bytes A segment of the metadata log is closed at this size.
metadata.log.segment.ms A segment of the metadata log is closed at this age.
metadata.max.retention.bytes Old metadata segments and snapshots are deleted while they exceed this total size.
metadata.max.retention.ms Metadata segments and snapshots are deleted after this time.
metadata.max.idle.interval.ms Interval of the empty records an idle controller writes; 0 disables them.
internal.metadata.log.segment.bytes Like metadata.log.segment.bytes, without a lower limit, for tests.
internal.metadata.max.batch.size.in.bytes Maximum batch size of the metadata log, for tests.
internal.metadata.delete.delay.millis Delay before deleted metadata files are removed, for tests.
num.io.threads Number of request handler threads of a Java broker.
background.threads Number of background threads of a Java broker.
num.network.threads Number of network threads per listener of a Java broker.
socket.connection.setup.timeout.ms Initial timeout for opening a connection.
socket.connection.setup.timeout.max.ms Maximum timeout for opening a connection after repeated failures.
listeners Addresses the node listens on, as NAME://host:port; an empty host means all interfaces.
advertised.listeners Addresses that clients connect to, if they differ from listeners.
listener.security.protocol.map Security protocol of each listener, as NAME:PROTOCOL.
socket.send.buffer.bytes Size of the socket send buffer; -1 means the system's default.
socket.receive.buffer.bytes Size of the socket receive buffer; -1 means the system's default.
socket.request.max.bytes Maximum request size; a larger request closes the connection.
socket.listen.backlog.size Maximum number of connections waiting to be accepted.
max.connections.per.ip Maximum number of connections per client address.
max.connections.per.ip.overrides Limits for specific hosts, as host:number.
max.connections Maximum number of connections of the broker, or of a listener.
max.connection.creation.rate Maximum number of new connections per second.
connections.max.idle.ms A connection without traffic is closed after this time.
connection.failed.authentication.delay.ms Delay before a connection that failed to authenticate is closed.
queued.max.requests Maximum number of queued requests before network threads stop reading.
queued.max.request.bytes Maximum total size of queued requests before reading pauses; -1 means no limit.
delete.topic.enable Whether topics can be deleted.
auto.create.topics.enable Whether topics are created when a client requests their metadata.
num.partitions Default number of partitions of a new topic.
default.replication.factor Default number of replicas of a new topic.
max.incremental.fetch.session.cache.slots Maximum number of fetch sessions.
fetch.max.bytes Upper limit of the size of a fetch response.
max.request.partition.size.limit Maximum number of partitions in one DescribeTopicPartitions response.
create.topic.policy.class.name A plug-in that may reject new topics.
alter.config.policy.class.name A plug-in that may reject config changes.
unclean.leader.election.interval.ms How often partitions without a leader are checked for an unclean election.
log.dir Single data directory; log.dirs takes precedence.
log.dirs Data directories.
cordoned.log.dirs Data directories that get no new partitions.
log.cleaner.threads Number of compaction threads.
log.cleaner.io.max.bytes.per.second Maximum total read and write rate of compaction.
log.cleaner.dedupe.buffer.size Memory for keys during compaction, shared by all threads.
log.cleaner.io.buffer.size Memory for reads and writes during compaction, shared by all threads.
log.cleaner.io.buffer.load.factor Maximum load factor of the cleaner's key table.
log.cleaner.backoff.ms How long the cleaner sleeps when there is nothing to compact.
log.cleaner.enable Whether logs are compacted.
log.retention.check.interval.ms How often logs are checked for expired segments.
log.flush.scheduler.interval.ms How often logs are checked for flushing; the default of log.flush.interval.ms.
log.flush.offset.checkpoint.interval.ms How often recovery points are written to the checkpoint file.
log.flush.start.offset.checkpoint.interval.ms How often log start offsets are written to the checkpoint file.
log.dir.failure.timeout.ms A broker stops if it cannot report a failed directory to the controller for this long.
log.initial.task.delay.ms Delay after startup before log maintenance starts.
num.recovery.threads.per.data.dir Threads per data directory for log recovery at startup and flushing at shutdown.
num.replica.alter.log.dirs.threads Number of threads that move replicas between directories.
replica.lag.time.max.ms A follower that has not caught up for this long is removed from the ISR.
replica.socket.timeout.ms Timeout of a follower's requests.
replica.socket.receive.buffer.bytes Size of the receive buffer of a follower's connection.
replica.fetch.max.bytes Maximum bytes per partition in a follower's fetch.
replica.fetch.wait.max.ms Maximum time a leader delays a follower's fetch.
replica.fetch.backoff.ms Backoff after a failed fetch of a follower.
replica.fetch.min.bytes Minimum bytes of a follower's fetch.
replica.fetch.response.max.bytes Maximum bytes of a follower's fetch response.
num.replica.fetchers Number of fetcher threads per source broker.
replica.high.watermark.checkpoint.interval.ms How often high watermarks are written to the checkpoint file.
fetch.purgatory.purge.interval.requests Purge interval of delayed fetches in a Java broker.
producer.purgatory.purge.interval.requests Purge interval of delayed produce requests in a Java broker.
delete.records.purgatory.purge.interval.requests Purge interval of delayed DeleteRecords requests in a Java broker.
auto.leader.rebalance.enable Whether leadership returns to preferred replicas automatically.
leader.imbalance.check.interval.seconds How often the controller checks for leaders that are not the preferred replicas.
security.inter.broker.protocol Security protocol between brokers if inter.broker.listener.name is not set.
inter.broker.listener.name Listener for connections between brokers.
replica.selector.class A plug-in that selects the replica a consumer reads from.
follower.fetch.last.tiered.offset.enable Whether a new follower starts at the last tiered offset.
leader.replication.throttled.rate Maximum bytes per second that a leader sends for throttled replicas.
follower.replication.throttled.rate Maximum bytes per second that a follower fetches for throttled replicas.
replica.alter.log.dirs.io.max.bytes.per.second Maximum bytes per second read by moves between directories.
"""
