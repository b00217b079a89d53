"""One shard of the group coordinator: the groups of one partition of `__consumer_offsets`."""

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
    GROUP_TYPE,
    OFFSET_TYPE,
    OLD_OFFSET_TYPE,
    offset_key,
    read_group_key,
    read_group_value,
    read_offset_key,
    read_offset_value,
    record_type,
)
from ottla.wire.schema import Message

NO_PRODUCER = -1
EXPIRY = TimerKey("", "expiry")
TIMERS_PER_CALL_MAX = 500
"""Limit of expired timers handled per `on_deadline` call. The rest stay due for the next call."""

EXPIRY_GROUPS_PER_CALL_MAX = 500
"""Limit of groups checked for expired offsets per `on_deadline` call. The next call continues after them."""


class GroupCoordinatorShard:
    """Calls a driver makes:

    1. To load a new shard: `replay` for every record of the partition, then `on_loaded`. Its decision is handled like
       any other.
    2. `decide` for each request, and `on_deadline` when `next_deadline_ms` has passed. Append and replay the records of
       a decision in order before the next decision. Send its response and completions when the records are committed.
       If it has no records, send them when all records replayed so far are committed, since the response may depend on
       them. Records of several decisions may share a batch.
    3. If the log rejects a decision's records before any is replayed, call `on_append_failed` instead of `replay`, and
       use the decision it returns. If replayed records are lost (leadership moved, disk failure), the state is ahead of
       the log: call `on_unloaded`, which answers pending requests, and load a new shard.

    Durable state is what the log holds: the last record of each group, as bytes, and the offsets. Members and
    generations in memory are ahead of it: a group is stored when the leader's assignment arrives, and an unfinished
    rebalance starts over after a failover.
    """

    def __init__(self, settings: GroupSettings, rng: Rng, metrics: GroupMetrics | None = None) -> None:
        self._settings = settings
        self._rng = rng
        self._timers = Timers()
        self._metrics = GroupMetrics() if metrics is None else metrics
        self._rebalancer = Rebalancer(settings, self._timers, self._metrics)
        self._groups = self._rebalancer.groups
        self._stored: dict[str, bytes] = {}
        self._offsets = OffsetTable()
        self._loaded = False
        self._groups_to_expire: list[str] = []

    def decide(self, call: GroupCall, now_ms: int) -> Decision:
        """Return GroupRecords and the response. Errors are responses too."""
        rejection = early_rejection(call, self._settings)
        if rejection is not None:
            return Decision(response=rejection)
        return _DECISIONS[type(call.request)](self, call, call.request, now_ms)

    def replay(self, offset: int, key: bytes, value: bytes | None, producer_id: int = NO_PRODUCER) -> None:
        """Apply one record of the log; durable state changes only here. Unknown record types are skipped.

        `producer_id` is set for a transactional batch: its offsets take effect if `end_transaction` commits them.
        """
        kind = record_type(key)
        if kind in (OFFSET_TYPE, OLD_OFFSET_TYPE):
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
        elif kind == GROUP_TYPE:
            self._replay_group(read_group_key(key), value)

    def _replay_group(self, group_id: str, value: bytes | None) -> None:
        if value is None:
            self._stored.pop(group_id, None)
            self._groups.pop(group_id, None)
            return
        self._stored[group_id] = value
        if not self._loaded:  # once loaded, the group in memory is ahead of its record
            self._groups[group_id] = group_from_record(group_id, read_group_value(value))

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Apply a transaction marker."""
        self._offsets.end_transaction(producer_id, committed=committed)

    def on_append_failed(self, decision: Decision, error: ErrorCode, now_ms: int) -> Decision:
        """The log rejected the decision's records with `error`: undo it.

        The returned decision may have records of its own.
        """
        if decision.on_rejected is None:
            return Decision(response=decision.response, waiting=decision.waiting, completions=decision.completions)
        return decision.on_rejected(error, now_ms)

    def next_deadline_ms(self) -> int | None:
        """Return when to call `on_deadline` next, or None. Cheap enough to call after every request."""
        return self._timers.next_deadline_ms()

    def on_deadline(self, now_ms: int) -> Decision:
        """Handle expired timers: sessions, rebalances, offset expiration. May be called early or late."""
        pending = PendingDecision(now_ms)
        for _ in range(TIMERS_PER_CALL_MAX):
            key = self._timers.pop_due(now_ms)
            if key is None:
                break
            if key == EXPIRY:
                self._expire(pending)
                break  # if groups remain it is due again immediately, so that requests are served in between
            self._rebalancer.on_timer(key, pending)
        return pending.decision()

    def on_loaded(self, now_ms: int) -> Decision:
        """The log is replayed: give every member a full session timeout for its next heartbeat."""
        self._loaded = True
        pending = PendingDecision(now_ms)
        self._timers.set(EXPIRY, now_ms + self._settings.offsets_retention_check_interval_ms)
        for group in list(self._groups.values()):
            for member in group.members.values():
                self._rebalancer.reset_session_timer(group, member, now_ms)
            if len(group.members) > self._settings.group_max_size:
                self._rebalancer.rebalance(
                    group, pending
                )  # the limit was lowered: the last members to rejoin are rejected
        return pending.decision()

    def on_unloaded(self) -> Decision:
        """Answer all pending requests with NOT_COORDINATOR. The shard is not used afterwards."""
        pending = PendingDecision(0)
        for group in self._groups.values():
            for member in group.members.values():
                self._rebalancer.reject_join(group, member, ErrorCode.NOT_COORDINATOR, member.member_id, pending)
                self._rebalancer.respond_to_sync(
                    member, SyncGroupResponse(error_code=ErrorCode.NOT_COORDINATOR), pending
                )
        return pending.decision()

    def on_topics_deleted(self, topics: Iterable[tuple[str, Uuid]]) -> Decision:
        """Return tombstones for the offsets of deleted topics, but not for those of a newer topic of the same name."""
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
        """Count groups by state. Visits every group."""
        by_state = dict.fromkeys((state.value for state in GroupState if state is not GroupState.DEAD), 0)
        members = 0
        for group in self._groups.values():
            by_state[group.state.value] += 1
            members += len(group.members)
        return GroupStats(by_state, members)

    def _expire(self, pending: PendingDecision) -> None:
        if not self._groups_to_expire:
            self._groups_to_expire = list(self._groups)
        batch, self._groups_to_expire = (
            self._groups_to_expire[:EXPIRY_GROUPS_PER_CALL_MAX],
            self._groups_to_expire[EXPIRY_GROUPS_PER_CALL_MAX:],
        )
        for group_id in batch:
            group = self._groups.get(group_id)
            if group is not None:
                records = expired_records(group, self._offsets, pending.now_ms, self._settings.offsets_retention_ms)
                self._metrics.expired_offsets += sum(record_type(record.key) == OFFSET_TYPE for record in records)
                pending.records += records
        delay_ms = 0 if self._groups_to_expire else self._settings.offsets_retention_check_interval_ms
        self._timers.set(EXPIRY, pending.now_ms + delay_ms)

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
    """Return the decision for a request that may wait.

    If it was the last request that a rebalance waited for, its response is among the completions.
    """
    completions = tuple([(request.token, completed) for request, completed in pending.completions])
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
    own = [response for other, response in decision.completions if other is token]
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
