"""The records of `__consumer_offsets`: what groups committed, and how classic groups stand."""

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.wire.schema import NEVER, Message, array, binary, i32, i64, string, uuid


class OffsetCommitKey(Message):
    API_KEY = 1
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = NEVER

    group: str = string("0", default="")
    topic: str = string("0", default="")
    partition: int = i32("0", default=0)


class OffsetCommitValue(Message):
    API_KEY = 1
    MIN_VERSION = 0
    MAX_VERSION = 4
    FLEXIBLE_FROM = 4

    offset: int = i64("0+", default=0)
    leader_epoch: int = i32("3+", default=-1, ignorable=True)
    metadata: str = string("0+", default="")
    commit_timestamp: int = i64("0+", default=0)
    expire_timestamp: int = i64("1", default=-1, ignorable=True)
    topic_id: Uuid = uuid("4+", default=ZERO_UUID, tag=0, ignorable=True)


class GroupMetadataKey(Message):
    API_KEY = 2
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = NEVER

    group: str = string("0", default="")


class MemberMetadata(Message):
    member_id: str = string("0+", default="")
    group_instance_id: str | None = string("3+", nullable="3+", default=None, ignorable=True)
    client_id: str = string("0+", default="")
    client_host: str = string("0+", default="")
    rebalance_timeout: int = i32("1+", default=-1, ignorable=True)
    session_timeout: int = i32("0+", default=0)
    subscription: bytes = binary("0+", default=b"")
    assignment: bytes = binary("0+", default=b"")


class GroupMetadataValue(Message):
    API_KEY = 2
    MIN_VERSION = 0
    MAX_VERSION = 4
    FLEXIBLE_FROM = 4

    protocol_type: str = string("0+", default="")
    generation: int = i32("0+", default=0)
    protocol: str | None = string("0+", nullable="0+", default="")
    leader: str | None = string("0+", nullable="0+", default="")
    current_state_timestamp: int = i64("2+", default=-1, ignorable=True)
    members: list[MemberMetadata] = array(MemberMetadata, "0+", default=())
