"""One config_documentation about each config, read only when someone asks for documentation."""

from functools import cache

from ottla.metadata.configs.catalog import GROUP_SYNONYMS, TOPIC_SYNONYMS
from ottla.metadata.configs.definition import Definition

_TOPIC = """
segment.bytes A segment is closed and the next one begun before it would grow beyond this many bytes.
segment.ms A segment is closed once records come that are this much younger than its first, even if it is not full.
segment.jitter.ms Each log rolls later by a random part of this time, so that many logs do not roll at the same moment.
segment.index.bytes A segment is closed once one of its index files holds this many bytes.
flush.messages After this many records the log is forced to the disk; the default leaves that to the operating system.
flush.ms Records wait at most this long until the log is forced to the disk; the default leaves that to the operating system.
retention.bytes The oldest segments of a partition are deleted while it holds more bytes than this; -1 sets no limit.
retention.ms Segments whose newest record is older than this are deleted; -1 keeps them forever.
max.message.bytes The largest record batch that is taken, as it arrives: compressed, if the producer compressed it.
index.interval.bytes The offset index gets an entry after about this many bytes of records.
delete.retention.ms How long the tombstones of a compacted topic stay, so that a slow reader still learns what was deleted.
min.compaction.lag.ms A record stays uncompacted for at least this long.
max.compaction.lag.ms A record waits at most this long until its segment may be compacted.
file.delete.delay.ms Files of a deleted segment or topic leave the disk after this time, so that readers can finish.
min.cleanable.dirty.ratio A log is compacted once this share of it has not been compacted yet.
cleanup.policy What happens to old segments: delete drops them by age and size, compact keeps the newest record of each key.
unclean.leader.election.enable Whether a replica that may lack acknowledged records can become leader when no other is left.
min.insync.replicas With acks=all, a write is refused while fewer replicas than this are in sync.
compression.type How batches are kept: as the producer sent them, uncompressed, or compressed anew with this codec.
compression.gzip.level How hard gzip works where compression.type is gzip; -1 is its own default.
compression.lz4.level How hard LZ4 works where compression.type is lz4.
compression.zstd.level How hard Zstandard works where compression.type is zstd.
preallocate Whether the file of a new segment gets its full size at once.
message.timestamp.type Whether a record keeps the time that its producer gave it or gets the time at which it was appended.
message.timestamp.before.max.ms A record is refused whose own time lies further than this before the broker's.
message.timestamp.after.max.ms A record is refused whose own time lies further than this after the broker's.
leader.replication.throttled.replicas Replicas whose leader keeps to leader.replication.throttled.rate, as partition:broker; * is all.
follower.replication.throttled.replicas Replicas that keep to follower.replication.throttled.rate, as partition:broker; * is all.
remote.storage.enable Whether closed segments are also copied to the tiered store.
local.retention.ms How long a segment that was copied to the tiered store also stays on the broker; -2 means retention.ms.
local.retention.bytes How many bytes of a tiered partition stay on the broker; -2 means retention.bytes.
remote.log.copy.disable Stops copying to the tiered store; what is there stays readable until it is too old.
remote.log.delete.on.disable Whether switching tiered storage off also deletes what was copied.
internal.segment.bytes As segment.bytes, without a lower limit: for tests.
"""

_GROUP = """
consumer.session.timeout.ms A member that sends no heartbeat for this long is removed from its consumer group.
consumer.heartbeat.interval.ms How often the members of a consumer group are told to send a heartbeat.
consumer.assignment.interval.ms A consumer group's partitions are assigned anew at most once in this time.
share.session.timeout.ms A member that sends no heartbeat for this long is removed from its share group.
share.heartbeat.interval.ms How often the members of a share group are told to send a heartbeat.
share.record.lock.duration.ms How long a record that was handed to a member is kept from the others.
share.delivery.count.limit A record that was delivered this often without being acknowledged is given up.
share.partition.max.record.locks How many records of a partition may be with members at the same time.
share.auto.offset.reset Where a share group begins that has no position: at the earliest record, the latest, or one of a certain age.
share.isolation.level Whether a share group also gets the records of transactions that are open or were aborted.
share.renew.acknowledge.enable Whether a member may ask for more time for a record that it holds.
share.assignment.interval.ms A share group's partitions are assigned anew at most once in this time.
streams.session.timeout.ms A member that sends no heartbeat for this long is removed from its streams group.
streams.heartbeat.interval.ms How often the members of a streams group are told to send a heartbeat.
streams.num.standby.replicas How many copies of each task's state are kept warm by other members.
streams.initial.rebalance.delay.ms How long a streams group that was empty waits for more members before it assigns tasks.
streams.assignment.interval.ms A streams group's tasks are assigned anew at most once in this time.
"""

_CLIENT_METRICS = """
metrics The metrics that matching clients are asked for, by the beginnings of their names; * asks for all.
interval.ms How often matching clients are asked to send their metrics, from 100 ms to an hour.
match Which clients are meant, as name=pattern over their id, software, version and address; all of them where it is empty.
"""


def config_documentation(definition: Definition) -> str:
    """What a config does."""
    return _documentation_table(definition.update)[definition.name]


@cache
def _documentation_table(update: str) -> dict[str, str]:
    """Sentences by name, for a topic's configs (`topic`), a group's (`group`), a client's (`client`), else a broker's."""
    match update:
        case "topic":
            return _parse(_TOPIC)
        case "group":
            return _parse(_GROUP)
        case "client":
            return _parse(_CLIENT_METRICS)
    return broker_documentation()


@cache
def broker_documentation() -> dict[str, str]:
    """Those of a broker; a config that stands in for a topic's or a group's is told by that one's config_documentation."""
    from ottla.metadata.configs import (
        definitions_ottla,
        documentation_broker,
        documentation_coordinators,
        documentation_security,
    )

    sentences = {}
    topics = _parse(_TOPIC)
    for name, synonyms in TOPIC_SYNONYMS.items():
        sentences[synonyms[0][0]] = f"For topics that do not set {name} themselves: {topics[name]}"
        for synonym, _ in synonyms[1:]:
            sentences[synonym] = (
                f"The same as {synonyms[0][0]}, which counts where both are set; in the unit that its name says."
            )
    for name, text in _parse(_GROUP).items():
        if name in GROUP_SYNONYMS:
            sentences[GROUP_SYNONYMS[name]] = f"For groups that do not set {name} themselves: {text}"
    for module in (documentation_broker, documentation_coordinators, documentation_security, definitions_ottla):
        sentences |= _parse(module.TEXTS)
    return sentences


def _parse(texts: str) -> dict[str, str]:
    return dict(line.split(" ", 1) for line in texts.splitlines() if line)
