"""Turns a response into a comparable value: without ids, ports, times and the order of unordered arrays.

Of messages, only null, empty or present is kept. APIs and features in which brokers may differ are dropped.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from ottla.base.ids import METADATA_TOPIC_ID, ZERO_UUID
from ottla.wire.batches import decode_records, iterate_batches
from ottla.wire.schema import Message

SHARED_API_KEYS = frozenset(
    {0, 1, 2, 3, *range(8, 24), *range(29, 34), *range(35, 45), 47, 48, 50, 55, 57, 60, 61, 74, 75}
)
"""APIs compared in ApiVersions."""
TEXTS = frozenset({"error_message", "batch_index_error_message", "documentation"})
NODES = frozenset({"node_id", "leader_id", "controller_id", "broker_id", "replica_id"})
NODE_LISTS = frozenset(
    {"replica_nodes", "isr_nodes", "offline_replicas", "broker_ids", "eligible_leader_replicas", "last_known_elr"}
)
MASKED: Mapping[str, Callable[[Any], Any]] = {
    "host": lambda host: "host" if host else host,
    "port": lambda port: "port" if port > 0 else port,
    "cluster_id": lambda text: "cluster" if text else text,
    "log_append_time_ms": lambda time: "time" if time > 0 else time,
    "session_id": lambda session: "session" if session else session,
    "finalized_features_epoch": lambda epoch: "epoch" if epoch >= 0 else epoch,
    "auth_bytes": len,
    "hmac": len,
    "producer_id": lambda producer: "producer" if producer >= 0 else producer,
}
MASKED_IN: Mapping[str, Mapping[str, Callable[[Any], Any]]] = {
    "DescribeLogDirsResult": {
        "log_dir": lambda path: "path" if path else path,
        "total_bytes": lambda size: "bytes" if size > 0 else size,
        "usable_bytes": lambda size: "bytes" if size > 0 else size,
    },
    "DescribeQuorumResponse.TopicData.PartitionData": {
        "leader_epoch": lambda epoch: "epoch" if epoch > 0 else epoch,
        "high_watermark": lambda offset: "offset" if offset > 0 else offset,
    },
    "Node": {"listeners": lambda found: "listeners"},
    "ReplicaState": {
        "log_end_offset": lambda offset: "offset" if offset > 0 else offset,
        "last_fetch_timestamp": lambda time: "time" if time > 0 else time,
        "last_caught_up_timestamp": lambda time: "time" if time > 0 else time,
    },
}
"""Fields masked in one message type only."""
NAMED = {
    "topics": "name",
    "groups": "group_id",
    "config_resources": "resource_name",
    "replica_election_results": "topic",
}
"""Arrays that may contain topics of other tests, and the field with their name."""
GENERATED = re.compile(r"(.*)-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
DROPPED = frozenset({"supported_features", "finalized_features"})


class Normalizer:
    """Normalizes responses, given the names and ids of one run."""

    def __init__(self, prefix: str, topic_ids: Mapping[str, bytes], members: Mapping[str, str] | None = None) -> None:
        self._prefix = prefix
        self._members = {value: f"@{name}" for name, value in (members or {}).items() if value}
        self._names_by_id = {value: name for name, value in topic_ids.items()}

    def message(self, message: Message, version: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for field in type(message).FIELDS:
            if field.in_version(version) and field.name not in DROPPED:
                value = getattr(message, field.name)
                masked = MASKED_IN.get(type(message).__qualname__, {}).get(field.name)
                found[field.name] = self._field(field.name, value, version) if masked is None else masked(value)
        return found

    def _field(self, name: str, value: Any, version: int) -> Any:
        if name in TEXTS:
            return "..." if value else value
        if name in NODES:
            return "node" if value >= 0 else value
        if name in NODE_LISTS:
            return value if value is None else ["node" if node >= 0 else node for node in value]
        if name == "records":
            return None if value is None else self._batches(bytes(value))
        if name in MASKED:
            return value if value is None else MASKED[name](value)
        if isinstance(value, Message):
            return self.message(value, version)
        if isinstance(value, list):
            return self._list(name, value, version)
        if isinstance(value, bytes | bytearray | memoryview):
            return self._id(bytes(value)) if len(value) == 16 else f"bytes {bytes(value)!r}"
        if isinstance(value, str):
            return self._text(value)
        return value

    def _text(self, text: str) -> str:
        """Replace names of the run and member ids, both known and generated ones."""
        if text in self._members:
            return self._members[text]
        return GENERATED.sub(lambda found: f"{found[1]}-(id)", text.replace(self._prefix + "-", "$"))

    def _list(self, name: str, values: list[Any], version: int) -> list[Any]:
        if name == "api_keys":
            values = [value for value in values if value.api_key in SHARED_API_KEYS]
        if values and type(values[0]).__name__ == "ListedGroup":
            values = [value for value in values if self._prefix in value.group_id]
        if name in NAMED:  # an response with all topics has those of others
            values = [value for value in values if len(values) == 1 or self._is_own(getattr(value, NAMED[name], None))]
        found = [self._field("", value, version) for value in values]
        return found if name == "synonyms" else sorted(found, key=lambda value: json.dumps(value, sort_keys=True))

    def _is_own(self, name: str | None) -> bool:
        return name is None or self._prefix in name or name.isdecimal()

    def _id(self, value: bytes) -> str:
        if value == ZERO_UUID:
            return "zero"
        if value == METADATA_TOPIC_ID:
            return "metadata"
        return f"id of ${self._names_by_id[value]}" if value in self._names_by_id else "some id"

    def _batches(self, data: bytes) -> list[Any]:
        found = []
        end = 0
        for position, header in iterate_batches(data):
            end = position + header.size
            found.append(
                {
                    "base_offset": header.base_offset,
                    "leader_epoch": header.leader_epoch,
                    "attributes": header.attributes,
                    "last_offset_delta": header.last_offset_delta,
                    "base_timestamp": header.base_timestamp,
                    "max_timestamp": "time" if header.has_log_append_time else header.max_timestamp,
                    "producer_id": "producer" if header.producer_id >= 0 else header.producer_id,
                    "producer_epoch": header.producer_epoch,
                    "base_sequence": header.base_sequence,
                    "records": [_shown(record) for record in decode_records(data[position:end])],
                }
            )
        return [*found, "cut off"] if end < len(data) else found


def _shown(record: Any) -> str:
    return f"{record.offset}: {record.key!r} {record.value!r} {list(record.headers)!r}"
