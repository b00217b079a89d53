"""ConsumerGroupHeartbeat, recorded from a cluster whose `group.version` is 0: the consumer protocol is disabled."""

from ottla.base.ids import ZERO_UUID
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from tests.compat.catalog.case import Call, Case


def heartbeat(epoch: int, **fields: object) -> Call:
    return Call(ConsumerGroupHeartbeatRequest(group_id="$a", member_id="m", member_epoch=epoch, **fields))


CASES = [
    Case(
        "join",
        (heartbeat(0, rebalance_timeout_ms=300_000, subscribed_topic_names=["t"], topic_partitions=[]),),
    ),
    Case("join twice", (heartbeat(0, subscribed_topic_names=[]), heartbeat(0, subscribed_topic_names=[]))),
    Case("stay", (heartbeat(1, topic_partitions=[TopicPartitions(ZERO_UUID, [0])]),)),
    Case("leave", (heartbeat(-1),)),
    Case("no group", (Call(ConsumerGroupHeartbeatRequest()),)),
]
