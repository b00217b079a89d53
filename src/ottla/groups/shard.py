"""One shard of the group coordinator: the groups whose records live in one partition of `__consumer_offsets`."""

from collections.abc import Callable, Iterable
from typing import Any

from ottla.base.decision import Decision
from ottla.base.errors import ErrorCode
from ottla.base.ids import ZERO_UUID, Uuid
from ottla.base.ports import Rng
from ottla.groups.classic_group import ClassicGroup, GroupState, group_from_record
from ottla.groups.interface import GroupCall, GroupMetrics, GroupRecord, GroupSettings, GroupStats
from ottla.groups.join_group import JoinOperation
from ottla.groups.listing import delete_groups, describe_groups, list_groups
from ottla.groups.member_requests import heartbeat, leave_group, sync_group
from ottla.groups.offset_expiration import expired_records
from ottla.groups.offset_table import OffsetTable
from ottla.groups.offsets import commit_offsets, delete_offsets, fetch_offsets
from ottla.groups.rebalancer import PendingDecision, Rebalancer
from ottla.groups.responses import append_error_handler, early_rejection
from ottla.groups.timers import TimerKey, Timers
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest
from ottla.wire.messages.leave_group import LeaveGroupRequest
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.offset_commit import OffsetCommitRequest
from ottla.wire.messages.offset_delete import OffsetDeleteRequest
from ottla.wire.messages.offset_fetch import OffsetFetchRequest
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from ottla.wire.records.group import (
    GROUP_KIND,
    OFFSET_KIND,
    OLD_OFFSET_KIND,
    offset_key,
    read_group_key,
    read_group_value,
    read_offset_key,
    read_offset_value,
    record_kind,
)
from ottla.wire.schema import Message

NO_PRODUCER = -1
EXPIRY = TimerKey("", "expiry")
TIMERS_PER_CALL_MAX = 500
"""Timers that one call of `on_deadline` handles; what else is due is due for the next call."""

EXPIRY_GROUPS_PER_CALL_MAX = 500
"""Groups that one call of `on_deadline` looks through for expired offsets; the next call goes on behind them."""


class GroupCoordinatorShard:
    """How it is driven:

    1. A new shard is loaded: `replay` for every record of the partition, then `on_loaded`, whose decision is treated as any other.
    2. For each request `decide`; when `next_deadline_ms` has come, `on_deadline`. The records of a decision are appended to the log and
       replayed, in their order, before anything else is decided. Its response and completions leave when the records are committed;
       those of a decision without records leave when all that was replayed before it is committed, as they may tell of it.
       Records of several decisions may share a batch.
    3. Where the log refuses the records of a decision before any of them was replayed, call `on_append_failed` instead of `replay`
       and go on with the decision it returns. Where records that were replayed are lost (leadership moved, the disk failed),
       the shard is: `on_unloaded` answers those who wait, and a new shard is loaded.

    Hard state is what the log holds: the last record of each group, as its bytes, and the offsets. The groups themselves run ahead
    of it: a generation is stored when it is settled, and what was not settled begins again after a change of coordinator.
    """

    def __init__(self, settings: GroupSettings, rng: Rng, counts: GroupMetrics | None = None) -> None:
        self._settings = settings
        self._rng = rng
        self._timers = Timers()
        self._metrics = GroupMetrics() if counts is None else counts
        self._rebalancer = Rebalancer(settings, self._timers, self._metrics)
        self._groups = self._rebalancer.groups
        self._stored: dict[str, bytes] = {}
        self._offsets = OffsetTable()
        self._loaded = False
        self._groups_to_expire: list[str] = []

    def decide(self, call: GroupCall, now_ms: int) -> Decision:
        """The records are GroupRecords. Refusals are responses too."""
        refused = early_rejection(call, self._settings)
        if refused is not None:
            return Decision(response=refused)
        return _DECISIONS[type(call.request)](self, call, call.request, now_ms)

    def replay(self, offset: int, key: bytes, value: bytes | None, producer_id: int = NO_PRODUCER) -> None:
        """The only writer of what the log holds. Records of kinds that are not known are skipped.

        `producer_id` is that of a transactional batch; its offsets count when `end_transaction` says so.
        """
        kind = record_kind(key)
        if kind in (OFFSET_KIND, OLD_OFFSET_KIND):
            group_id, topic, partition = read_offset_key(key)
            if value is None:
                self._offsets.remove(group_id, topic, partition)
                return
            if group_id not in self._groups:
                self._groups[group_id] = ClassicGroup(group_id, -1)
            if producer_id == NO_PRODUCER:
                self._offsets.put(group_id, topic, partition, read_offset_value(value))
                self._offsets.note_record_offset(offset, group_id, topic, partition)
            else:
                self._offsets.put_pending(offset, producer_id, (group_id, topic, partition), read_offset_value(value))
        elif kind == GROUP_KIND:
            self._replay_group(read_group_key(key), value)

    def _replay_group(self, group_id: str, value: bytes | None) -> None:
        if value is None:
            self._stored.pop(group_id, None)
            self._groups.pop(group_id, None)
            return
        self._stored[group_id] = value
        if not self._loaded:  # afterwards the group is ahead of its record
            self._groups[group_id] = group_from_record(group_id, read_group_value(value))

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """A transaction marker of the partition was replayed."""
        self._offsets.end_transaction(producer_id, committed=committed)

    def on_append_failed(self, decision: Decision, error: ErrorCode, now_ms: int) -> Decision:
        """`error` is the log's. What the decision only remembered is undone; the result says what to answer, and may have records."""
        if decision.on_rejected is None:
            return Decision(response=decision.response, waiting=decision.waiting, completions=decision.completions)
        return decision.on_rejected(error, now_ms)

    def next_deadline_ms(self) -> int | None:
        """When `on_deadline` has something to do; None while nothing is due ever. Cheap enough to ask after every call."""
        return self._timers.next_deadline_ms()

    def on_deadline(self, now_ms: int) -> Decision:
        """All that is due: members expire, rebalances end, offsets are forgotten. Harmless when called early or late."""
        pending = PendingDecision(now_ms)
        for _ in range(TIMERS_PER_CALL_MAX):
            key = self._timers.pop_due(now_ms)
            if key is None:
                break
            if key == EXPIRY:
                self._expire(pending)
                break  # where it has more to do it is due again at once, after others had their turn
            self._rebalancer.on_timer(key, pending)
        return pending.decision()

    def on_loaded(self, now_ms: int) -> Decision:
        """The log is read to its end: members get a full session timeout to be heard of."""
        self._loaded = True
        pending = PendingDecision(now_ms)
        self._timers.set(EXPIRY, now_ms + self._settings.offsets_retention_check_interval_ms)
        for group in list(self._groups.values()):
            for member in group.members.values():
                self._rebalancer.reset_session_timer(group, member, now_ms)
            if len(group.members) > self._settings.group_max_size:
                self._rebalancer.rebalance(
                    group, pending
                )  # the limit was lowered: the last to come back are turned away
        return pending.decision()

    def on_unloaded(self) -> Decision:
        """Everyone who waits is answered with NOT_COORDINATOR. The shard is not used afterwards."""
        pending = PendingDecision(0)
        for group in self._groups.values():
            for member in group.members.values():
                self._rebalancer.reject_join(group, member, ErrorCode.NOT_COORDINATOR, member.member_id, pending)
                self._rebalancer.respond_to_sync(
                    member, SyncGroupResponse(error_code=ErrorCode.NOT_COORDINATOR), pending
                )
        return pending.decision()

    def on_topics_deleted(self, topics: Iterable[tuple[str, Uuid]]) -> Decision:
        """Offsets of deleted topics are forgotten in all groups, unless they were committed under another id of the same name."""
        deleted = dict(topics)
        records = []
        for group_id in self._offsets.group_ids():
            offsets = self._offsets.of(group_id)
            for topic in [name for name in offsets if name in deleted]:
                records += [
                    GroupRecord(offset_key(group_id, topic, partition), None)
                    for partition, committed in offsets[topic].items()
                    if committed.topic_id in (deleted[topic], ZERO_UUID)
                ]
        return Decision(records=tuple(records))

    def stats(self) -> GroupStats:
        """By looking at every group, for those who ask now and then."""
        by_state = dict.fromkeys((state.value for state in GroupState if state is not GroupState.DEAD), 0)
        members = 0
        for group in self._groups.values():
            by_state[group.state.value] += 1
            members += len(group.members)
        return GroupStats(by_state, members)

    def _expire(self, pending: PendingDecision) -> None:
        if not self._groups_to_expire:
            self._groups_to_expire = list(self._groups)
        some, self._groups_to_expire = (
            self._groups_to_expire[:EXPIRY_GROUPS_PER_CALL_MAX],
            self._groups_to_expire[EXPIRY_GROUPS_PER_CALL_MAX:],
        )
        for group_id in some:
            group = self._groups.get(group_id)
            if group is not None:
                records = expired_records(group, self._offsets, pending.now_ms, self._settings.offsets_retention_ms)
                self._metrics.expired_offsets += sum(record_kind(record.key) == OFFSET_KIND for record in records)
                pending.records += records
        again_ms = 0 if self._groups_to_expire else self._settings.offsets_retention_check_interval_ms
        self._timers.set(EXPIRY, pending.now_ms + again_ms)

    # Requests

    def _join(self, call: GroupCall, request: JoinGroupRequest, now_ms: int) -> Decision:
        pending = PendingDecision(now_ms)
        join = JoinOperation(call, request, self._rebalancer, self._rng, pending)
        return _with_response(pending, join.decide(), call)

    def _sync(self, call: GroupCall, request: SyncGroupRequest, now_ms: int) -> Decision:
        pending = PendingDecision(now_ms)
        return _with_response(pending, sync_group(self._rebalancer, call, request, pending), call)

    def _leave(self, call: GroupCall, request: LeaveGroupRequest, now_ms: int) -> Decision:
        pending = PendingDecision(now_ms)
        return _with_response(pending, leave_group(self._rebalancer, call, request, pending), call)

    def _heartbeat(self, call: GroupCall, request: HeartbeatRequest, now_ms: int) -> Decision:
        return Decision(response=heartbeat(self._rebalancer, request, now_ms))

    def _commit(self, call: GroupCall, request: OffsetCommitRequest, now_ms: int) -> Decision:
        return commit_offsets(self._rebalancer, call, request, now_ms)

    def _fetch(self, call: GroupCall, request: OffsetFetchRequest, now_ms: int) -> Decision:
        return Decision(response=fetch_offsets(self._offsets, request))

    def _delete_offsets(self, call: GroupCall, request: OffsetDeleteRequest, now_ms: int) -> Decision:
        return delete_offsets(self._rebalancer, self._offsets, call, request)

    def _list(self, call: GroupCall, request: ListGroupsRequest, now_ms: int) -> Decision:
        return Decision(response=list_groups(self._groups, request))

    def _describe(self, call: GroupCall, request: DescribeGroupsRequest, now_ms: int) -> Decision:
        return Decision(response=describe_groups(self._groups, request, call.version))

    def _delete(self, call: GroupCall, request: DeleteGroupsRequest, now_ms: int) -> Decision:
        return delete_groups(self._groups, self._offsets, call, request)


def _with_response(pending: PendingDecision, response: Message | None, call: GroupCall) -> Decision:
    """A request that waits for others may be the last that all waited for: then its answer is among the completions."""
    completions = tuple([(waiting.token, answer) for waiting, answer in pending.completions])
    undo = pending.on_rejected
    if not pending.records:
        on_rejected = None
    elif undo is None:
        on_rejected = append_error_handler(call, completions)
    else:
        on_rejected = _wrap_undo(undo, call.token)
    if response is not None:
        return Decision(tuple(pending.records), response, False, completions, on_rejected)
    return _own_completion_as_response(
        Decision(tuple(pending.records), None, True, completions, on_rejected), call.token
    )


def _own_completion_as_response(decision: Decision, token: Any) -> Decision:
    own = [answer for other, answer in decision.completions if other is token]
    if not own:
        return decision
    others = tuple([completion for completion in decision.completions if completion[0] is not token])
    return Decision(decision.records, own[-1], False, others, decision.on_rejected)


def _wrap_undo(undo: Callable[[ErrorCode, int], Decision], token: Any) -> Callable[[ErrorCode, int], Decision]:
    return lambda error, now_ms: _own_completion_as_response(undo(error, now_ms), token)


_DECISIONS: dict[type, Callable[[GroupCoordinatorShard, GroupCall, Any, int], Decision]] = {
    JoinGroupRequest: GroupCoordinatorShard._join,
    SyncGroupRequest: GroupCoordinatorShard._sync,
    HeartbeatRequest: GroupCoordinatorShard._heartbeat,
    LeaveGroupRequest: GroupCoordinatorShard._leave,
    OffsetCommitRequest: GroupCoordinatorShard._commit,
    OffsetFetchRequest: GroupCoordinatorShard._fetch,
    OffsetDeleteRequest: GroupCoordinatorShard._delete_offsets,
    ListGroupsRequest: GroupCoordinatorShard._list,
    DescribeGroupsRequest: GroupCoordinatorShard._describe,
    DeleteGroupsRequest: GroupCoordinatorShard._delete,
}
