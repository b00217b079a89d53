"""Groups of real consumers: members join, leave, crash and restart; partitions have one owner, and committed offsets
are kept.
"""

import itertools
import secrets
import signal
import threading
from collections.abc import Callable, Iterator

import pytest

from bench.peers import OttlaProcess
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tests.compat.clients import programs
from tests.compat.clients.base import CODECS, Client
from tests.compat.clients.confluent_client import ConfluentClient
from tests.compat.clients.jvm import Jvm
from tests.compat.conftest import create_topic
from tests.compat.member_processes import MemberProcesses
from tests.compat.raw import RawConnection
from tests.compat.record import Sent, contents_corpus

PARTITIONS = 6
GROUP_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
PAIRS = [
    ("confluent-kafka", "range"),
    ("confluent-kafka", "roundrobin"),
    ("confluent-kafka", "cooperative-sticky"),
    ("kafka-python", "range"),
    ("kafka-python", "roundrobin"),
    ("kafka-python", "sticky"),
    ("kafka-python", "cooperative-sticky"),
    ("aiokafka", "range"),
    ("aiokafka", "roundrobin"),
    ("aiokafka", "sticky"),
    ("kcat", "range"),
    ("kcat", "roundrobin"),
    ("java", "range"),
    ("java", "roundrobin"),
    ("java", "sticky"),
    ("java", "cooperative-sticky"),
    ("kafkajs", "roundrobin"),
    ("franz-go", "range"),
    ("franz-go", "roundrobin"),
    ("franz-go", "sticky"),
    ("franz-go", "cooperative-sticky"),
]
LOADING = (14, 16)
STATIC_CLIENTS = ["confluent-kafka", "kafka-python", "aiokafka", "java", "franz-go"]


@pytest.fixture(scope="module")
def groups_broker() -> Iterator[OttlaProcess]:
    """A broker that allows short sessions, so that crashed members are detected quickly."""
    with OttlaProcess(
        settings={"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "1000"}
    ) as process:
        yield process


class Topic:
    """A topic with its end offsets and the group's committed offsets."""

    def __init__(self, broker: OttlaProcess) -> None:
        self.bootstrap = broker.bootstrap
        self.name, self.group = f"groups-{secrets.token_hex(4)}", f"g-{secrets.token_hex(4)}"
        self.ends = dict.fromkeys(range(PARTITIONS), 0)
        create_topic(self.bootstrap, self.name, PARTITIONS, {})
        host, _, port = self.bootstrap.rpartition(":")
        self.address = host, int(port)

    def produce(self, count: int = 10) -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.bootstrap})
        for partition, number in itertools.product(self.ends, range(count)):
            producer.produce(self.name, b"%d" % number, partition=partition)
        assert producer.flush(20) == 0
        self.ends = {partition: end + count for partition, end in self.ends.items()}

    def committed(self) -> dict[int, int]:
        """Return the committed offsets, once the coordinator is loaded."""
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=self.group, topics=None)])
        with RawConnection(self.address) as connection:
            response = connection.call(request, 8)
            while response.groups[0].error_code in LOADING:
                response = connection.call(request, 8)
        assert response.groups[0].error_code == 0, response
        return {
            found.partition_index: found.committed_offset
            for topic in response.groups[0].topics
            for found in topic.partitions
        }


class OffsetWatcher:
    """Polls the committed offsets: none may decrease."""

    def __init__(self, topic: Topic) -> None:
        self._topic = topic
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._poll)
        self.faults: list[str] = []

    def __enter__(self) -> "OffsetWatcher":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _poll(self) -> None:
        before: dict[int, int] = {}
        while not self._ended.wait(0.02):
            now = self._topic.committed()
            self.faults += [
                f"{partition}: {offset}, then {now.get(partition)}"
                for partition, offset in before.items()
                if now.get(partition, -1) < offset
            ]
            before = now


def skip_if_missing(client: str, get_client: Callable[[str], Client]) -> None:
    if client not in programs.PROGRAMS:
        get_client(client)  # skips if missing
        return
    reason = programs.missing(client)
    if reason:
        pytest.skip(reason)


@pytest.fixture
def topic(groups_broker: OttlaProcess) -> Topic:
    return Topic(groups_broker)


@pytest.fixture
def start_group(topic: Topic, get_client: Callable[[str], Client]) -> Iterator[Callable[[str, str], MemberProcesses]]:
    created: list[MemberProcesses] = []

    def make(client: str, assignor: str) -> MemberProcesses:
        skip_if_missing(client, get_client)
        created.append(MemberProcesses(client, topic.bootstrap, topic.group, topic.name, assignor, PARTITIONS))
        return created[-1]

    yield make
    for group in created:
        group.kill_all()


@pytest.mark.parametrize(("client", "assignor"), PAIRS)
def test_group_survives_joins_crashes_and_leaves(
    topic: Topic, start_group: Callable[[str, str], MemberProcesses], client: str, assignor: str
) -> None:
    """Two members; one is killed, a new one joins, the other leaves: all records are read and committed."""
    group = start_group(client, assignor)
    topic.produce()
    with OffsetWatcher(topic) as watch:
        group.start("a", "b")
        group.wait_until_assigned()
        group.wait_until_read(topic.ends)
        group.kill("a")
        topic.produce()
        group.wait_until_assigned()
        group.wait_until_read(topic.ends)
        group.start("c")
        group.wait_until_assigned()
        group.leave("b")
        topic.produce()
        group.wait_until_assigned()
        group.wait_until_read(topic.ends)
        # A commit during the last rebalance is rejected, and Kafka's VerifiableConsumer does not repeat it: read and
        # commit once more in the stable group.
        topic.produce()
        group.wait_until_read(topic.ends)
        group.wait(lambda: topic.committed() == topic.ends, "all is committed")
    assert watch.faults == []


@pytest.mark.parametrize("client", STATIC_CLIENTS)
def test_static_member_restarts_without_a_rebalance(
    topic: Topic, start_group: Callable[[str, str], MemberProcesses], client: str
) -> None:
    """It gets its partitions back, and the others keep theirs."""
    group = start_group(client, "range")
    topic.produce()
    group.start("a", "b", instances=True)
    group.wait_until_assigned()
    group.wait_until_read(topic.ends)
    group.wait(lambda: topic.committed() == topic.ends, "all is committed")
    other, owned = group.members["b"], group.members["a"].owned
    comparable = other.assignments
    group.kill("a")
    group.start("a", instances=True)
    group.wait_until_assigned()
    topic.produce()
    group.wait_until_read(topic.ends)
    assert group.members["a"].owned == owned
    assert other.assignments == comparable


@pytest.mark.parametrize(
    ("client", "assignor"),
    [
        ("confluent-kafka", "range"),
        ("aiokafka", "range"),
        ("kafkajs", "roundrobin"),
        ("franz-go", "cooperative-sticky"),
    ],
)
def test_suspended_member_rejoins(
    topic: Topic, start_group: Callable[[str, str], MemberProcesses], client: str, assignor: str
) -> None:
    """The other member takes its partitions; its stale state causes no errors."""
    group = start_group(client, assignor)
    topic.produce()
    with OffsetWatcher(topic) as watch:
        group.start("a", "b")
        group.wait_until_assigned()
        group.wait_until_read(topic.ends)
        group.members["a"].process.send_signal(signal.SIGSTOP)
        topic.produce()
        group.wait(lambda: group.members["b"].owned == list(range(PARTITIONS)), "the other has everything")
        group.wait(lambda: topic.committed() == topic.ends, "all is committed")
        group.members["a"].process.send_signal(signal.SIGCONT)
        group.wait_until_assigned()
        topic.produce()
        group.wait_until_read(topic.ends)
        group.wait(lambda: topic.committed() == topic.ends, "all is committed")
    assert watch.faults == []


@pytest.mark.parametrize(
    ("client", "assignor"),
    [
        ("confluent-kafka", "cooperative-sticky"),
        ("kafkajs", "roundrobin"),
        ("franz-go", "cooperative-sticky"),
        ("franz-go", "sticky"),
    ],
)
def test_rolling_restart_of_members(
    topic: Topic, start_group: Callable[[str, str], MemberProcesses], client: str, assignor: str
) -> None:
    """Three members are replaced one after another during production."""
    group = start_group(client, assignor)
    with OffsetWatcher(topic) as watch:
        group.start("a", "b", "c")
        group.wait_until_assigned()
        for old, new in (("a", "d"), ("b", "e"), ("c", "f")):
            topic.produce(5)
            group.leave(old)
            group.start(new)
            group.wait_until_assigned()
        topic.produce(5)
        group.wait_until_read(topic.ends)
        group.wait(lambda: topic.committed() == topic.ends, "all is committed")
    assert watch.faults == []


@pytest.mark.parametrize(
    ("client", "codec"), [("kafkajs", "none"), ("kafkajs", "gzip"), *(("franz-go", codec) for codec in CODECS)]
)
def test_records_from_other_languages_are_read(
    topic: Topic, get_client: Callable[[str], Client], client: str, codec: str
) -> None:
    """All types of records are read by a client that the other tests verify."""
    skip_if_missing(client, get_client)

    def comparable(record: Sent) -> tuple[object, ...]:
        return record.partition, record.key, record.value, record.headers

    sent = [record for record in contents_corpus(2) if client != "kafkajs" or is_for_kafkajs(record)]
    assert programs.produce(client, topic.bootstrap, topic.name, sent, codec) == {0: 0, 1: 0}
    ends = {partition: len(sent) // 2 for partition in range(2)}
    found = ConfluentClient().consume(topic.bootstrap, topic.name, dict.fromkeys(ends, 0), ends)
    in_order = sorted(found, key=lambda read: (read.partition, read.offset))
    assert [comparable(read.contents()) for read in in_order] == [comparable(record) for record in sent]


def is_for_kafkajs(record: Sent) -> bool:
    """kafkajs headers are an object: no duplicate names and no nulls."""
    return len({name for name, _ in record.headers}) == len(record.headers) and all(
        value is not None for _, value in record.headers
    )


@pytest.mark.parametrize(
    ("client", "assignor"),
    [
        ("confluent-kafka", "range"),
        ("kafkajs", "roundrobin"),
        ("franz-go", "cooperative-sticky"),
    ],
)
def test_group_survives_a_broker_crash(get_client: Callable[[str], Client], client: str, assignor: str) -> None:
    """Members survive a broker crash: committed offsets are kept and they continue."""
    skip_if_missing(client, get_client)
    with OttlaProcess(
        settings={"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "1000"}
    ) as broker:
        topic = Topic(broker)
        group = MemberProcesses(client, topic.bootstrap, topic.group, topic.name, assignor, PARTITIONS)
        try:
            topic.produce()
            group.start("a", "b")
            group.wait_until_assigned()
            group.wait_until_read(topic.ends)
            group.wait(lambda: topic.committed() == topic.ends, "all is committed")
            for _ in range(2):
                broker.kill()
                broker.start()
                assert topic.committed() == topic.ends
                topic.produce()
                group.wait_until_assigned()
                group.wait_until_read(topic.ends)
                group.wait(lambda: topic.committed() == topic.ends, "all is committed")
        finally:
            group.kill_all()


def test_kafka_consumer_groups(
    topic: Topic, start_group: Callable[[str, str], MemberProcesses], java_tools: Jvm
) -> None:
    """List, describe, reset, delete offsets and delete with Kafka's tool."""

    def run(*arguments: str) -> str:
        done = java_tools.tool(GROUP_TOOL, "--bootstrap-server", topic.bootstrap, *arguments)
        assert done.status == 0, done
        return done.out

    group = start_group("confluent-kafka", "range")
    topic.produce()
    group.start("a")
    group.wait_until_assigned()
    group.wait(lambda: topic.committed() == topic.ends, "all is committed")
    assert topic.group in run("--list").split()
    assert f"{topic.group}" in run("--list", "--state", "stable")
    described = run("--describe", "--group", topic.group)
    rows = [line.split() for line in described.splitlines() if line.startswith(topic.group)]
    assert sorted((int(row[2]), row[3], row[4], row[5]) for row in rows) == [
        (index, "10", "10", "0") for index in range(PARTITIONS)
    ]
    assert "rdkafka" in run("--describe", "--group", topic.group, "--members", "--verbose")
    assert "Stable" in run("--describe", "--group", topic.group, "--state")
    group.leave("a")
    arguments = ("--group", topic.group, "--topic", topic.name, "--to-earliest")
    assert "Empty" in run("--describe", "--group", topic.group, "--state")
    run("--reset-offsets", *arguments, "--execute")
    assert topic.committed() == dict.fromkeys(range(PARTITIONS), 0)
    run("--reset-offsets", "--group", topic.group, "--topic", f"{topic.name}:1", "--shift-by", "4", "--execute")
    assert topic.committed()[1] == 4
    run("--delete-offsets", "--group", topic.group, "--topic", f"{topic.name}:2")
    assert sorted(topic.committed()) == [0, 1, 3, 4, 5]
    assert "successful" in run("--delete", "--group", topic.group)
    assert topic.group not in run("--list").split()


def test_kafka_decodes_group_records(
    groups_broker: OttlaProcess, topic: Topic, start_group: Callable[[str, str], MemberProcesses], java_tools: Jvm
) -> None:
    """Kafka's decoder reads every record of a group with a member and offsets, up to its deletion."""
    group = start_group("confluent-kafka", "range")
    topic.produce()
    group.start("a")
    group.wait_until_assigned()
    group.wait(lambda: topic.committed() == topic.ends, "all is committed")
    group.leave("a")
    with RawConnection(topic.address) as connection:
        assert connection.call(DeleteGroupsRequest(groups_names=[topic.group]), 2).results[0].error_code == 0
    files = sorted(
        str(file) for file in groups_broker.data_dir.glob("__consumer_offsets-*/*.log") if file.stat().st_size
    )
    done = java_tools.tool("org.apache.kafka.tools.DumpLogSegments", "--offsets-decoder", "--files", ",".join(files))
    assert (done.status, done.err) == (0, ""), done
    lines = [line for line in done.lines() if topic.group in line]
    assert not [line for line in lines if "Error" in line or "isvalid: false" in line]
    offsets = [line for line in lines if '"type":1' in line or '"type":"1"' in line]
    groups = [line for line in lines if line not in offsets]
    assert sum('"offset":10' in line for line in offsets) >= PARTITIONS, lines[:5]
    assert sum('payload: {"version"' not in line for line in offsets) == PARTITIONS, offsets[-8:]  # tombstones
    assert any('"protocol":"range"' in line for line in groups), groups


def test_console_consumer_and_performance_with_a_group(topic: Topic, java_tools: Jvm) -> None:
    """Kafka's console tools, each with its own group."""
    topic.produce()
    where = ("--bootstrap-server", topic.bootstrap, "--topic", topic.name)
    consumed = java_tools.tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *where,
        "--group",
        topic.group,
        "--from-beginning",
        "--max-messages",
        "60",
        "--timeout-ms",
        "20000",
    )
    assert consumed.status == 0, consumed
    assert sorted(consumed.out.split()) == sorted(str(number) for number in range(10) for _ in range(PARTITIONS))
    assert topic.committed() == topic.ends
    measured = java_tools.tool(
        "org.apache.kafka.tools.ConsumerPerformance",
        *where,
        "--group",
        f"{topic.group}-perf",
        "--messages",
        "60",
        "--timeout",
        "20000",
    )
    assert measured.status == 0, measured
    assert ", 60, " in measured.out
