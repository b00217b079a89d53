"""Finds and caches the group coordinator."""

from ottla.client.cluster_client import ANY_NODE, ClusterClient
from ottla.client.cluster_metadata import Node
from ottla.client.errors import raise_for
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

GROUP = 0
"""Kafka's coordinator key type of groups."""
_MULTI_KEY_MIN_VERSION = 4


class CoordinatorFinder:
    """Caches the coordinator of each group.

    Call `mark_unknown` after NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE or a lost connection.
    """

    def __init__(self, core: ClusterClient) -> None:
        self._core = core
        self._known: dict[str, int] = {}

    async def find(self, group: str) -> int:
        """Return the coordinator's broker id. Makes one attempt: a BrokerError may be retriable, for example while
        the broker creates its internal topic.
        """
        known = self._known.get(group)
        if known is not None:
            return known
        connection = await self._core.get_connection(ANY_NODE)
        version = connection.version_for(FindCoordinatorRequest)
        request = FindCoordinatorRequest(key_type=GROUP)
        if version >= _MULTI_KEY_MIN_VERSION:
            request.coordinator_keys = [group]
        else:
            request.key = group
        response = await connection.call(request, FindCoordinatorResponse, timeout_ms=self._core.request_timeout_ms)
        about = f"the coordinator of {group!r}"
        if version >= _MULTI_KEY_MIN_VERSION:
            found = response.coordinators[0]
            raise_for(found.error_code, found.error_message, about=about)
            node = Node(found.node_id, found.host, found.port)
        else:
            raise_for(response.error_code, response.error_message, about=about)
            node = Node(response.node_id, response.host, response.port)
        self._core.cluster.nodes.setdefault(node.id, node)
        self._known[group] = node.id
        return node.id

    def mark_unknown(self, group: str) -> None:
        self._known.pop(group, None)
