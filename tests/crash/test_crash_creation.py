"""`kill -9` while topics are created, grown and deleted: acknowledged changes hold, others are complete or absent."""

import random
import threading
from itertools import count

from bench.peers import BrokerProcess
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.metadata import MetadataRequest
from tests.compat.raw import ConnectionClosed, RawConnection, ResponseTimeout
from tests.crash.conftest import StartBroker
from tests.crash.load import end_offset
from tests.crash.test_crash_under_load import ROUNDS, address, wait_for

CREATION_ROUNDS = min(ROUNDS, 8)


class TopicCreator:
    """Creates topics with one to three partitions, grows every third, deletes every fourth, and records the results."""

    def __init__(self) -> None:
        self.partitions: dict[str, int] = {}
        self.unknown: dict[str, tuple[int, ...]] = {}
        self.responses = 0
        self.failure: BaseException | None = None
        self._numbers = count()

    def run(self, broker: BrokerProcess) -> None:
        try:
            with RawConnection(address(broker)) as connection:
                while True:
                    self._create_one(connection, next(self._numbers))
        except (ConnectionClosed, ResponseTimeout, ConnectionError):
            return
        except BaseException as error:
            self.failure = error

    def _create_one(self, connection: RawConnection, number: int) -> None:
        name, size = f"created-{number}", 1 + number % 3
        settings = [CreatableTopicConfig(name="retention.ms", value=str(number + 1))]
        topic = CreatableTopic(name=name, num_partitions=size, replication_factor=1, configs=settings)
        self.unknown[name] = (0, size)
        created = connection.call(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 5).topics[0]
        self._record(name, size, created.error_code)
        if number % 3 == 0:
            self.unknown[name] = (size, size + 2)
            grown = CreatePartitionsTopic(name=name, count=size + 2, assignments=None)
            request = CreatePartitionsRequest(topics=[grown], timeout_ms=10_000)
            self._record(name, size + 2, connection.call(request, 1).results[0].error_code)
        if number % 4 == 0:
            self.unknown[name] = (0, self.partitions[name])
            removed = connection.call(DeleteTopicsRequest(topic_names=[name], timeout_ms=10_000), 5).responses[0]
            self._record(name, 0, removed.error_code)

    def _record(self, name: str, size: int, error_code: int) -> None:
        assert error_code == 0, (name, size, error_code)
        self.partitions[name] = size
        del self.unknown[name]
        self.responses += 1


def topics_of(broker: BrokerProcess) -> dict[str, int]:
    with RawConnection(address(broker)) as connection:
        response = connection.call(MetadataRequest(topics=None), 9)
    return {topic.name: len(topic.partitions) for topic in response.topics if topic.name.startswith("created-")}


def test_topics_survive_kill_9(start_broker: StartBroker) -> None:
    broker = start_broker()
    creator = TopicCreator()
    chosen = random.Random(3)
    for _ in range(CREATION_ROUNDS):
        thread = threading.Thread(target=creator.run, args=(broker,), daemon=True)
        goal = creator.responses + chosen.randrange(3, 25)
        thread.start()
        wait_for(lambda goal=goal: creator.responses >= goal or creator.failure is not None)
        broker.kill()
        thread.join(30)
        assert creator.failure is None, creator.failure
        broker.start()
        check_topics(broker, creator)


def check_topics(broker: BrokerProcess, creator: TopicCreator) -> None:
    """Check that acknowledged changes hold. Others may have either result, which is recorded."""
    expected = {name: size for name, size in creator.partitions.items() if size and name not in creator.unknown}

    def has_converged() -> bool:  # Kafka's broker accepts connections before it has read all metadata
        return expected.items() <= topics_of(broker).items()

    wait_for(has_converged)
    found = topics_of(broker)
    for name, states in creator.unknown.items():
        assert found.get(name, 0) in states, f"{name} has {found.get(name, 0)} partitions, not one of {states}"
        creator.partitions[name] = found.get(name, 0)
    creator.unknown.clear()
    assert found == {name: size for name, size in creator.partitions.items() if size}
    with RawConnection(address(broker)) as connection:

        def is_led(name: str, partition: int) -> bool:
            try:
                return end_offset(connection, name, partition) == 0
            except AssertionError:
                return False

        for name, size in found.items():
            for partition in range(size):
                wait_for(lambda name=name, partition=partition: is_led(name, partition))
    # Directories of deleted and unknown topics are renamed with a suffix, as in Kafka.
    directories = {
        path.name for path in broker.data_dir.glob("created-*") if not path.name.endswith(("-delete", "-stray"))
    }
    assert directories == {f"{name}-{partition}" for name, size in found.items() for partition in range(size)}
