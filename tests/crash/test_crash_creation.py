"""`kill -9` while topics are made, grown and removed: what was answered holds, what was not is there whole or not at all."""

import random
import threading
from itertools import count

from bench.peers import BrokerProcess
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.metadata import MetadataRequest
from tests.compat.raw import Closed, RawConnection, Silent
from tests.crash.conftest import StartBroker
from tests.crash.load import end_offset
from tests.crash.test_crash_under_load import ROUNDS, address, wait_for

CREATION_ROUNDS = min(ROUNDS, 8)


class Maker:
    """Makes topics with one, two or three partitions, grows every third and removes every fourth; keeps book of both."""

    def __init__(self) -> None:
        self.partitions: dict[str, int] = {}
        self.unknown: dict[str, tuple[int, ...]] = {}
        self.answers = 0
        self.failure: BaseException | None = None
        self._numbers = count()

    def run(self, broker: BrokerProcess) -> None:
        try:
            with RawConnection(address(broker)) as connection:
                while True:
                    self._make_one(connection, next(self._numbers))
        except (Closed, Silent, ConnectionError):
            return
        except BaseException as error:
            self.failure = error

    def _make_one(self, connection: RawConnection, number: int) -> None:
        name, size = f"made-{number}", 1 + number % 3
        settings = [CreatableTopicConfig(name="retention.ms", value=str(number + 1))]
        topic = CreatableTopic(name=name, num_partitions=size, replication_factor=1, configs=settings)
        self.unknown[name] = (0, size)
        created = connection.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 5).topics[0]
        self._note(name, size, created.error_code)
        if number % 3 == 0:
            self.unknown[name] = (size, size + 2)
            grown = CreatePartitionsTopic(name=name, count=size + 2, assignments=None)
            request = CreatePartitionsRequest(topics=[grown], timeout_ms=10_000)
            self._note(name, size + 2, connection.ask(request, 1).results[0].error_code)
        if number % 4 == 0:
            self.unknown[name] = (0, self.partitions[name])
            removed = connection.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=10_000), 5).responses[0]
            self._note(name, 0, removed.error_code)

    def _note(self, name: str, size: int, error_code: int) -> None:
        assert error_code == 0, (name, size, error_code)
        self.partitions[name] = size
        del self.unknown[name]
        self.answers += 1


def topics_of(broker: BrokerProcess) -> dict[str, int]:
    with RawConnection(address(broker)) as connection:
        answer = connection.ask(MetadataRequest(topics=None), 9)
    return {topic.name: len(topic.partitions) for topic in answer.topics if topic.name.startswith("made-")}


def test_topics_survive_kill_9(start_broker: StartBroker) -> None:
    broker = start_broker()
    maker = Maker()
    chosen = random.Random(3)
    for _ in range(CREATION_ROUNDS):
        thread = threading.Thread(target=maker.run, args=(broker,), daemon=True)
        goal = maker.answers + chosen.randrange(3, 25)
        thread.start()
        wait_for(lambda goal=goal: maker.answers >= goal or maker.failure is not None)
        broker.kill()
        thread.join(30)
        assert maker.failure is None, maker.failure
        broker.start()
        check_topics(broker, maker)


def check_topics(broker: BrokerProcess, maker: Maker) -> None:
    """All that was answered; each of the rest in one of its two states, which from now on is known."""
    expected = {name: size for name, size in maker.partitions.items() if size and name not in maker.unknown}

    def settled() -> bool:  # Kafka's broker serves before it has read all of its metadata
        return expected.items() <= topics_of(broker).items()

    wait_for(settled)
    found = topics_of(broker)
    for name, states in maker.unknown.items():
        assert found.get(name, 0) in states, f"{name} has {found.get(name, 0)} partitions, not one of {states}"
        maker.partitions[name] = found.get(name, 0)
    maker.unknown.clear()
    assert found == {name: size for name, size in maker.partitions.items() if size}
    with RawConnection(address(broker)) as connection:

        def is_led(name: str, partition: int) -> bool:
            try:
                return end_offset(connection, name, partition) == 0
            except AssertionError:
                return False

        for name, size in found.items():
            for partition in range(size):
                wait_for(lambda name=name, partition=partition: is_led(name, partition))
    # Those of topics that are going, or that nobody knows, are set aside under a longer name, as Kafka sets them aside.
    directories = {
        path.name for path in broker.data_dir.glob("made-*") if not path.name.endswith(("-delete", "-stray"))
    }
    assert directories == {f"{name}-{partition}" for name, size in found.items() for partition in range(size)}
