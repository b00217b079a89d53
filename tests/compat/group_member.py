"""A group member as a process, so that it can be killed. It reports what it owns and reads, and commits what it
reported.

    python -m tests.compat.group_member CLIENT BOOTSTRAP GROUP TOPIC ASSIGNOR [INSTANCE]

It prints one JSON value per line: {"owns": [0, 1]} after a change, {"read": [partition, offset, offset, ...]} before a
commit, {"committed": true} after it. It leaves the group when stdin closes.
"""

import asyncio
import json
import sys
import threading
from typing import Any

SESSION_MS = 2000
STATIC_SESSION_MS = 30_000
"""Session timeout of static members: longer than any client's restart."""
HEARTBEAT_MS = 300


def emit(**event: Any) -> None:
    print(json.dumps(event), flush=True)


def stdin_closed() -> threading.Event:
    """Return an event that is set when stdin is closed."""
    ended = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    return ended


def session_ms(instance: str | None) -> int:
    return STATIC_SESSION_MS if instance else SESSION_MS


def run_confluent(bootstrap: str, group: str, topic: str, assignor: str, instance: str | None) -> None:
    from confluent_kafka import Consumer, KafkaError, KafkaException

    config = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "session.timeout.ms": session_ms(instance),
        "heartbeat.interval.ms": HEARTBEAT_MS,
        "partition.assignment.strategy": assignor,
    }
    if instance:
        config["group.instance.id"] = instance
    expected = (
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError._NO_OFFSET,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.NOT_COORDINATOR,
        KafkaError._TRANSPORT,
        KafkaError._WAIT_COORD,
        KafkaError._TIMED_OUT,
        KafkaError._ASSIGNMENT_LOST,
    )
    consumer, ended = Consumer(config), stdin_closed()
    consumer.subscribe([topic])
    owned: list[int] | None = None
    while not ended.is_set():
        records = [record for record in consumer.consume(100, 0.1) if record.error() is None]
        for record in records:
            emit(read=[record.partition(), record.offset()])
        if records:
            try:
                consumer.commit(asynchronous=False)
                emit(committed=True)
            except KafkaException as error:
                if error.args[0].code() not in expected:
                    raise
                emit(rejected=repr(error))
        now = sorted(found.partition for found in consumer.assignment())
        if now != owned:
            owned = now
            emit(owns=owned)
    consumer.close()


def run_kafka_python(bootstrap: str, group: str, topic: str, assignor: str, instance: str | None) -> None:
    from kafka import KafkaConsumer
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from kafka.errors import CommitFailedError, KafkaError

    assignors = {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
        "cooperative-sticky": CooperativeStickyAssignor,
    }
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        group_instance_id=instance,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=session_ms(instance),
        heartbeat_interval_ms=HEARTBEAT_MS,
        metadata_max_age_ms=1000,
        partition_assignment_strategy=[assignors[assignor]],
    )
    ended, owned = stdin_closed(), None
    while not ended.is_set():
        # kafka-python 3.0 loses a rebalance that ends after a timed-out poll: it has no partitions and does not rejoin.
        found = consumer.poll(2000)
        for partition, records in found.items():
            emit(read=[partition.partition, *(record.offset for record in records)])
        if found:
            try:
                consumer.commit()
                emit(committed=True)
            except (CommitFailedError, KafkaError) as error:
                emit(rejected=repr(error))
        now = sorted(owned_partition.partition for owned_partition in consumer.assignment())
        if now != owned:
            owned = now
            emit(owns=owned)
    consumer.close()


def run_aiokafka(bootstrap: str, group: str, topic: str, assignor: str, instance: str | None) -> None:
    from aiokafka import AIOKafkaConsumer
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from aiokafka.errors import CommitFailedError, IllegalStateError

    assignors = {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
    }

    async def run() -> None:
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            group_instance_id=instance,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=session_ms(instance),
            heartbeat_interval_ms=HEARTBEAT_MS,
            metadata_max_age_ms=1000,
            partition_assignment_strategy=[assignors[assignor]],
        )
        ended, owned = stdin_closed(), None
        await consumer.start()
        while not ended.is_set():
            found = await consumer.getmany(timeout_ms=100)
            for partition, records in found.items():
                emit(read=[partition.partition, *(record.offset for record in records)])
            if found:
                try:
                    await consumer.commit()
                    emit(committed=True)
                except (CommitFailedError, IllegalStateError) as error:
                    emit(rejected=repr(error))
            now = sorted(owned_partition.partition for owned_partition in consumer.assignment())
            if now != owned:
                owned = now
                emit(owns=owned)
        await consumer.stop()

    asyncio.run(run())


RUNS = {"confluent-kafka": run_confluent, "kafka-python": run_kafka_python, "aiokafka": run_aiokafka}

if __name__ == "__main__":
    client, bootstrap, group, topic, assignor, *rest = sys.argv[1:]
    RUNS[client](bootstrap, group, topic, assignor, rest[0] if rest else None)
