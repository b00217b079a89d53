"""Sentences about a broker's configs: the node itself, its quorum, the network, topics, logs and replicas."""

TEXTS = """
broker.id An old name of node.id; where both are set they must agree.
node.id The number of this node, different from that of every other node of the cluster.
process.roles What the node is: a broker, a controller, or both.
broker.rack Where the broker stands; replicas of a partition are spread over racks.
request.timeout.ms How long the broker waits for an answer to a request of its own.
config.providers Plug-ins that look up ${...} in the values of configs.
early.start.listeners The listeners that open before the authorizer has loaded.
controlled.shutdown.enable Whether a broker hands its leaderships over before it stops.
unstable.api.versions.enable Whether versions of APIs that are still in development are served.
unstable.feature.versions.enable Whether levels of features that are still in development may be used.
initial.broker.registration.timeout.ms How long a starting broker tries to register with the controller before it gives up.
broker.heartbeat.interval.ms How often a broker tells the controller that it lives.
broker.session.timeout.ms A broker that the controller has not heard of for this long is fenced.
controller.listener.names The listeners on which controllers serve.
sasl.mechanism.controller.protocol The SASL mechanism with which the node speaks to controllers.
controller.performance.sample.period.ms How often the controller reports its slowest events.
controller.performance.always.log.threshold.ms The controller reports each event that takes longer than this.
server.max.startup.time.ms A start that takes longer than this is given up.
controller.socket.timeout.ms How long a request to a controller may take.
controller.quorum.voters The controllers of a quorum that never changes, as id@host:port.
controller.quorum.bootstrap.servers Controllers through which a node finds the quorum, as host:port.
controller.quorum.election.timeout.ms How long a candidate waits for votes before it tries again.
controller.quorum.fetch.timeout.ms A voter that could not fetch from the leader for this long asks for an election; a leader not fetched from resigns.
controller.quorum.election.backoff.max.ms The longest random pause before the next try at an election.
controller.quorum.append.linger.ms How long the leader of the quorum gathers records before it writes them.
controller.quorum.request.timeout.ms How long a request within the quorum may take.
controller.quorum.retry.backoff.ms The pause before a failed request within the quorum is sent again.
controller.quorum.auto.join.enable Whether a controller that is no voter joins the quorum by itself.
controller.quorum.fetch.snapshot.max.bytes The most bytes that one request fetches from a snapshot.
controller.quorum.fetch.max.bytes The most bytes that one request fetches from the metadata log.
metadata.log.max.record.bytes.between.snapshots A snapshot of the metadata is written after this many bytes of records.
metadata.log.max.snapshot.interval.ms A snapshot of the metadata is written at least this often while there is something new; 0 disables that.
metadata.log.dir Where the metadata log is kept; the first of log.dirs where it is not set.
metadata.log.segment.bytes The size at which a segment of the metadata log is closed.
metadata.log.segment.ms The age at which a segment of the metadata log is closed.
metadata.max.retention.bytes Old metadata segments and snapshots are deleted while they hold more bytes than this together.
metadata.max.retention.ms Old metadata segments and snapshots are deleted after this time.
metadata.max.idle.interval.ms An idle controller writes an empty record this often, so that lag can be seen; 0 disables that.
internal.metadata.log.segment.bytes As metadata.log.segment.bytes, without a lower limit: for tests.
internal.metadata.max.batch.size.in.bytes The largest batch of the metadata log: for tests.
internal.metadata.delete.delay.millis The pause before a deleted metadata file leaves the disk: for tests.
num.io.threads How many threads of a Java broker handle requests.
background.threads How many threads of a Java broker do work in the background.
num.network.threads How many threads of a Java broker read and write for each listener.
socket.connection.setup.timeout.ms How long the broker first waits for a connection that it opens.
socket.connection.setup.timeout.max.ms The longest that the broker waits for a connection after repeated failures.
listeners Where the node accepts connections, as NAME://host:port; an empty host is every interface.
advertised.listeners The addresses that clients are told to connect to, where they differ from listeners.
listener.security.protocol.map The security protocol of each listener, as NAME:PROTOCOL.
socket.send.buffer.bytes The size of a socket's send buffer; -1 leaves it to the system.
socket.receive.buffer.bytes The size of a socket's receive buffer; -1 leaves it to the system.
socket.request.max.bytes The largest request that is read; a larger one closes its connection.
socket.listen.backlog.size How many connections may wait to be accepted.
max.connections.per.ip How many connections one address may hold.
max.connections.per.ip.overrides Other limits for single hosts, as host:number.
max.connections How many connections the broker accepts altogether, or on a listener.
max.connection.creation.rate How many connections a second are accepted.
connections.max.idle.ms A connection without traffic is closed after this time.
connection.failed.authentication.delay.ms A connection that failed to authenticate is closed only after this pause.
queued.max.requests How many requests may wait for a thread before reading pauses.
queued.max.request.bytes How many bytes of requests may wait before reading pauses; -1 sets no limit.
delete.topic.enable Whether topics can be deleted.
auto.create.topics.enable Whether a topic that is asked for or written to comes into being.
num.partitions How many partitions a topic gets for which no number is given.
default.replication.factor How many replicas a topic gets for which no number is given.
max.incremental.fetch.session.cache.slots How many fetch sessions the broker remembers.
fetch.max.bytes The most bytes that one fetch answers, whatever it asks for.
max.request.partition.size.limit The most partitions that a request for partition descriptions is answered at once.
create.topic.policy.class.name A plug-in that may refuse new topics.
alter.config.policy.class.name A plug-in that may refuse changes of configs.
unclean.leader.election.interval.ms How often partitions without a leader are looked at for an unclean election.
log.dir One directory for the data; log.dirs counts where both are set.
log.dirs The directories for the data.
cordoned.log.dirs Directories that get no new partitions.
log.cleaner.threads How many threads compact logs.
log.cleaner.io.max.bytes.per.second How fast all compaction together may read and write.
log.cleaner.dedupe.buffer.size How much memory compaction uses to remember keys, over all its threads.
log.cleaner.io.buffer.size How much memory compaction uses to read and write, over all its threads.
log.cleaner.io.buffer.load.factor How full compaction's table of keys may become.
log.cleaner.backoff.ms How long compaction sleeps when there was nothing to compact.
log.cleaner.enable Whether logs are compacted at all.
log.retention.check.interval.ms How often logs are looked at for segments that are too old.
log.flush.scheduler.interval.ms How often logs are looked at for records to force to the disk; also the default of log.flush.interval.ms.
log.flush.offset.checkpoint.interval.ms How often the broker notes up to where logs are on the disk.
log.flush.start.offset.checkpoint.interval.ms How often the broker notes where logs begin.
log.dir.failure.timeout.ms A broker that cannot report a failed directory to the controller for this long stops.
log.initial.task.delay.ms How long after the start the first upkeep of logs begins.
num.recovery.threads.per.data.dir How many threads check and flush the logs of one directory at start and stop.
num.replica.alter.log.dirs.threads How many threads move replicas between directories.
replica.lag.time.max.ms A follower that has not caught up for this long leaves the in-sync replicas.
replica.socket.timeout.ms How long a follower's request may take.
replica.socket.receive.buffer.bytes The receive buffer of a follower's connection.
replica.fetch.max.bytes How many bytes a follower fetches of one partition at a time.
replica.fetch.wait.max.ms How long a leader may hold a follower's fetch until there is something.
replica.fetch.backoff.ms A follower's pause after a failed fetch.
replica.fetch.min.bytes How many bytes a follower's fetch waits for.
replica.fetch.response.max.bytes How many bytes a follower fetches altogether at a time.
num.replica.fetchers How many threads fetch from each leader.
replica.high.watermark.checkpoint.interval.ms How often the broker notes the high watermarks of its replicas.
fetch.purgatory.purge.interval.requests How often a Java broker sweeps its waiting fetches.
producer.purgatory.purge.interval.requests How often a Java broker sweeps its waiting produces.
delete.records.purgatory.purge.interval.requests How often a Java broker sweeps its waiting deletions of records.
auto.leader.rebalance.enable Whether leadership goes back to preferred replicas by itself.
leader.imbalance.check.interval.seconds How often leaders are looked at that are not the preferred ones.
security.inter.broker.protocol The security protocol between brokers, where inter.broker.listener.name does not name a listener.
inter.broker.listener.name The listener through which brokers speak to each other.
replica.selector.class A plug-in that chooses the replica from which a consumer reads.
follower.fetch.last.tiered.offset.enable Whether a new follower begins at the last offset in the tiered store instead of the leader's first.
leader.replication.throttled.rate How many bytes a second a leader sends to the followers of its throttled replicas.
follower.replication.throttled.rate How many bytes a second a follower fetches for its throttled replicas.
replica.alter.log.dirs.io.max.bytes.per.second How many bytes a second moves between directories may read.
"""  # noqa: E501
