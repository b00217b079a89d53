"""Admin's face for event loops.

async with AsyncAdmin(bootstrap_servers="127.0.0.1:9092") as admin:
    await admin.create_topic("orders", partitions=3)
    print(await admin.describe_topics(["orders"]))
"""

from typing import Self

from ottla.client.admin_cluster import ClusterAdmin
from ottla.client.admin_groups import GroupAdmin
from ottla.client.admin_topics import TopicAdmin


class AsyncAdmin(TopicAdmin, ClusterAdmin, GroupAdmin):
    """All that can be asked of a cluster. Errors that pass are tried again for up to default.api.timeout.ms; others are raised."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *ended: object) -> None:
        await self.close()
