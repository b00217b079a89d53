"""Topics that the cluster keeps its own state in: which configs they get, and their making when they are first needed."""

import asyncio
import logging
from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode
from ottla.metadata.configs import ConfigValue, broker_value
from ottla.metadata.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from ottla.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

if TYPE_CHECKING:
    from ottla.runtime.broker import Broker

log = logging.getLogger("ottla.coordinators")

CREATION_TIMEOUT_MS = 30_000


def internal_topic(broker: "Broker", name: str) -> CreatableTopic | None:
    """How an internal topic is to be created; None for any other name."""
    if name == OFFSETS_TOPIC:
        return CreatableTopic(
            name=name,
            num_partitions=_number(broker, "offsets.topic.num.partitions"),
            replication_factor=_replication_factor(broker, "offsets.topic.replication.factor"),
            configs=_configs(
                ("compression.type", "producer"),
                ("cleanup.policy", "compact"),
                ("segment.bytes", str(_number(broker, "offsets.topic.segment.bytes"))),
            ),
        )
    if name == TRANSACTIONS_TOPIC:
        return CreatableTopic(
            name=name,
            num_partitions=_number(broker, "transaction.state.log.num.partitions"),
            replication_factor=_replication_factor(broker, "transaction.state.log.replication.factor"),
            configs=_configs(
                ("unclean.leader.election.enable", "false"),
                ("compression.type", "uncompressed"),
                ("cleanup.policy", "compact"),
                ("min.insync.replicas", str(_number(broker, "transaction.state.log.min.isr"))),
                ("segment.bytes", str(_number(broker, "transaction.state.log.segment.bytes"))),
            ),
        )
    return None


def _replication_factor(broker: "Broker", name: str) -> int:
    """Kafka's default of 3 leaves a single node without groups until somebody sets it: where nobody has, as many as there are will do."""
    wanted = _number(broker, name)
    if name in broker.configs():
        return wanted
    alive = sum(registration.active for registration in broker.image.brokers.values())
    return max(1, min(wanted, alive))


def _configs(*entries: tuple[str, str]) -> list[CreatableTopicConfig]:
    return [CreatableTopicConfig(name, value) for name, value in entries]


def _number(broker: "Broker", name: str) -> int:
    value: ConfigValue = broker_value(name, broker.configs())
    assert isinstance(value, int), name
    return value


class InternalTopics:
    """Makes each of them once, however many ask for it at the same time."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._making: dict[str, asyncio.Task[ErrorCode]] = {}
        self._said: dict[str, ErrorCode] = {}

    def make(self, name: str) -> "asyncio.Task[ErrorCode]":
        """Done when the topic is there, or when it is known why it cannot be."""
        task = self._making.get(name)
        if task is None:
            task = self._making[name] = self._broker.loop.create_task(self._make(name))
            task.add_done_callback(lambda _: self._making.pop(name))
        return task

    async def _make(self, name: str) -> ErrorCode:
        topic = internal_topic(self._broker, name)
        assert topic is not None, name
        response = await self._broker.controller.submit(
            CreateTopicsRequest(topics=[topic], timeout_ms=CREATION_TIMEOUT_MS)
        )
        result = response.topics[0]
        code = ErrorCode(result.error_code)
        if code == ErrorCode.TOPIC_ALREADY_EXISTS:
            return ErrorCode.NONE
        if code != ErrorCode.NONE and code != self._said.get(name):
            log.warning(
                "%s cannot be made: %s (%s)", name, result.error_message, code.name
            )  # once: clients ask again and again
        self._said[name] = code
        return code
