"""Balanced assignment with few changes, for sticky and cooperative-sticky."""

from collections.abc import Iterable, Mapping, Sequence

from ottla.client.assignors.base import NO_GENERATION, Assignment, Member, Topics, members_by_topic
from ottla.client.records import TopicPartition


def plan(
    members: Sequence[Member], topics: Topics, owned: Mapping[str, tuple[Iterable[TopicPartition], int]]
) -> Assignment:
    """Return the assignment. `owned` has the partitions and generation of each member id."""
    subscribers = members_by_topic(members, topics)
    kept = _claims(members, subscribers, topics, owned)
    ordered = sorted(members, key=lambda member: member.order)
    existing = {topic: tuple(member.member_id for member in group) for topic, group in subscribers.items()}
    if all(group == tuple(member.member_id for member in ordered) for group in existing.values()):
        assignment = _even(ordered, topics, list(subscribers), kept)
    else:
        assignment = _uneven(ordered, topics, existing, kept)
    return {member_id: sorted(partitions) for member_id, partitions in assignment.items()}


def _claims(
    members: Sequence[Member],
    subscribers: Mapping[str, Sequence[Member]],
    topics: Topics,
    owned: Mapping[str, tuple[Iterable[TopicPartition], int]],
) -> Assignment:
    """Return what each member may keep: of two claims the later generation wins, and neither if they are equal."""
    allowed = {topic: {member.member_id for member in group} for topic, group in subscribers.items()}
    best: dict[TopicPartition, tuple[int, str | None]] = {}
    for member in sorted(members, key=lambda member: member.order):
        partitions, generation = owned.get(member.member_id, ((), NO_GENERATION))
        for partition in partitions:
            if (
                member.member_id not in allowed.get(partition.topic, ())
                or not 0 <= partition.partition < topics.counts[partition.topic]
            ):
                continue
            rival = best.get(partition)
            if rival is None or generation > rival[0]:
                best[partition] = (generation, member.member_id)
            elif generation == rival[0]:
                best[partition] = (generation, None)
    kept: Assignment = {member.member_id: [] for member in members}
    for partition in sorted(best):
        owner = best[partition][1]
        if owner is not None:
            kept[owner].append(partition)
    return kept


def _even(ordered: Sequence[Member], topics: Topics, names: Sequence[str], kept: Assignment) -> Assignment:
    """Assign with equal subscriptions: each member gets its share, and some get one more."""
    total = sum(topics.counts[name] for name in names)
    share, extra = divmod(total, len(ordered))
    assignment: Assignment = {}
    for member in ordered:
        own = kept[member.member_id]
        limit = share
        if len(own) > share and extra > 0:
            limit, extra = share + 1, extra - 1
        assignment[member.member_id] = own[:limit]
    taken = {partition for partitions in assignment.values() for partition in partitions}
    free = [partition for name in names for partition in topics.partitions(name) if partition not in taken]
    capacity = {member.member_id: share - len(assignment[member.member_id]) for member in ordered}
    for member in ordered:
        if extra > 0 and len(assignment[member.member_id]) <= share:
            capacity[member.member_id] += 1
            extra -= 1
    racks = {member.member_id: member.rack for member in ordered if member.rack}
    if racks and topics.racks:
        free = _near_first(free, topics, ordered, capacity, assignment)
    # In turn, so that the partitions of a topic are spread over members.
    waiting = [member.member_id for member in ordered if capacity[member.member_id] > 0]
    while free and waiting:
        for member_id in list(waiting):
            if not free:
                break
            assignment[member_id].append(free.pop(0))
            capacity[member_id] -= 1
            if capacity[member_id] == 0:
                waiting.remove(member_id)
    return assignment


def _near_first(
    free: Sequence[TopicPartition],
    topics: Topics,
    ordered: Sequence[Member],
    capacity: dict[str, int],
    assignment: Assignment,
) -> list[TopicPartition]:
    """Assign free partitions to members in the rack of a replica. Returns the partitions without such a member."""
    left = []
    for partition in free:
        racks = topics.racks.get(partition, ())
        near = [member for member in ordered if capacity[member.member_id] > 0 and member.rack in racks]
        if not near:
            left.append(partition)
            continue
        chosen = min(near, key=lambda member: len(assignment[member.member_id]))
        assignment[chosen.member_id].append(partition)
        capacity[chosen.member_id] -= 1
    return left


def _uneven(
    ordered: Sequence[Member], topics: Topics, subscribers: Mapping[str, Sequence[str]], kept: Assignment
) -> Assignment:
    """Assign with different subscriptions.

    Free partitions, those with the fewest subscribers first, go to the subscriber with the fewest partitions. Then
    moves even out the counts. Each move goes to a member with at least two fewer partitions, which lowers the sum of
    squares, so the loop terminates.
    """
    assignment: Assignment = {member.member_id: list(kept[member.member_id]) for member in ordered}
    owner = {partition: member_id for member_id, partitions in assignment.items() for partition in partitions}
    everything = [partition for topic in subscribers for partition in topics.partitions(topic) if subscribers[topic]]
    for partition in sorted((p for p in everything if p not in owner), key=lambda p: (len(subscribers[p.topic]), p)):
        chosen = min(subscribers[partition.topic], key=lambda member_id: len(assignment[member_id]))
        assignment[chosen].append(partition)
        owner[partition] = chosen
    moved = True
    while moved:
        moved = False
        for partition in sorted(owner, key=lambda p: (-len(assignment[owner[p]]), p)):
            holder = owner[partition]
            least = min(subscribers[partition.topic], key=lambda member_id: len(assignment[member_id]))
            if len(assignment[holder]) - len(assignment[least]) > 1:
                assignment[holder].remove(partition)
                assignment[least].append(partition)
                owner[partition] = least
                moved = True
    return assignment
