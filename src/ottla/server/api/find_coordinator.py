"""FindCoordinator (key 10), versions 0–6: the broker that coordinates a group; several keys from version 4 on
(KIP-699).

The first request creates the topic that stores groups. Kafka makes that client retry; here the response waits until
the topic exists and its partitions are open: a client that gets NOT_COORDINATOR from the named coordinator may pause
for seconds (librdkafka: 3 s). Skipped: transactions and share groups have no coordinators yet; see docs/SKIPPED.md. A
transactional id gets TRANSACTIONAL_ID_AUTHORIZATION_FAILED, the only error that every client reports as fatal:
librdkafka retries others until its timeout.
"""

from collections.abc import Coroutine, Sequence
from enum import IntEnum
from typing import Any

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.runtime.broker import Broker
from ottla.runtime.unsupported_features import TRANSACTIONS
from ottla.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

REQUEST = FindCoordinatorRequest
BATCHES_MIN_VERSION = 4
NO_NODE = -1

Response = FindCoordinatorResponse | Coroutine[Any, Any, FindCoordinatorResponse]


class KeyType(IntEnum):
    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


def handle(broker: Broker, context: RequestContext, request: FindCoordinatorRequest, version: int) -> Response:
    keys = request.coordinator_keys if version >= BATCHES_MIN_VERSION else [request.key]
    if request.key_type == KeyType.GROUP and keys:
        runtime = broker.group_coordinator.runtime
        if not runtime.partition_count() or any(runtime.is_opening(key) for key in keys):
            return _find_when_open(broker, context, keys, version)
    if request.key_type == KeyType.TRANSACTION:
        broker.unsupported_features.report(context, TRANSACTIONS)
    return _found(broker, context, request.key_type, keys, version)


async def _find_when_open(
    broker: Broker, context: RequestContext, keys: Sequence[str], version: int
) -> FindCoordinatorResponse:
    runtime = broker.group_coordinator.runtime
    if not runtime.partition_count():
        await broker.internal_topics.create(runtime.topic)
    await broker.controller.wait_until_open()
    return _found(broker, context, KeyType.GROUP, keys, version)


def _found(
    broker: Broker, context: RequestContext, key_type: int, keys: Sequence[str], version: int
) -> FindCoordinatorResponse:
    found = [_coordinator(broker, context, key_type, key, version) for key in keys]
    if version >= BATCHES_MIN_VERSION:
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
        return _failed(key, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, TRANSACTIONS)
    is_batch = version >= BATCHES_MIN_VERSION
    message = f"unsupported coordinator key type {key_type}; only {KeyType.GROUP} (group) is supported"
    return _failed(key, ErrorCode.INVALID_REQUEST, "" if is_batch and key_type == KeyType.SHARE else message)


def _group_coordinator(broker: Broker, context: RequestContext, key: str, version: int) -> Coordinator:
    runtime = broker.group_coordinator.runtime
    leader = NO_NODE if runtime.is_opening(key) else runtime.leader_of(key)
    for endpoint in broker.endpoints(context.listener):
        if endpoint.node_id == leader:
            return Coordinator(
                key=key,
                node_id=leader,
                host=endpoint.host,
                port=endpoint.port,
                error_message="" if version >= BATCHES_MIN_VERSION else "NONE",
            )
    message = "" if version >= BATCHES_MIN_VERSION else "coordinator is not available; retry"
    return _failed(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, message)


def _failed(key: str, error: ErrorCode, message: str) -> Coordinator:
    return Coordinator(key=key, node_id=NO_NODE, host="", port=NO_NODE, error_code=error, error_message=message)
