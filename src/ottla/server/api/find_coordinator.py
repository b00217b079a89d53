"""FindCoordinator (key 10), versions 0–6: which broker answers for a group. Several keys at once from version 4 on (KIP-699).

The topic that groups are kept in is made by the first who asks; where Kafka tells that client to ask again, it waits here for the moment
that takes. Skipped: transactions and share groups have no coordinators yet; see docs/SKIPPED.md.
"""

from collections.abc import Coroutine, Sequence
from enum import IntEnum
from typing import Any

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.runtime.broker import Broker
from ottla.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

REQUEST = FindCoordinatorRequest
BATCHES_FROM = 4
NOBODY = -1

Answer = FindCoordinatorResponse | Coroutine[Any, Any, FindCoordinatorResponse]


class KeyType(IntEnum):
    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


def handle(broker: Broker, context: RequestContext, request: FindCoordinatorRequest, version: int) -> Answer:
    keys = request.coordinator_keys if version >= BATCHES_FROM else [request.key]
    if request.key_type == KeyType.GROUP and keys and not broker.group_coordinator.runtime.partition_count():
        return _after_making(broker, context, keys, version)
    return _found(broker, context, request.key_type, keys, version)


async def _after_making(
    broker: Broker, context: RequestContext, keys: Sequence[str], version: int
) -> FindCoordinatorResponse:
    await broker.internal_topics.create(broker.group_coordinator.runtime.topic)
    return _found(broker, context, KeyType.GROUP, keys, version)


def _found(
    broker: Broker, context: RequestContext, key_type: int, keys: Sequence[str], version: int
) -> FindCoordinatorResponse:
    found = [_coordinator(broker, context, key_type, key, version) for key in keys]
    if version >= BATCHES_FROM:
        return FindCoordinatorResponse(coordinators=found)
    only = found[0]
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


def _coordinator(broker: Broker, context: RequestContext, key_type: int, key: str, version: int) -> Coordinator:
    if key_type == KeyType.GROUP:
        return _group_coordinator(broker, context, key, version)
    if key_type == KeyType.TRANSACTION:
        return _refused(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, version)
    return _refused(key, ErrorCode.INVALID_REQUEST, version, has_message=key_type != KeyType.SHARE)


def _group_coordinator(broker: Broker, context: RequestContext, key: str, version: int) -> Coordinator:
    runtime = broker.group_coordinator.runtime
    topic = broker.image.topics_by_name.get(runtime.topic)
    leader = NOBODY if topic is None else topic.partitions[runtime.partition_for(key)].leader
    for endpoint in broker.endpoints(context.listener):
        if endpoint.node_id == leader:
            return Coordinator(
                key=key,
                node_id=leader,
                host=endpoint.host,
                port=endpoint.port,
                error_message="" if version >= BATCHES_FROM else "NONE",
            )
    return _refused(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, version)


_MESSAGES = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "there is no coordinator for it right now",
    ErrorCode.INVALID_REQUEST: "no coordinator is looked for in this way",
}


def _refused(key: str, error: ErrorCode, version: int, *, has_message: bool = False) -> Coordinator:
    """Of several keys, Kafka says in words what is wrong with none, save an unknown type."""
    message = _MESSAGES[error] if has_message or version < BATCHES_FROM else ""
    return Coordinator(key=key, node_id=NOBODY, host="", port=NOBODY, error_code=error, error_message=message)
