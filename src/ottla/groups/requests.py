"""What a shard is asked: the wire's own requests, and who asks."""

from typing import Any, NamedTuple

from ottla.wire.schema import Message


class GroupCall(NamedTuple):
    """One request to one shard.

    `request` is the wire's JoinGroupRequest, SyncGroupRequest, HeartbeatRequest, LeaveGroupRequest, OffsetCommitRequest,
    OffsetFetchRequest, OffsetDeleteRequest, DescribeGroupsRequest, DeleteGroupsRequest or ListGroupsRequest; the response is the
    wire's response to it. The one who asks does what needs the cluster's metadata, and what spans shards:

    - requests of several groups come with the groups of this shard only, OffsetFetch always in the form of version 8 (`groups`);
    - topics of OffsetCommit, OffsetFetch and OffsetDelete exist and carry their names and, where known, their ids; what is not
      known or not allowed is answered without asking.

    `client_host` is written as Kafka does, with a slash before the address.
    `token` names a JoinGroup or SyncGroup that may have to wait; it is only ever handed back.
    """

    request: Message
    version: int
    client_id: str = ""
    client_host: str = ""
    token: Any = None


class GroupRecord(NamedTuple):
    """A record of `__consumer_offsets` as it stands in the log; a tombstone has no value."""

    key: bytes
    value: bytes | None
