"""Which broker responses for a group: asked once, kept until somebody finds it is another."""

from ottla.client.cluster_client import ANY_NODE, ClusterClient
from ottla.client.cluster_metadata import Node
from ottla.client.errors import raise_for
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

GROUP = 0
"""The kind of what is looked for."""
_MULTI_KEY_MIN_VERSION = 4


class CoordinatorFinder:
    """`await find(group)` gives the id of a broker; `forget` after NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE or a lost connection."""

    def __init__(self, core: ClusterClient) -> None:
        self._core = core
        self._known: dict[str, int] = {}

    async def find(self, group: str) -> int:
        """One try: BrokerError with a code that may be retriable (the broker may still be making its internal topic)."""
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
