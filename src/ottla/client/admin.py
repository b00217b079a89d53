"""Admin clients: Admin (blocking) runs the methods of AsyncAdmin in an event loop on its own thread.

with Admin(bootstrap_servers="127.0.0.1:9092") as admin:
    admin.create_topic("orders", partitions=3)

async with AsyncAdmin(bootstrap_servers="127.0.0.1:9092") as admin:
    print(await admin.describe_topics(["orders"]))
"""

from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from ottla.client.admin_cluster import ClusterAdmin
from ottla.client.admin_groups import GroupAdmin
from ottla.client.admin_topics import TopicAdmin
from ottla.client.errors import ClientClosedError
from ottla.client.loop_thread import EventLoopThread

P = ParamSpec("P")
T = TypeVar("T")


class AsyncAdmin(TopicAdmin, ClusterAdmin, GroupAdmin):
    """Admin API for asyncio. Retriable errors are retried for up to default.api.timeout.ms; others are raised."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()


def _blocking(
    method: Callable[Concatenate[AsyncAdmin, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["Admin", P], T]:
    """Wrap an AsyncAdmin method into a blocking one."""

    @wraps(method)
    def call(self: "Admin", /, *args: P.args, **kwargs: P.kwargs) -> T:
        if self._is_closed:
            raise ClientClosedError("The admin client is closed.")
        return self._loop_thread.run(lambda: method(self._admin, *args, **kwargs))

    return call


class Admin:
    """Blocking admin API. Thread-safe."""

    def __init__(self, config: Mapping[str, Any] | None = None, **keywords: Any) -> None:
        self._admin = AsyncAdmin(config, **keywords)
        self._loop_thread = EventLoopThread("ottla-admin")
        self._is_closed = False

    @property
    def timeout_ms(self) -> float:
        """Limit of a call with its retries, from `default.api.timeout.ms`. A change applies to later calls."""
        return self._admin.timeout_ms

    @timeout_ms.setter
    def timeout_ms(self, timeout_ms: float) -> None:
        self._admin.timeout_ms = timeout_ms

    create_topics = _blocking(AsyncAdmin.create_topics)
    create_topic = _blocking(AsyncAdmin.create_topic)
    delete_topics = _blocking(AsyncAdmin.delete_topics)
    list_topics = _blocking(AsyncAdmin.list_topics)
    describe_topics = _blocking(AsyncAdmin.describe_topics)
    create_partitions = _blocking(AsyncAdmin.create_partitions)
    list_offsets = _blocking(AsyncAdmin.list_offsets)
    delete_records = _blocking(AsyncAdmin.delete_records)
    describe_producers = _blocking(AsyncAdmin.describe_producers)
    elect_leaders = _blocking(AsyncAdmin.elect_leaders)
    describe_cluster = _blocking(AsyncAdmin.describe_cluster)
    describe_log_dirs = _blocking(AsyncAdmin.describe_log_dirs)
    describe_features = _blocking(AsyncAdmin.describe_features)
    update_features = _blocking(AsyncAdmin.update_features)
    describe_quorum = _blocking(AsyncAdmin.describe_quorum)
    describe_configs = _blocking(AsyncAdmin.describe_configs)
    alter_configs = _blocking(AsyncAdmin.alter_configs)
    list_config_resources = _blocking(AsyncAdmin.list_config_resources)
    list_groups = _blocking(AsyncAdmin.list_groups)
    describe_groups = _blocking(AsyncAdmin.describe_groups)
    delete_groups = _blocking(AsyncAdmin.delete_groups)
    list_group_offsets = _blocking(AsyncAdmin.list_group_offsets)
    alter_group_offsets = _blocking(AsyncAdmin.alter_group_offsets)
    delete_group_offsets = _blocking(AsyncAdmin.delete_group_offsets)

    def close(self) -> None:
        """Close all connections."""
        if not self._is_closed:
            self._is_closed = True
            try:
                self._loop_thread.run(self._admin.close)
            finally:
                self._loop_thread.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()
