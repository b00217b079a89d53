"""The group coordinator of a node: dispatch each request to the coordinator shards of its groups."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.base.ids import Uuid
from ottla.base.ports import Rng
from ottla.groups.interface import GroupCall, GroupMetrics, GroupSettings, GroupStats
from ottla.groups.responses import early_rejection, error_response
from ottla.groups.shard import GroupCoordinatorShard
from ottla.metadata.configs import broker_value
from ottla.metadata.topic_names import OFFSETS_TOPIC
from ottla.runtime.broker import Broker
from ottla.runtime.coordinator_runtime import CoordinatorRuntime
from ottla.runtime.shard_driver import ShardState, Token
from ottla.wire.schema import Message

ResponseOrFuture = Any
"""A response, or a future of one."""


class GroupCoordinator:
    """Entry point for the group APIs."""

    def __init__(self, broker: Broker, rng: Rng) -> None:
        configs = broker.configs()
        settings = self._settings = group_settings(configs)
        self._broker = broker
        metrics = self.metrics = GroupMetrics()
        codec = broker_value("offsets.topic.compression.codec", configs)
        assert isinstance(codec, int), codec
        self.runtime = CoordinatorRuntime(
            broker,
            OFFSETS_TOPIC,
            lambda: GroupCoordinatorShard(settings, rng, metrics),
            error_response=_error_response,
            codec=codec,
        )

    def dispatch(self, group_id: str, request: Message, version: int, context: RequestContext) -> ResponseOrFuture:
        """Send a request to the shard of a group."""
        driver = self.runtime.driver_for(group_id)
        call = GroupCall(request, version, context.client_id or "", f"/{context.peer_host}")
        return self._no_coordinator(call) if driver is None else driver.submit(call)

    def dispatch_for_member(
        self, group_id: str, request: Message, version: int, context: RequestContext, *, may_wait: bool = False
    ) -> ResponseOrFuture:
        """Like `dispatch`, for requests of group members.

        Invalid ones are rejected even if the shard is not on this node. With `may_wait` the response may wait for other
        members.
        """
        driver = self.runtime.driver_for(group_id)
        token = Token(self._broker.loop) if may_wait else None
        call = GroupCall(request, version, context.client_id or "", f"/{context.peer_host}", token)
        rejection = early_rejection(call, self._settings)
        if rejection is not None:
            return rejection
        return self._no_coordinator(call) if driver is None else driver.submit(call)

    def dispatch_to_all(self, request: Message, version: int) -> list[ResponseOrFuture]:
        """Send a request to every shard on this node."""
        return [driver.submit(GroupCall(request, version)) for driver in self.runtime.drivers()]

    def group_ids_by_shard(self, group_ids: Sequence[str]) -> list[list[str]]:
        """Split group ids by shard."""
        groups: dict[int, list[str]] = {}
        for group_id in group_ids:
            groups.setdefault(self.runtime.partition_for(group_id), []).append(group_id)
        return list(groups.values())

    def on_topics_deleted(self, topics: Sequence[tuple[str, Uuid]]) -> None:
        """Delete the committed offsets of deleted topics."""
        for driver in self.runtime.drivers():
            driver.execute(lambda shard, _: shard.on_topics_deleted(topics))

    def stats(self) -> GroupStats:
        """Return the group statistics of all active shards."""
        by_state: dict[str, int] = {}
        members = 0
        for driver in self.runtime.drivers():
            if driver.state == ShardState.ACTIVE:
                assert isinstance(driver.shard, GroupCoordinatorShard), driver.shard
                stats = driver.shard.stats()
                members += stats.members
                for state, count in stats.by_state.items():
                    by_state[state] = by_state.get(state, 0) + count
        return GroupStats(by_state, members)

    def shard_states(self) -> dict[str, int]:
        """Return the number of shards on this node by state."""
        states = dict.fromkeys((ShardState.LOADING, ShardState.ACTIVE, ShardState.FAILED), 0)
        for driver in self.runtime.drivers():
            states[driver.state] = states.get(driver.state, 0) + 1
        return {state.name.lower(): count for state, count in states.items()}

    def _no_coordinator(self, call: GroupCall) -> Message:
        """Return NOT_COORDINATOR. Create the offsets topic if it is missing, so that the client's retry succeeds."""
        if not self.runtime.partition_count():
            self._broker.internal_topics.create(OFFSETS_TOPIC)
        return error_response(call.request, ErrorCode.NOT_COORDINATOR, call.version)


def group_settings(configs: Mapping[str, str]) -> GroupSettings:
    """Return the group configs, which are static."""
    return GroupSettings._make(broker_value(name.replace("_", "."), configs) for name in GroupSettings._fields)


def combine_responses(
    responses: Sequence[ResponseOrFuture], combine: Callable[[list[Any]], Message]
) -> Message | Coroutine[Any, Any, Message]:
    """Combine responses into one; return a coroutine only if one of them is not available yet."""
    if any(asyncio.isfuture(response) for response in responses):
        return _combine_later(responses, combine)
    return combine(list(responses))


async def _combine_later(responses: Sequence[ResponseOrFuture], combine: Callable[[list[Any]], Message]) -> Message:
    return combine([await response if asyncio.isfuture(response) else response for response in responses])


def _error_response(call: GroupCall, error: ErrorCode) -> Message:
    return error_response(call.request, error, call.version)
