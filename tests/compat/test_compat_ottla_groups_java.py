"""Groups of `ottla.client` and Java's consumer, with either as the leader."""

import asyncio
import subprocess
import time

import pytest

from bench.peers import kafka_tool_command
from ottla.client import AsyncConsumer, TopicPartition

JOIN_GROUP = 11
PARTITIONS = 4
QUICK = {
    "heartbeat_interval_ms": 200,
    "session_timeout_ms": 6_000,
    "auto_offset_reset": "earliest",
    "fetch_max_wait_ms": 100,
}
CLASSES = {"range": "Range", "roundrobin": "RoundRobin", "sticky": "Sticky", "cooperative-sticky": "CooperativeSticky"}


@pytest.fixture(autouse=True)
def require_groups(api_keys, java_tools):
    if JOIN_GROUP not in api_keys:
        pytest.skip("the broker has no groups")


class JavaMember:
    """Kafka's console consumer, printing partition and value of each record."""

    def __init__(self, broker, topic, group, strategy, path):
        config = path / "consumer.properties"
        name = f"org.apache.kafka.clients.consumer.{CLASSES[strategy]}Assignor"
        config.write_text(
            f"partition.assignment.strategy={name}\nheartbeat.interval.ms=200\nsession.timeout.ms=6000\n"
            "auto.offset.reset=earliest\nenable.auto.commit=false\n"
        )
        self.path = path / "printed"
        command = kafka_tool_command(
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            "--bootstrap-server",
            broker.bootstrap,
            "--topic",
            topic,
            "--group",
            group,
            "--command-config",
            str(config),
            "--formatter-property",
            "print.partition=true",
        )
        with self.path.open("wb") as printed:
            self.process = subprocess.Popen(
                command, stdout=printed, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
            )

    def seen(self):
        """Return the printed partitions and values."""
        lines = [line for line in self.path.read_text().split("\n")[:-1] if line.startswith("Partition:")]
        return [(int(line.split("\t")[0].removeprefix("Partition:")), line.split("\t")[1]) for line in lines]

    def stop(self):
        self.process.terminate()
        self.process.wait(20)


def fill(broker, topic, value):
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for partition in range(PARTITIONS):
        producer.produce(topic, value.encode(), partition=partition)
    assert producer.flush(30) == 0


async def wait_until(condition, seconds=40):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "condition not met in time"
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("ottla_first", [True, False], ids=["ottla leads", "java leads"])
@pytest.mark.parametrize("strategy", list(CLASSES))
async def test_group_with_java(broker, make_topic, new_name, tmp_path, strategy, ottla_first):
    """Each owns half of the partitions and reads their records; in the end Ottla's consumer owns all."""
    topic, group = make_topic(partitions=PARTITIONS), new_name()
    ours = AsyncConsumer(
        bootstrap_servers=broker.bootstrap, group_id=group, partition_assignment_strategy=strategy, **QUICK
    )
    seen = []

    async def run():
        while True:
            seen.extend((record.partition, record.value.decode()) for record in await ours.poll(0.1))

    def start():
        ours.subscribe([topic])
        return asyncio.create_task(run())

    task = start() if ottla_first else None
    if ottla_first:
        await wait_until(lambda: len(ours.assignment) == PARTITIONS)
    java = JavaMember(broker, topic, group, strategy, tmp_path)
    try:
        if task is None:
            fill(broker, topic, "first")
            await wait_until(lambda: len(java.seen()) == PARTITIONS)
            task = start()
        await wait_until(lambda: len(ours.assignment) == PARTITIONS // 2)
        mine = [partition.partition for partition in ours.assignment]
        fill(broker, topic, "second")
        await wait_until(lambda: sum(value == "second" for _, value in seen + java.seen()) == PARTITIONS)
        assert sorted(partition for partition, value in seen if value == "second") == sorted(mine)
        assert sorted(partition for partition, value in java.seen() if value == "second") == sorted(
            set(range(PARTITIONS)) - set(mine)
        )
    finally:
        await asyncio.to_thread(java.stop)
    await wait_until(lambda: sorted(ours.assignment) == [TopicPartition(topic, index) for index in range(PARTITIONS)])
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await ours.close()
