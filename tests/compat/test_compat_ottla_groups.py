"""Consumers of `ottla.client` in groups: alone, together and with other clients.

Every partition has one owner and committed offsets never decrease, while members join, leave and crash.
"""

import asyncio
import re
import time
from collections import Counter

import pytest

from ottla.client import AsyncConsumer, Consumer, TopicPartition
from ottla.client.errors import CommitFailedError, FencedInstanceIdError
from ottla.client.records import OffsetAndMetadata

JOIN_GROUP = 11
QUICK = {
    "heartbeat_interval_ms": 200,
    "session_timeout_ms": 6_000,
    "auto_offset_reset": "earliest",
    "fetch_max_wait_ms": 100,
}


@pytest.fixture(autouse=True)
def require_groups(api_keys):
    if JOIN_GROUP not in api_keys:
        pytest.skip("the broker has no groups")


@pytest.fixture
def fill(broker):
    """Send numbered values to each partition."""
    from confluent_kafka import Producer

    def send(topic, partitions, count, start=0):
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        for number in range(start, start + count):
            for partition in range(partitions):
                producer.produce(topic, b"%d" % number, partition=partition)
        assert producer.flush(30) == 0

    return send


class Worker:
    """A consumer that polls in a task and records its callbacks."""

    def __init__(self, bootstrap, topics, **configs):
        self.consumer = AsyncConsumer(bootstrap_servers=bootstrap, **{**QUICK, **configs})
        self.records, self.events = [], []
        self.consumer.subscribe(
            topics,
            on_assigned=lambda p: self.events.append(("assigned", sorted(p))),
            on_revoked=lambda p: self.events.append(("revoked", sorted(p))),
            on_lost=lambda p: self.events.append(("lost", sorted(p))),
        )
        self.task = asyncio.create_task(self._run())

    async def _run(self):
        while True:
            self.records += await self.consumer.poll(0.1)

    @property
    def owned(self):
        return self.consumer.assignment

    async def stop(self):
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self.consumer.close()

    async def crash(self):
        """Stop without a commit or LeaveGroup."""
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        engine = self.consumer._engine
        await engine.fetcher.close()
        await engine.group.close()
        await engine.core.close()


async def wait_until(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "condition not met in time"
        await asyncio.sleep(0.02)


def owned_once(workers, topic, partitions):
    """Return whether each partition has one owner and each worker owns some."""
    owned = [partition for worker in workers for partition in worker.owned]
    return sorted(owned) == [TopicPartition(topic, index) for index in range(partitions)] and all(
        worker.owned for worker in workers
    )


STRATEGIES = ["range", "roundrobin", "sticky", "cooperative-sticky"]


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_group_survives_joins_leaves_and_crashes(broker, make_topic, fill, new_name, strategy):
    """Three join in turn, one leaves, one crashes: all records are read, most of them once."""
    topic, group = make_topic(partitions=6), new_name()
    fill(topic, 6, 50)
    configs = {"group_id": group, "partition_assignment_strategy": strategy, "auto_commit_interval_ms": 100}
    workers = [Worker(broker.bootstrap, [topic], **configs)]
    await wait_until(lambda: len(workers[0].records) == 300)
    for _ in range(2):
        workers.append(Worker(broker.bootstrap, [topic], **configs))
        await wait_until(lambda: owned_once(workers, topic, 6))
    fill(topic, 6, 50, start=50)
    await wait_until(lambda: sum(len(worker.records) for worker in workers) >= 600)
    stopped = workers.pop(0)
    await stopped.stop()
    await wait_until(lambda: owned_once(workers, topic, 6))
    crashed = workers.pop(0)
    await asyncio.sleep(0.3)
    await crashed.crash()
    await wait_until(lambda: owned_once(workers, topic, 6))
    fill(topic, 6, 10, start=100)
    seen = lambda: Counter((r.partition, r.offset) for w in (stopped, crashed, *workers) for r in w.records)  # noqa: E731
    await wait_until(lambda: len(seen()) == 660)
    await workers[0].stop()
    assert sorted(seen()) == [(p, n) for p in range(6) for n in range(110)]
    if strategy != "cooperative-sticky":
        revoked = [event for event in stopped.events if event[0] == "revoked"]
        assert revoked[0] == ("revoked", [TopicPartition(topic, index) for index in range(6)])


async def test_cooperative_members_keep_reading(broker, make_topic, fill, new_name):
    """A new member gets some partitions; the others are never revoked."""
    topic = make_topic(partitions=4)
    configs = {"group_id": new_name(), "partition_assignment_strategy": "cooperative-sticky"}
    first = Worker(broker.bootstrap, [topic], **configs)
    await wait_until(lambda: len(first.owned) == 4)
    second = Worker(broker.bootstrap, [topic], **configs)
    await wait_until(lambda: owned_once([first, second], topic, 4))
    revoked = [partition for kind, partitions in first.events if kind == "revoked" for partition in partitions]
    assert sorted(revoked) == sorted(second.owned)
    assert len(revoked) == 2
    for worker in (first, second):
        await worker.stop()


async def test_static_member_restarts_without_a_rebalance(broker, make_topic, new_name):
    """It gets its partitions back, without callbacks on the others."""
    topic, group = make_topic(partitions=4), new_name()
    other = Worker(broker.bootstrap, [topic], group_id=group, group_instance_id="other")
    static = Worker(broker.bootstrap, [topic], group_id=group, group_instance_id="static")
    await wait_until(lambda: owned_once([other, static], topic, 4))
    before, events = sorted(static.owned), list(other.events)
    await static.stop()
    static = Worker(broker.bootstrap, [topic], group_id=group, group_instance_id="static")
    await wait_until(lambda: bool(static.owned))
    await asyncio.sleep(0.5)
    assert (sorted(static.owned), other.events) == (before, events)
    for worker in (other, static):
        await worker.stop()


async def test_replaced_static_member_is_fenced(broker, make_topic, new_name):
    topic, group = make_topic(), new_name()
    first = Worker(broker.bootstrap, [topic], group_id=group, group_instance_id="same")
    await wait_until(lambda: bool(first.owned))
    second = Worker(broker.bootstrap, [topic], group_id=group, group_instance_id="same")
    with pytest.raises(FencedInstanceIdError):
        await asyncio.wait_for(first.task, 20)
    await wait_until(lambda: bool(second.owned))
    for worker in (first, second):
        await worker.stop()


async def test_member_that_polls_too_late_is_removed(broker, make_topic, fill, new_name):
    """Its partitions are reassigned, its commits fail, and its next poll calls on_lost."""
    topic, group = make_topic(partitions=2), new_name()
    fill(topic, 2, 10)
    lost = []
    slow = AsyncConsumer(
        bootstrap_servers=broker.bootstrap,
        group_id=group,
        max_poll_interval_ms=1_000,
        enable_auto_commit=False,
        **QUICK,
    )
    slow.subscribe([topic], on_lost=lambda partitions: lost.append(sorted(partitions)))
    while not await slow.poll(1):
        pass
    other = Worker(broker.bootstrap, [topic], group_id=group)
    await asyncio.sleep(0.1)
    await wait_until(lambda: len(other.owned) == 2)
    with pytest.raises(CommitFailedError):
        await slow.commit()
    await slow.poll(0.5)
    assert lost == [[TopicPartition(topic, 0), TopicPartition(topic, 1)]]
    await slow.close()
    await other.stop()


async def test_manual_commits(broker, make_topic, fill, new_name):
    """Commits with metadata for chosen partitions; later consumers start there."""
    topic, group = make_topic(partitions=2), new_name()
    fill(topic, 2, 20)
    partitions = [TopicPartition(topic, index) for index in range(2)]
    configs = {"bootstrap_servers": broker.bootstrap, "group_id": group, "enable_auto_commit": False, **QUICK}
    async with AsyncConsumer(**configs) as consumer:
        consumer.assign(partitions)
        assert await consumer.committed() == {partitions[0]: None, partitions[1]: None}
        await consumer.commit({partitions[0]: OffsetAndMetadata(5, "five"), partitions[1]: 7})
        found = await consumer.committed(*partitions)
        assert [(each.offset, each.metadata) for each in found.values()] == [(5, "five"), (7, "")]
        result = asyncio.get_running_loop().create_future()
        consumer.commit_soon({partitions[1]: 8}, lambda offsets, error: result.set_result((offsets, error)))
        assert await result == ({partitions[1]: OffsetAndMetadata(8)}, None)
    async with AsyncConsumer(**configs) as consumer:
        consumer.assign(partitions)
        assert [await consumer.position(partition) for partition in partitions] == [5, 8]
        records = []
        while len(records) < 27:
            records += await consumer.poll(5)
        await consumer.commit()
        assert [(await consumer.committed(p))[p].offset for p in partitions] == [20, 20]


async def test_close_commits_and_leaves(broker, make_topic, fill, new_name):
    """Returned records are committed, so the next member continues after them immediately."""
    topic, group = make_topic(), new_name()
    fill(topic, 1, 100)
    revoked = []
    async with AsyncConsumer(bootstrap_servers=broker.bootstrap, group_id=group, **QUICK) as consumer:
        consumer.subscribe([topic], on_revoked=revoked.append)
        async for record in consumer:
            if record.offset == 41:
                break
    assert revoked == [[TopicPartition(topic, 0)]]
    began = time.monotonic()
    async with AsyncConsumer(bootstrap_servers=broker.bootstrap, group_id=group, **QUICK) as consumer:
        consumer.subscribe([topic])
        assert (await anext(aiter(consumer))).offset == 42
    assert time.monotonic() - began < 5


async def test_new_partitions_and_topics_are_assigned(broker, make_topic, fill, new_name):
    """The leader assigns added partitions and new topics that match the pattern."""
    from confluent_kafka.admin import AdminClient, NewPartitions

    topic = make_topic(partitions=1)
    configs = {"group_id": new_name(), "metadata_max_age_ms": 300}
    worker = Worker(broker.bootstrap, [topic], **configs)
    await wait_until(lambda: len(worker.owned) == 1)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(30)
    await wait_until(lambda: len(worker.owned) == 3)
    await worker.stop()
    matching = Worker(
        broker.bootstrap,
        re.compile(re.escape(topic) + "|" + re.escape(topic.rsplit("-", 1)[0]) + r"-\d+"),
        group_id=new_name(),
        metadata_max_age_ms=300,
    )
    await wait_until(lambda: len(matching.owned) >= 3)
    another = make_topic(partitions=2)
    await wait_until(lambda: TopicPartition(another, 1) in matching.owned)
    await matching.stop()


async def test_removed_only_member_cannot_commit(broker, make_topic, fill, new_name):
    """The group is empty then and accepts commits from non-members."""
    topic = make_topic()
    fill(topic, 1, 10)
    configs = {"group_id": new_name(), "max_poll_interval_ms": 500, "enable_auto_commit": False}
    async with AsyncConsumer(bootstrap_servers=broker.bootstrap, **configs, **QUICK) as consumer:
        consumer.subscribe([topic])
        while not await consumer.poll(1):
            pass
        await asyncio.sleep(1)
        with pytest.raises(CommitFailedError):
            await consumer.commit()
        partition = TopicPartition(topic, 0)
        assert await consumer.committed(partition) == {partition: None}


async def test_interceptors_get_commits(broker, make_topic, new_name):
    class CommitInterceptor:
        events, is_closed = [], False

        def on_commit(self, offsets):
            self.events.append(offsets)

        def close(self):
            self.is_closed = True

    ear, partition = CommitInterceptor(), TopicPartition(make_topic(), 0)
    async with AsyncConsumer(
        bootstrap_servers=broker.bootstrap, group_id=new_name(), interceptor_classes=[ear]
    ) as consumer:
        await consumer.commit({partition: 3})
    assert (ear.events, ear.is_closed) == ([{partition: OffsetAndMetadata(3)}], True)


async def test_topic_created_after_subscribe_is_read(broker, make_topic, fill, new_name):
    """Without waiting for metadata.max.age.ms."""
    from tests.compat.conftest import create_topic

    topic = new_name()
    worker = Worker(broker.bootstrap, [topic], group_id=new_name(), allow_auto_create_topics=False)
    await wait_until(lambda: bool(worker.events))
    assert worker.owned == []
    await asyncio.to_thread(create_topic, broker.bootstrap, topic, 2, {})
    await wait_until(lambda: len(worker.owned) == 2, seconds=10)
    await worker.stop()


async def test_commit_in_on_revoked(broker, make_topic, fill, new_name):
    """During the callback the member still owns them."""
    topic, group = make_topic(partitions=2), new_name()
    fill(topic, 2, 10)
    committed = []

    async def on_revoked(partitions):
        await first.commit()
        committed.append(await first.committed(*partitions))

    first = AsyncConsumer(bootstrap_servers=broker.bootstrap, group_id=group, enable_auto_commit=False, **QUICK)
    first.subscribe([topic], on_revoked=on_revoked)
    records = []
    while len(records) < 20:
        records += await first.poll(1)
    second = Worker(broker.bootstrap, [topic], group_id=group)
    deadline = time.monotonic() + 20
    while not second.owned and time.monotonic() < deadline:
        await first.poll(0.1)
    assert [{p.partition: o.offset for p, o in each.items()} for each in committed] == [{0: 10, 1: 10}]
    assert second.records == []
    await first.close()
    await second.stop()


def test_blocking_consumer_in_a_group(broker, make_topic, fill, new_name):
    """Callbacks run in the polling thread and may commit."""
    import threading

    topic, group = make_topic(partitions=2), new_name()
    fill(topic, 2, 10)
    threads = []
    with Consumer(bootstrap_servers=broker.bootstrap, group_id=group, **QUICK) as consumer:

        def on_assigned(partitions):
            threads.append(threading.current_thread())
            consumer.seek_to_beginning(*partitions)

        consumer.subscribe([topic], on_assigned=on_assigned)
        records = []
        for record in consumer:
            records.append(record)
            if len(records) == 20:
                break
        consumer.commit()
        assert [each.offset for each in consumer.committed().values()] == [10, 10]
    assert threads == [threading.current_thread()]


async def split_partitions(broker, topic, group, strategy, *, ottla_first, make, poll, assigned):
    """Run a group of an Ottla consumer and another client: each gets two of four partitions."""
    ours = (
        Worker(broker.bootstrap, [topic], group_id=group, partition_assignment_strategy=strategy)
        if ottla_first
        else None
    )
    if ours is not None:
        await wait_until(lambda: len(ours.owned) == 4)
    theirs = make()
    stop = asyncio.Event()

    async def keep_polling():
        while not stop.is_set():
            await asyncio.to_thread(poll, theirs)

    polling = asyncio.create_task(keep_polling())
    if ours is None:
        await wait_until(lambda: len(assigned(theirs)) == 4)
        ours = Worker(broker.bootstrap, [topic], group_id=group, partition_assignment_strategy=strategy)
    await wait_until(lambda: len(ours.owned) == 2 and len(assigned(theirs)) == 2)
    both = sorted((partition.topic, partition.partition) for partition in (*ours.owned, *assigned(theirs)))
    stop.set()
    await polling
    await asyncio.to_thread(theirs.close)
    await wait_until(lambda: len(ours.owned) == 4)
    await ours.stop()
    assert both == [(topic, index) for index in range(4)]


@pytest.mark.parametrize("ottla_first", [True, False], ids=["ottla leads", "other leads"])
@pytest.mark.parametrize("strategy", ["range", "roundrobin", "sticky"])
async def test_group_with_kafka_python(broker, make_topic, new_name, strategy, ottla_first):
    """Either member may be the leader and must read the other's subscription."""
    from kafka import KafkaConsumer
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

    topic, group = make_topic(partitions=4), new_name()
    assignor = {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
    }[strategy]

    def make():
        theirs = KafkaConsumer(
            bootstrap_servers=broker.bootstrap,
            group_id=group,
            partition_assignment_strategy=[assignor],
            session_timeout_ms=6_000,
            heartbeat_interval_ms=200,
        )
        theirs.partitions_for_topic(topic)  # a leader without metadata of the topic would assign nothing
        theirs.subscribe([topic])
        return theirs

    await split_partitions(
        broker,
        topic,
        group,
        strategy,
        ottla_first=ottla_first,
        make=make,
        poll=lambda theirs: theirs.poll(100),
        assigned=lambda theirs: theirs.assignment() or (),
    )


@pytest.mark.parametrize("ottla_first", [True, False], ids=["ottla leads", "other leads"])
@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
async def test_group_with_librdkafka(broker, make_topic, new_name, strategy, ottla_first):
    from confluent_kafka import Consumer as Theirs

    topic, group = make_topic(partitions=4), new_name()

    def make():
        theirs = Theirs(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": group,
                "partition.assignment.strategy": strategy,
                "session.timeout.ms": 6_000,
                "heartbeat.interval.ms": 200,
            }
        )
        theirs.subscribe([topic])
        return theirs

    await split_partitions(
        broker,
        topic,
        group,
        strategy,
        ottla_first=ottla_first,
        make=make,
        poll=lambda theirs: theirs.poll(0.1),
        assigned=lambda theirs: theirs.assignment(),
    )
