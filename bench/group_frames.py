"""Encoded requests: FindCoordinator v3, OffsetCommit v8, OffsetFetch v5, JoinGroup v5, SyncGroup v3."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from bench.frames import compact_string, frame, string, uvarint

OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, JOIN_GROUP, SYNC_GROUP = 8, 9, 10, 11, 14
LOADING, MEMBER_ID_REQUIRED = 14, 79
SESSION_MS, REBALANCE_MS = 45_000, 300_000


def find_coordinator(group: str) -> bytes:
    return frame(FIND_COORDINATOR, 3, compact_string(group) + b"\0\0", flexible=True)


def find_coordinator_error(response: bytes | bytearray) -> int:
    return int(struct.unpack_from(">h", response, 4 + 1 + 4)[0])


def offset_commit(group: str, topic: str, offset: int, *, partitions: int = 1) -> bytes:
    """Encode a commit by a consumer that is not a member."""
    parts = b"".join(struct.pack(">iqi", index, offset, -1) + b"\1\0" for index in range(partitions))
    topics = b"\2" + compact_string(topic) + uvarint(partitions + 1) + parts + b"\0"
    return frame(
        OFFSET_COMMIT, 8, compact_string(group) + struct.pack(">i", -1) + b"\1\0" + topics + b"\0", flexible=True
    )


def offset_commit_error(response: bytes | bytearray, topic: str) -> int:
    """Return the error code of the first partition."""
    return int(struct.unpack_from(">h", response, 4 + 1 + 4 + 1 + 1 + len(topic) + 1 + 4)[0])


def offset_fetch(group: str) -> bytes:
    """Encode a request for all committed offsets of the group."""
    return frame(OFFSET_FETCH, 5, string(group) + struct.pack(">i", -1), flexible=False)


def offset_fetch_error(response: bytes | bytearray, size: int) -> int:
    """Return the top-level error code, which is at the end."""
    return int(struct.unpack_from(">h", response, size - 2)[0])


def join_group(group: str, member: str, metadata: bytes) -> bytes:
    protocols = struct.pack(">i", 1) + string("range") + struct.pack(">i", len(metadata)) + metadata
    body = (
        string(group)
        + struct.pack(">ii", SESSION_MS, REBALANCE_MS)
        + string(member)
        + struct.pack(">h", -1)
        + string("consumer")
    )
    return frame(JOIN_GROUP, 5, body + protocols, flexible=False)


@dataclass(frozen=True, slots=True)
class Joined:
    error: int
    generation: int
    leader: str
    member: str


def read_joined(response: bytes | bytearray) -> Joined:
    error, generation = struct.unpack_from(">hi", response, 8)
    strings, position = [], 14
    for _ in range(3):
        size: int = struct.unpack_from(">h", response, position)[0]
        strings.append(bytes(response[position + 2 : position + 2 + max(size, 0)]).decode())
        position += 2 + max(size, 0)
    return Joined(error, generation, strings[1], strings[2])


def sync_group(group: str, generation: int, member: str, assignments: Mapping[str, bytes]) -> bytes:
    parts = b"".join(string(name) + struct.pack(">i", len(data)) + data for name, data in assignments.items())
    body = (
        string(group)
        + struct.pack(">i", generation)
        + string(member)
        + struct.pack(">h", -1)
        + struct.pack(">i", len(assignments))
    )
    return frame(SYNC_GROUP, 3, body + parts, flexible=False)


def sync_error(response: bytes | bytearray) -> int:
    return int(struct.unpack_from(">h", response, 8)[0])


def subscription(topic: str, user_data: bytes) -> bytes:
    """Encode the subscription of a consumer to one topic."""
    return struct.pack(">hi", 0, 1) + string(topic) + struct.pack(">i", len(user_data)) + user_data


def assignment(topic: str, first: int, count: int) -> bytes:
    numbers = struct.pack(f">i{count}i", count, *range(first, first + count))
    return struct.pack(">hi", 0, 1) + string(topic) + numbers + struct.pack(">i", -1)
