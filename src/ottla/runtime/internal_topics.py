"""Internal topics: their configs, and their creation when they are first needed."""

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
    """Return how to create an internal topic, or None for any other name."""
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
    """Return the configured value. Kafka's default of 3 is capped at the number of active brokers, so that groups work
    on a single node without configuration.
    """
    value = _number(broker, name)
    if name in broker.configs():
        return value
    active = sum(registration.active for registration in broker.image.brokers.values())
    return max(1, min(value, active))


def _configs(*entries: tuple[str, str]) -> list[CreatableTopicConfig]:
    return [CreatableTopicConfig(name, value) for name, value in entries]


def _number(broker: "Broker", name: str) -> int:
    value: ConfigValue = broker_value(name, broker.configs())
    assert isinstance(value, int), name
    return value


class InternalTopics:
    """Creation of internal topics. Concurrent calls for the same topic share one attempt."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._in_progress: dict[str, asyncio.Task[ErrorCode]] = {}
        self._logged_errors: dict[str, ErrorCode] = {}

    def create(self, name: str) -> "asyncio.Task[ErrorCode]":
        """Create the topic. The result is NONE once the topic exists, otherwise the error."""
        task = self._in_progress.get(name)
        if task is None:
            task = self._in_progress[name] = self._broker.loop.create_task(self._create(name))
            task.add_done_callback(lambda _: self._in_progress.pop(name))
        return task

    async def _create(self, name: str) -> ErrorCode:
        topic = internal_topic(self._broker, name)
        assert topic is not None, name
        response = await self._broker.controller.submit(
            CreateTopicsRequest(topics=[topic], timeout_ms=CREATION_TIMEOUT_MS)
        )
        result = response.topics[0]
        code = ErrorCode(result.error_code)
        if code == ErrorCode.TOPIC_ALREADY_EXISTS:
            return ErrorCode.NONE
        if code != ErrorCode.NONE and code != self._logged_errors.get(name):  # clients retry: log each error once
            log.warning("could not create internal topic %s: %s (%s)", name, result.error_message, code.name)
        self._logged_errors[name] = code
        return code
