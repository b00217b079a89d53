"""The supported APIs, their versions and their handlers.

A handler module defines `handle(broker, context, request, version)`, which returns a response, an awaitable or a
generator (see `runtime/slice_scheduler.py`). Where message objects would be too slow it defines a raw handler instead,
`handle_raw(connection, buffer, view, position, end, version, correlation_id)`, which sends the response itself or
defers it, and returns whether the connection may handle its next request now.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ottla.wire.schema import Message

RawHandler = Callable[[Any, bytearray, memoryview, int, int, int, int], bool]


class Api:
    """One API: its key, supported versions, counters, and its handler once that is loaded."""

    __slots__ = (
        "advertised_min_version",
        "errors",
        "flexible_from",
        "handle",
        "handle_raw",
        "is_loaded",
        "key",
        "max_version",
        "min_version",
        "module",
        "request",
        "requests",
        "response_flexible_from",
    )

    def __init__(
        self,
        key: int,
        module: str,
        min_version: int,
        max_version: int,
        flexible_from: int,
        *,
        advertised_min_version: int | None = None,
    ) -> None:
        self.key = key
        self.module = module
        self.min_version = min_version
        self.max_version = max_version
        self.flexible_from = flexible_from
        self.advertised_min_version = min_version if advertised_min_version is None else advertised_min_version
        # ApiVersions responses never have tags in their header: the client does not know the broker's versions yet.
        self.response_flexible_from = flexible_from if key != 18 else 1 << 15
        self.requests = 0
        self.errors = 0
        """Number of error codes sent in responses."""
        self.is_loaded = False
        self.handle_raw: RawHandler | None = None
        self.handle: Callable[..., Any] | None = None
        self.request: type[Message] | None = None

    def load(self) -> None:
        """Import the handler and its messages on first use, which keeps startup fast."""
        handlers = import_module(f"ottla.server.api.{self.module}")
        self.handle_raw = getattr(handlers, "handle_raw", None)
        self.handle = getattr(handlers, "handle", None)
        self.request = getattr(handlers, "REQUEST", None)
        self.is_loaded = True


def served_apis() -> dict[int, Api]:
    """Create the entries of all APIs, by key."""
    apis = (
        Api(
            0, "produce", 3, 13, 9, advertised_min_version=0
        ),  # librdkafka requires 0, then uses a newer one (KAFKA-18659)
        Api(1, "fetch", 4, 18, 12),
        Api(2, "list_offsets", 1, 11, 6),
        Api(3, "metadata", 0, 13, 9),
        Api(8, "offset_commit", 2, 10, 8),
        Api(9, "offset_fetch", 1, 10, 6),
        Api(10, "find_coordinator", 0, 6, 3),
        Api(11, "join_group", 0, 9, 6),
        Api(12, "heartbeat", 0, 4, 4),
        Api(13, "leave_group", 0, 5, 4),
        Api(14, "sync_group", 0, 5, 4),
        Api(15, "describe_groups", 0, 6, 5),
        Api(16, "list_groups", 0, 5, 3),
        Api(17, "sasl_handshake", 0, 1, 1 << 15),
        Api(18, "api_versions", 0, 4, 3),
        Api(19, "create_topics", 2, 7, 5),
        Api(20, "delete_topics", 1, 6, 4),
        Api(21, "delete_records", 0, 2, 2),
        Api(22, "init_producer_id", 0, 5, 2),
        Api(23, "offset_for_leader_epoch", 2, 4, 4),
        Api(29, "describe_acls", 1, 3, 2),
        Api(30, "create_acls", 1, 3, 2),
        Api(31, "delete_acls", 1, 3, 2),
        Api(32, "describe_configs", 1, 4, 4),
        Api(33, "alter_configs", 0, 2, 2),
        Api(34, "alter_replica_log_dirs", 1, 2, 2),
        Api(35, "describe_log_dirs", 1, 5, 2),
        Api(36, "sasl_authenticate", 0, 2, 2),
        Api(37, "create_partitions", 0, 3, 2),
        Api(38, "create_delegation_token", 1, 3, 2),
        Api(39, "renew_delegation_token", 1, 2, 2),
        Api(40, "expire_delegation_token", 1, 2, 2),
        Api(41, "describe_delegation_token", 1, 3, 2),
        Api(42, "delete_groups", 0, 2, 2),
        Api(43, "elect_leaders", 0, 2, 2),
        Api(44, "incremental_alter_configs", 0, 1, 1),
        Api(47, "offset_delete", 0, 0, 1 << 15),
        Api(48, "describe_client_quotas", 0, 1, 1),
        Api(50, "describe_user_scram_credentials", 0, 0, 0),
        Api(55, "describe_quorum", 0, 2, 0),
        Api(57, "update_features", 0, 2, 0),
        Api(60, "describe_cluster", 0, 2, 0),
        Api(61, "describe_producers", 0, 0, 0),
        Api(68, "consumer_group_heartbeat", 0, 1, 0),
        Api(74, "list_config_resources", 0, 1, 0),
        Api(75, "describe_topic_partitions", 0, 0, 0),
    )
    return {api.key: api for api in apis}
