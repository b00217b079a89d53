"""ListGroups, DescribeGroups and DeleteGroups."""

from ottla.base.decision import Decision
from ottla.base.errors import ErrorCode
from ottla.groups.classic_group import ClassicGroup, GroupState
from ottla.groups.interface import GroupCall, GroupRecord
from ottla.groups.offset_expiration import group_tombstones
from ottla.groups.offset_table import OffsetTable
from ottla.groups.responses import append_error_handler
from ottla.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from ottla.wire.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from ottla.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

Groups = dict[str, ClassicGroup]
CLASSIC = "classic"
NOT_FOUND_ERROR_MIN_VERSION = 6
"""Before this version DescribeGroups reports an unknown group as Dead, without an error."""


def list_groups(groups: Groups, request: ListGroupsRequest) -> ListGroupsResponse:
    states = {state.lower().strip(): None for state in request.states_filter}
    types = {name.lower(): None for name in request.types_filter}
    return ListGroupsResponse(
        groups=[
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type or "",
                group_state=group.state.value,
                group_type=CLASSIC,
            )
            for group in groups.values()
            if (not states or group.state.value.lower() in states) and (not types or CLASSIC in types)
        ]
    )


def describe_groups(groups: Groups, request: DescribeGroupsRequest, version: int) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(
        groups=[_describe(groups.get(group_id), group_id, version) for group_id in request.groups]
    )


def _describe(group: ClassicGroup | None, group_id: str, version: int) -> DescribedGroup:
    if group is None:
        described = DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
        if version >= NOT_FOUND_ERROR_MIN_VERSION:
            described.error_code, described.error_message = (
                ErrorCode.GROUP_ID_NOT_FOUND,
                f"Group {group_id!r} not found.",
            )
        return described
    stable = group.state is GroupState.STABLE
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if stable else "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol_name) if stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )


def delete_groups(groups: Groups, table: OffsetTable, call: GroupCall, request: DeleteGroupsRequest) -> Decision:
    records: list[GroupRecord] = []
    results = []
    for group_id in dict.fromkeys(request.groups_names):
        group = groups.get(group_id)
        error = ErrorCode.NONE
        if group is None:
            error = ErrorCode.GROUP_ID_NOT_FOUND
        elif group.state is not GroupState.EMPTY:
            error = ErrorCode.NON_EMPTY_GROUP
        else:
            records += group_tombstones(group_id, table)
        results.append(DeletableGroupResult(group_id=group_id, error_code=error))
    return Decision(tuple(records), DeleteGroupsResponse(results=results), on_rejected=append_error_handler(call))
