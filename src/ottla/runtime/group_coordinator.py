"""The group coordinator of a node: requests go to the shard that has their group, and those of many groups to many."""

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

Answer = Any
"""A response, or a future of one."""


class GroupCoordinator:
    """What the APIs of groups ask."""

    def __init__(self, broker: Broker, rng: Rng) -> None:
        configs = broker.configs()
        settings = self._settings = group_settings(configs)
        self._broker = broker
        counts = self.metrics = GroupMetrics()
        codec = broker_value("offsets.topic.compression.codec", configs)
        assert isinstance(codec, int), codec
        self.runtime = CoordinatorRuntime(
            broker, OFFSETS_TOPIC, lambda: GroupCoordinatorShard(settings, rng, counts), refusal=_refused, codec=codec
        )

    def dispatch(self, group_id: str, request: Message, version: int, context: RequestContext) -> Answer:
        """One request about one group."""
        shard = self.runtime.shard_of(group_id)
        call = GroupCall(request, version, context.client_id or "", f"/{context.peer_host}")
        return self._nobody(call) if shard is None else shard.submit(call)

    def dispatch_for_member(
        self, group_id: str, request: Message, version: int, context: RequestContext, *, may_wait: bool = False
    ) -> Answer:
        """The same for members, who can be refused wherever their group is, and may have to wait for each other."""
        shard = self.runtime.shard_of(group_id)
        token = Token(self._broker.loop) if may_wait else None
        call = GroupCall(request, version, context.client_id or "", f"/{context.peer_host}", token)
        refused = early_rejection(call, self._settings)
        if refused is not None:
            return refused
        return self._nobody(call) if shard is None else shard.submit(call)

    def dispatch_to_all(self, request: Message, version: int) -> list[Answer]:
        """What every shard that is here has to say."""
        return [shard.submit(GroupCall(request, version)) for shard in self.runtime.all()]

    def group_ids_by_shard(self, group_ids: Sequence[str]) -> list[list[str]]:
        """The groups that one shard can be asked for at once."""
        groups: dict[int, list[str]] = {}
        for group_id in group_ids:
            groups.setdefault(self.runtime.index_of(group_id), []).append(group_id)
        return list(groups.values())

    def on_topics_deleted(self, topics: Sequence[tuple[str, Uuid]]) -> None:
        """Their offsets are forgotten."""
        for shard in self.runtime.all():
            shard.execute(lambda machine, _: machine.on_topics_deleted(topics))

    def stats(self) -> GroupStats:
        """Of the shards that have been loaded."""
        by_state: dict[str, int] = {}
        members = 0
        for shard in self.runtime.all():
            if shard.state == ShardState.ACTIVE:
                assert isinstance(shard.machine, GroupCoordinatorShard), shard.machine
                told = shard.machine.stats()
                members += told.members
                for state, count in told.by_state.items():
                    by_state[state] = by_state.get(state, 0) + count
        return GroupStats(by_state, members)

    def shard_states(self) -> dict[str, int]:
        """How many shards there are in each state that a shard here may be in."""
        states = dict.fromkeys((ShardState.LOADING, ShardState.ACTIVE, ShardState.FAILED), 0)
        for shard in self.runtime.all():
            states[shard.state] = states.get(shard.state, 0) + 1
        return {state.name.lower(): count for state, count in states.items()}

    def _nobody(self, call: GroupCall) -> Message:
        """There is no shard here; where there is no topic either, it is made for the client that asks again."""
        if not self.runtime.partition_count():
            self._broker.internal_topics.create(OFFSETS_TOPIC)
        return error_response(call.request, ErrorCode.NOT_COORDINATOR, call.version)


def group_settings(configs: Mapping[str, str]) -> GroupSettings:
    """The limits of groups, which a node keeps for as long as it runs."""
    return GroupSettings._make(broker_value(name.replace("_", "."), configs) for name in GroupSettings._fields)


def combined(
    answers: Sequence[Answer], combine: Callable[[list[Any]], Message]
) -> Message | Coroutine[Any, Any, Message]:
    """One response of several; a coroutine only where one of them has to be waited for."""
    if any(asyncio.isfuture(answer) for answer in answers):
        return _later(answers, combine)
    return combine(list(answers))


async def _later(answers: Sequence[Answer], combine: Callable[[list[Any]], Message]) -> Message:
    return combine([await answer if asyncio.isfuture(answer) else answer for answer in answers])


def _refused(call: GroupCall, error: ErrorCode) -> Message:
    return error_response(call.request, error, call.version)
