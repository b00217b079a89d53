"""Configs that have an effect in Ottla.

Others are validated, stored and described, and logged at startup if they are set.
"""

from collections.abc import Mapping

from ottla.metadata.configs.catalog import broker_definition
from ottla.metadata.configs.values import default_value, parse


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


SUPPORTED_BROKER_CONFIGS = _names("""
    node.id broker.id process.roles listeners advertised.listeners controller.listener.names
    listener.security.protocol.map
    inter.broker.listener.name security.inter.broker.protocol controller.quorum.voters
    controller.quorum.bootstrap.servers
    log.dirs log.dir metadata.log.dir cordoned.log.dirs replica.alter.log.dirs.io.max.bytes.per.second
    metadata.log.segment.bytes broker.rack
    num.partitions default.replication.factor auto.create.topics.enable delete.topic.enable
    max.request.partition.size.limit
    message.max.bytes socket.request.max.bytes fetch.max.bytes max.incremental.fetch.session.cache.slots
    max.connections max.connections.per.ip max.connections.per.ip.overrides max.connection.creation.rate
    connections.max.idle.ms queued.max.request.bytes
    socket.listen.backlog.size ottla.metrics.listener ottla.slow.request.ms ottla.auto.create.topics.max
    log.segment.bytes log.roll.ms log.roll.hours log.roll.jitter.ms log.roll.jitter.hours
    log.index.size.max.bytes log.index.interval.bytes log.segment.delete.delay.ms
    log.flush.interval.messages log.flush.interval.ms log.flush.scheduler.interval.ms
    log.flush.offset.checkpoint.interval.ms
    replica.high.watermark.checkpoint.interval.ms num.recovery.threads.per.data.dir
    log.retention.ms log.retention.minutes log.retention.hours log.retention.bytes log.retention.check.interval.ms
    log.initial.task.delay.ms log.cleanup.policy log.cleaner.enable log.cleaner.threads log.cleaner.backoff.ms
    log.cleaner.dedupe.buffer.size log.cleaner.io.buffer.load.factor log.cleaner.io.max.bytes.per.second
    log.cleaner.min.cleanable.ratio log.cleaner.delete.retention.ms log.cleaner.min.compaction.lag.ms
    log.cleaner.max.compaction.lag.ms
    log.message.timestamp.type log.message.timestamp.before.max.ms log.message.timestamp.after.max.ms
    compression.type compression.gzip.level compression.lz4.level compression.zstd.level
    offsets.topic.num.partitions offsets.topic.replication.factor offsets.topic.segment.bytes
    offsets.topic.compression.codec
    offset.metadata.max.bytes offsets.retention.minutes offsets.retention.check.interval.ms
    group.min.session.timeout.ms group.max.session.timeout.ms group.initial.rebalance.delay.ms group.max.size
""")

SUPPORTED_TOPIC_CONFIGS = _names("""
    segment.bytes internal.segment.bytes segment.ms segment.jitter.ms segment.index.bytes index.interval.bytes
    max.message.bytes message.timestamp.type message.timestamp.before.max.ms message.timestamp.after.max.ms
    compression.type compression.gzip.level compression.lz4.level compression.zstd.level
    file.delete.delay.ms flush.messages flush.ms cleanup.policy retention.ms retention.bytes delete.retention.ms
    min.cleanable.dirty.ratio min.compaction.lag.ms max.compaction.lag.ms
""")

_WRITTEN_IMMEDIATELY = "never: log start offsets are written immediately"
PARTIAL_SUPPORT = {"log.flush.start.offset.checkpoint.interval.ms": _WRITTEN_IMMEDIATELY}

# These control threads, buffers and plug-ins of a Java process and will never have an effect.
INAPPLICABLE_CONFIGS = _names("""
    num.network.threads num.io.threads background.threads num.replica.fetchers
    num.replica.alter.log.dirs.threads group.coordinator.threads group.coordinator.background.threads
    share.coordinator.threads
    remote.log.manager.thread.pool.size remote.log.manager.copier.thread.pool.size
    remote.log.manager.expiration.thread.pool.size
    remote.log.manager.follower.thread.pool.size
    fetch.purgatory.purge.interval.requests producer.purgatory.purge.interval.requests
    delete.records.purgatory.purge.interval.requests
    share.fetch.purgatory.purge.interval.requests
    log.cleaner.io.buffer.size
    queued.max.requests offsets.load.buffer.size transaction.state.log.load.buffer.size
    share.coordinator.load.buffer.size
    group.coordinator.cached.buffer.max.bytes share.coordinator.cached.buffer.max.bytes
    metric.reporters kafka.metrics.reporters kafka.metrics.polling.interval.secs config.providers security.providers
    authorizer.class.name create.topic.policy.class.name alter.config.policy.class.name client.quota.callback.class
    principal.builder.class replica.selector.class group.share.persister.class.name
    ssl.engine.factory.class ssl.provider ssl.keymanager.algorithm ssl.trustmanager.algorithm
    ssl.secure.random.implementation
    sasl.login.class sasl.login.callback.handler.class sasl.client.callback.handler.class
    sasl.server.callback.handler.class
    sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class
    remote.log.storage.manager.class.path remote.log.metadata.manager.class.path
""")


def unsupported_names(static: Mapping[str, str]) -> list[str]:
    """Return the broker configs that are not at their default and have no effect, sorted."""
    found = []
    for name, text in static.items():
        definition = broker_definition(name)
        if definition is None or (
            definition.name not in SUPPORTED_BROKER_CONFIGS and parse(definition, text) != default_value(definition)
        ):
            found.append(name)
    return sorted(found)
