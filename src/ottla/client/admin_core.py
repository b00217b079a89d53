"""Shared by all parts of Admin: retries, and calls to one broker, to leaders and to coordinators."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from typing import Any, TypeVar

from ottla.base.ports import ClientPorts
from ottla.client.cluster_client import ANY_NODE, ClusterClient
from ottla.client.config import COMMON_OPTIONS, Config, Option, parse, read_duration, read_int
from ottla.client.coordinator_finder import CoordinatorFinder
from ottla.client.errors import (
    BrokerUnreachableError,
    ClientClosedError,
    ClientError,
    DisconnectedError,
    PartialFailureError,
)
from ottla.client.records import TopicPartition
from ottla.wire.schema import Message

R = TypeVar("R", bound=Message)
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

ADMIN_OPTIONS: tuple[Option, ...] = (
    *COMMON_OPTIONS,
    Option("default.api.timeout.ms", read_duration, 60_000, 0),
    Option("retries", read_int, 2**31 - 1, 0, 2**31 - 1),
)

PartitionLike = tuple[str, int]
"""A partition as a user may pass it: a TopicPartition or a pair."""


LeaderCall = Callable[[int, list[TopicPartition]], Awaitable[Mapping[TopicPartition, V | ClientError]]]
"""Calls a broker about partitions that it leads; returns a result or an error for each."""


class AdminCore:
    """Base class of AsyncAdmin.

    Configs are Kafka's: a mapping with dotted names, keywords with underscores, or both.
    `ports` are for simulations.
    """

    def __init__(
        self, config: Mapping[str, Any] | None = None, *, ports: ClientPorts | None = None, **keywords: Any
    ) -> None:
        self._config: Config = parse(config, keywords, ADMIN_OPTIONS, kind="The admin client")
        self._ports = ports
        self._own_workers: Any = None
        self._started: tuple[ClusterClient, CoordinatorFinder] | None = None
        self._is_closed = False
        self.timeout_ms: float = self._config["default.api.timeout.ms"]

    @property
    def _core(self) -> ClusterClient:
        return self._start()[0]

    @property
    def _coordinators(self) -> CoordinatorFinder:
        return self._start()[1]

    def _start(self) -> tuple[ClusterClient, CoordinatorFinder]:
        """Create the client on first use: it needs the running loop."""
        if self._is_closed:
            raise ClientClosedError("The admin client is closed.")
        if self._started is None:
            ports = self._ports
            if ports is None:
                from ottla.client.real_ports import real_client_ports

                ports = real = real_client_ports(asyncio.get_running_loop())
                self._own_workers = real.workers
            core = ClusterClient(self._config, ports)
            self._started = core, CoordinatorFinder(core)
        return self._started

    async def close(self) -> None:
        """Close all connections."""
        self._is_closed = True
        if self._started is not None:
            await self._started[0].close()
        if self._own_workers is not None:
            self._own_workers.close()

    # Calls

    async def _call(
        self,
        request: Message,
        response_type: type[R],
        *,
        node: int = ANY_NODE,
        version_max: int | None = None,
        check: Callable[[R], object] | None = None,
    ) -> R:
        """Send a request until it succeeds. `check` raises for errors in the response; retriable ones are retried."""

        async def attempt() -> R:
            if node != ANY_NODE and node not in self._core.cluster.nodes:
                await self._core.update_metadata()
            response = await self._core.call(node, request, response_type, version_max=version_max)
            if check is not None:
                check(response)
            return response

        what = type(request).__name__.removesuffix("Request")
        return await self._core.retrying(attempt, timeout_ms=self.timeout_ms, what=what)

    async def _call_coordinator(
        self,
        group: str,
        request: Message,
        response_type: type[R],
        check: Callable[[R], object],
        version_max: int | None = None,
    ) -> R:
        """Like `_call`, but to the coordinator of a group."""

        async def attempt() -> R:
            try:
                node = await self._coordinators.find(group)
                response = await self._core.call(node, request, response_type, version_max=version_max)
                check(response)
            except ClientError as error:
                if error.is_retriable or isinstance(error, DisconnectedError | BrokerUnreachableError):
                    self._coordinators.mark_unknown(group)
                raise
            return response

        what = type(request).__name__.removesuffix("Request")
        return await self._core.retrying(attempt, timeout_ms=self.timeout_ms, what=f"{what} of group {group!r}")

    async def _broker_ids(self) -> list[int]:
        """Return the ids of all live brokers."""
        await self._core.retrying(self._core.update_metadata, timeout_ms=self.timeout_ms, what="Metadata")
        return sorted(self._core.cluster.nodes)

    async def _call_leaders(
        self, partitions: Iterable[TopicPartition], call_leader: "LeaderCall[V]", what: str
    ) -> dict[TopicPartition, V]:
        """Call the leader of each partition.

        After retriable errors, such as a leader change, only those partitions are retried.
        """
        requested = list(dict.fromkeys(partitions))
        results: dict[TopicPartition, V] = {}
        errors: dict[TopicPartition, ClientError] = {}
        missing: list[TopicPartition] = requested

        async def attempt() -> None:
            nonlocal missing
            leaders: dict[int, list[TopicPartition]] = {}
            for each in missing:
                info = await self._core.topic(each.topic, timeout_ms=self.timeout_ms, partition=each.partition)
                leaders.setdefault(info.partitions[each.partition].leader, []).append(each)
            failure: ClientError | None = None
            for node, group in leaders.items():
                for partition, result in (await call_leader(node, group)).items():
                    if not isinstance(result, ClientError):
                        results[partition] = result
                    elif result.is_retriable:
                        failure = result
                    else:
                        errors[partition] = result
            missing = [each for each in requested if each not in results and each not in errors]
            if failure is not None:
                await self._core.update_metadata()
                raise failure

        await self._core.retrying(attempt, timeout_ms=self.timeout_ms, what=what)
        return result_or_raise(what, results, errors)


def result_or_raise(what: str, results: dict[K, V], errors: Mapping[K, ClientError]) -> dict[K, V]:
    """Return the results. Raises the error of a single item, or PartialFailureError."""
    if not errors:
        return results
    if len(errors) == 1 and not results:
        raise next(iter(errors.values()))
    raise PartialFailureError(what, results, errors)


def by_topic(partitions: Iterable[PartitionLike]) -> dict[str, list[int]]:
    grouped: dict[str, list[int]] = {}
    for topic, partition in partitions:
        grouped.setdefault(topic, []).append(partition)
    return grouped
