"""Log which clients use features that are not supported, since many clients hide the broker's error."""

import logging

from ottla.base.decision import RequestContext

log = logging.getLogger("ottla.broker")

TRANSACTIONS = "transactions are not supported; remove transactional.id (idempotent producers work)"
CONSUMER_PROTOCOL = "consumer groups of KIP-848 are not supported; use group.protocol=classic"
LINES_MAX = 1_000
"""Upper limit of logged pairs of client and feature."""


class UnsupportedFeatures:
    """One log line per client and feature: clients repeat their requests."""

    def __init__(self) -> None:
        self._logged: set[tuple[str | None, str, str]] = set()

    def report(self, context: RequestContext, feature: str) -> None:
        client = (context.client_id, context.peer_host, feature)
        if client not in self._logged and len(self._logged) < LINES_MAX:
            self._logged.add(client)
            log.warning("rejected client %r at %s: %s", context.client_id or "", context.peer_host, feature)
