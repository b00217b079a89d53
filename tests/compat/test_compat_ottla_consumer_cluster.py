"""Against three Apache Kafka nodes: closest replica, leader changes, coordinator changes."""

import time

import pytest

from bench.peers import ApacheKafka, PeerUnavailable, kafka_tool
from ottla.client import Consumer, TopicPartition

CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAA"
NODES = 3


class Node(ApacheKafka):
    """One of three nodes, in its own rack."""

    def __init__(self, number, controller_port):
        racks = {
            "broker.rack": f"rack-{number}",
            "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
        }
        copies = {
            "offsets.topic.replication.factor": "3",
            "offsets.topic.num.partitions": "3",
            "default.replication.factor": "3",
            "replica.lag.time.max.ms": "5000",
            "broker.session.timeout.ms": "3000",
            "broker.heartbeat.interval.ms": "500",
        }
        super().__init__(settings=racks | copies, heap="256m")
        self.number = number
        self.controller_port = controller_port or self._controller_port

    def properties(self):
        found = super().properties() | {
            "node.id": str(self.number),
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller_port}",
        }
        if self.number > 1:
            found |= {"process.roles": "broker", "listeners": f"PLAINTEXT://127.0.0.1:{self.port}"}
        return found

    def format(self):
        config = self.home / "server.properties"
        config.write_text("".join(f"{name}={value}\n" for name, value in self.properties().items()))
        if not (self.data_dir / "meta.properties").exists():
            kafka_tool("kafka.tools.StorageTool", "format", "--cluster-id", CLUSTER_ID, "--config", str(config))


@pytest.fixture(scope="module")
def cluster():
    try:
        first = Node(1, None)
    except PeerUnavailable as reason:
        pytest.skip(str(reason))
    nodes = [first, *(Node(number, first.controller_port) for number in range(2, NODES + 1))]
    try:
        for node in nodes:
            node.spawn()
        for node in nodes:
            wait_for(node)
        yield {node.number: node for node in nodes}
    finally:
        for node in nodes:
            node.close()


def wait_for(node):
    from bench.peers import serves_metadata

    deadline = time.monotonic() + 90
    while not serves_metadata(node.port):
        assert time.monotonic() < deadline, node.output()[-2000:]
        time.sleep(0.1)


@pytest.fixture(autouse=True)
def require_live_broker():
    """Disabled: these tests do not use the common broker."""


def bootstrap(cluster):
    return ",".join(node.bootstrap for node in cluster.values())


def make_topic(cluster, name, leaders):
    """Create a partition per leader, with the other nodes as followers."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap(cluster)})
    deadline = time.monotonic() + 30
    while len(admin.list_topics(timeout=10).brokers) < NODES:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    replicas = [[leader, *(number for number in cluster if number != leader)] for leader in leaders]
    admin.create_topics([NewTopic(name, len(leaders), replica_assignment=replicas)])[name].result(30)


def fill(cluster, topic, partitions, numbers):
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap(cluster), "acks": "all"})
    for number in numbers:
        for partition in range(partitions):
            producer.produce(topic, b"%d" % number, partition=partition)
    assert producer.flush(60) == 0


def take(consumer, count, seconds=60):
    found, deadline = [], time.monotonic() + seconds
    while len(found) < count and time.monotonic() < deadline:
        found += consumer.poll(1)
    return [(record.partition, int(record.value)) for record in found]


def states(consumer):
    return dict(consumer._engine.positions.states)


def test_closest_replica_is_read(cluster):
    """The consumer reads from the follower in its rack, and from the leader once that follower stops."""
    make_topic(cluster, "near", [1])
    fill(cluster, "near", 1, range(50))
    partition = TopicPartition("near", 0)
    with Consumer(
        bootstrap_servers=bootstrap(cluster),
        client_rack="rack-3",
        auto_offset_reset="earliest",
        request_timeout_ms=3000,
    ) as consumer:
        consumer.assign([partition])
        assert take(consumer, 50) == [(0, number) for number in range(50)]
        assert states(consumer)[partition].replica == 3
        fill(cluster, "near", 1, range(50, 60))
        assert take(consumer, 10) == [(0, number) for number in range(50, 60)]
        cluster[3].kill()
        fill(cluster, "near", 1, range(60, 70))
        assert take(consumer, 10) == [(0, number) for number in range(60, 70)]
        assert states(consumer)[partition].replica == -1
        cluster[3].start()


def test_leader_and_coordinator_failover(cluster):
    """A leader, possibly also the coordinator, crashes: everything is read once, from committed positions."""
    make_topic(cluster, "moving", [2, 3, 1])
    fill(cluster, "moving", 3, range(100))
    configs = {
        "bootstrap_servers": bootstrap(cluster),
        "group_id": "movers",
        "auto_offset_reset": "earliest",
        "request_timeout_ms": 3000,
        "heartbeat_interval_ms": 300,
    }
    with Consumer(**configs) as consumer:
        consumer.subscribe(["moving"])
        first = take(consumer, 300)
        assert sorted(first) == [(partition, number) for partition in range(3) for number in range(100)]
        epochs = {partition: state.leader_epoch for partition, state in states(consumer).items()}
        cluster[2].kill()
        fill(cluster, "moving", 3, range(100, 150))
        second = take(consumer, 150)
        assert sorted(second) == [(partition, number) for partition in range(3) for number in range(100, 150)]
        moved = states(consumer)[TopicPartition("moving", 0)]
        assert moved.leader_epoch > epochs[TopicPartition("moving", 0)]
        consumer.commit()
        cluster[2].start()
    with Consumer(**configs) as consumer:
        consumer.subscribe(["moving"])
        assert consumer.poll(3) == []
        assert sorted(each.offset for each in consumer.committed().values()) == [150, 150, 150]
