"""The base of Producer, Consumer and Admin: connections to brokers, cluster metadata, retries.

    core = ClusterClient(config, ports)
    topic = await core.topic("orders", timeout_ms=60_000)
    response = await core.call(topic.partitions[0].leader, ListOffsetsRequest(...), ListOffsetsResponse)

Everything here runs in one event loop. Connections are opened on first use and reopened when lost.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeVar

from ottla.base.errors import ErrorCode
from ottla.base.ports import ClientPorts
from ottla.client.backoff import Backoff
from ottla.client.cluster_metadata import ClusterMetadata, TopicInfo
from ottla.client.config import parse_addresses
from ottla.client.connection import BrokerConnection
from ottla.client.errors import (
    STALE_METADATA,
    BootstrapError,
    BrokerUnreachableError,
    ClientClosedError,
    ClientError,
    ClientTimeoutError,
    broker_error,
)
from ottla.client.outages import OutageMonitor
from ottla.wire.framing import ReceiveBufferPool
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.wire.schema import Message

R = TypeVar("R", bound=Message)
T = TypeVar("T")

ANY_NODE = -1
"""As the node of a call: any broker."""
CLOSE_WAIT_SECONDS_MAX = 1.0
"""Time that `close` waits for brokers to close their ends."""
IDLE_CHECK_MS_MIN = 1_000
PREALLOCATED_BYTES_MAX = 64 << 20
"""Responses up to this size get their buffer at once, as growing it means copying."""
FATAL_TOPIC_ERRORS = (ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
"""Topic errors that a retry does not fix."""

UpdateCallback = Callable[[ClusterMetadata], None]


class ClusterClient:
    """Create it inside a running loop. `config` has the names in `config.COMMON_OPTIONS`."""

    def __init__(self, config: Mapping[str, Any], ports: ClientPorts, *, creates_topics: bool = False) -> None:
        self.config = config
        self.ports = ports
        self.cluster = ClusterMetadata()
        self.loop = asyncio.get_running_loop()
        self.update_callbacks: list[UpdateCallback] = []
        """Called after each metadata update."""
        self.retry_backoff = Backoff(ports.rng, config["retry.backoff.ms"], config["retry.backoff.max.ms"])
        self.outages = OutageMonitor()
        self.request_timeout_ms: float = config["request.timeout.ms"]
        self.is_closed = False
        self._creates_topics = creates_topics
        self._reconnect_backoff = Backoff(ports.rng, config["reconnect.backoff.ms"], config["reconnect.backoff.max.ms"])
        self._bootstrap = parse_addresses(config["bootstrap.servers"])
        self._buffers = ReceiveBufferPool(preallocated_bytes_max=PREALLOCATED_BYTES_MAX)
        self._connections: dict[tuple[str, int, str], BrokerConnection] = {}
        self._connecting: dict[tuple[str, int, str], asyncio.Task[BrokerConnection]] = {}
        self._failures: dict[tuple[str, int], int] = {}
        self._retry_at_ms: dict[tuple[str, int], float] = {}
        self._tracked: dict[str, None] = {}
        self._tracks_all = False
        self._updating: asyncio.Task[None] | None = None
        self._age_timer: asyncio.TimerHandle | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._idle_ms: float = config["connections.max.idle.ms"]
        self._update_loop: asyncio.Task[None] | None = None
        self._is_stale = False
        self._updated_ms = 0.0

    def now_ms(self) -> float:
        """Return the event loop's time, which all deadlines use."""
        return self.loop.time() * 1000

    # Connections

    async def get_connection(
        self, node: int = ANY_NODE, *, purpose: str = "", deadline_ms: float | None = None
    ) -> BrokerConnection:
        """Return an open connection to a broker. Raises BrokerUnreachableError.

        Each `purpose` has its own connection, so that long waits (fetches, rebalances) do not block other requests.
        """
        if node == ANY_NODE:
            return await self._any_connection(deadline_ms)
        known = self.cluster.nodes.get(node)
        if known is None:
            self.request_update()
            raise BrokerUnreachableError(f"Broker {node} is not in the cluster metadata; it may be down.")
        return await self.connect_to(known.host, known.port, purpose=purpose)

    def ready_connection(self, node: int, purpose: str = "") -> BrokerConnection | None:
        """Return the connection to a broker if it is open, without waiting."""
        known = self.cluster.nodes.get(node)
        if known is None:
            return None
        connection = self._connections.get((known.host, known.port, purpose))
        return None if connection is None or connection.is_disconnected else connection

    async def connect_to(self, host: str, port: int, *, purpose: str = "") -> BrokerConnection:
        """Return an open connection to an address."""
        if self.is_closed:
            raise ClientClosedError
        key = (host, port, purpose)
        connection = self._connections.get(key)
        if connection is not None and not connection.is_disconnected:
            return connection
        task = self._connecting.get(key)
        if task is None:
            task = self._connecting[key] = self.loop.create_task(self._connect(key))
            task.add_done_callback(partial(self._on_connected, key))
        return await asyncio.shield(task)

    def _on_connected(self, key: tuple[str, int, str], task: "asyncio.Task[BrokerConnection]") -> None:
        del self._connecting[key]
        if not task.cancelled():
            task.exception()  # waiting callers got it; mark it retrieved in case all were cancelled

    async def _connect(self, key: tuple[str, int, str]) -> BrokerConnection:
        host, port, _ = key
        address = (host, port)
        wait_ms = self._retry_at_ms.get(address, 0) - self.now_ms()
        if wait_ms > 0:
            await asyncio.sleep(wait_ms / 1000)
        failures = self._failures.get(address, 0)
        config = self.config
        first_ms, max_ms = (
            config["socket.connection.setup.timeout.ms"],
            config["socket.connection.setup.timeout.max.ms"],
        )
        timeout_ms = min(first_ms * 2 ** min(failures, 10), max_ms)
        connection = BrokerConnection(host, port, config["client.id"] or "", self.ports.network, self._buffers)
        try:
            await connection.connect(timeout_ms)
        except BrokerUnreachableError as error:
            self._on_unreachable(address, error)
            self._failures[address] = failures + 1
            self._retry_at_ms[address] = self.now_ms() + self._reconnect_backoff.delay_ms(failures + 1)
            raise
        if self.is_closed:
            connection.close()
            raise ClientClosedError
        self._failures.pop(address, None)
        self._retry_at_ms.pop(address, None)
        self.outages.end(connection.address)
        self._connections[key] = connection
        if self._idle_timer is None and self._idle_ms >= 0:
            self._idle_timer = self.loop.call_later(self._idle_ms / 1000, self._close_idle)
        return connection

    def _on_unreachable(self, address: tuple[str, int], error: BrokerUnreachableError) -> None:
        """Report the outage, unless the address is only another name of a broker that is known by now."""
        nodes = {(node.host, node.port) for node in self.cluster.nodes.values()}
        if address in nodes and address not in self._bootstrap:
            error.advice = "A broker advertises this address; check that it can be reached from here."
        if address in nodes or not nodes:
            self.outages.begin(f"{address[0]}:{address[1]}", error)

    def _close_idle(self) -> None:
        """Close connections idle for connections.max.idle.ms, and schedule the next check."""
        self._idle_timer = None
        now_ms = self.now_ms()
        for key, connection in list(self._connections.items()):
            if connection.is_disconnected or (
                not connection.in_flight and connection.last_used_ms + self._idle_ms <= now_ms
            ):
                del self._connections[key]
                connection.close()
        if self._connections:
            next_ms = min(
                max(connection.last_used_ms + self._idle_ms, now_ms + IDLE_CHECK_MS_MIN)
                for connection in self._connections.values()
            )
            self._idle_timer = self.loop.call_at(next_ms / 1000, self._close_idle)

    async def _any_connection(self, deadline_ms: float | None) -> BrokerConnection:
        """Return the least busy open connection, else connect to a known broker, else to one of bootstrap.servers."""
        open_connections = [connection for connection in self._connections.values() if not connection.is_disconnected]
        if open_connections:
            return min(open_connections, key=lambda connection: connection.in_flight)
        known = [(node.host, node.port) for node in self.cluster.nodes.values()]
        candidates = list(dict.fromkeys([*self._shuffled(known), *self._shuffled(self._bootstrap)]))
        tried: dict[tuple[str, int], BrokerUnreachableError] = {}
        for host, port in candidates:
            try:
                return await self.connect_to(host, port)
            except BrokerUnreachableError as error:
                tried[host, port] = error
                if deadline_ms is not None and self.now_ms() >= deadline_ms:
                    break
        reasons = " ".join(str(error.message) for error in tried.values())
        raise BootstrapError(
            f"No broker could be reached. {reasons}",
            advice="Start a broker there (for example with `ottla start`), or correct bootstrap.servers.",
        )

    def _shuffled(self, addresses: list[tuple[str, int]]) -> list[tuple[str, int]]:
        """Shuffle the addresses, so that clients spread over the brokers."""
        rest, order = list(addresses), []
        while rest:
            order.append(rest.pop(self.ports.rng.below(len(rest)) if len(rest) > 1 else 0))
        return order

    # Requests

    async def call(
        self,
        node: int,
        request: Message,
        response_type: type[R],
        *,
        purpose: str = "",
        timeout_ms: float | None = None,
        version_max: int | None = None,
    ) -> R:
        """Send a request and return the response, without retries. `timeout_ms` defaults to request.timeout.ms."""
        connection = await self.get_connection(node, purpose=purpose)
        wait_ms = connection.throttled_until_ms - self.now_ms()
        if wait_ms > 0:
            await asyncio.sleep(wait_ms / 1000)
        timeout_ms = self.request_timeout_ms if timeout_ms is None else timeout_ms
        return await connection.call(request, response_type, timeout_ms=timeout_ms, version_max=version_max)

    async def retrying(self, attempt: Callable[[], Awaitable[T]], *, timeout_ms: float, what: str) -> T:
        """Call `attempt` until it succeeds, raises a fatal error, or the time is up; with backoff between attempts.

        Raises ClientTimeoutError with the last error as its reason.
        """
        deadline_ms = self.now_ms() + timeout_ms
        tries = 0
        failure: ClientError | None = None
        while True:
            try:
                async with asyncio.timeout_at(deadline_ms / 1000):
                    return await attempt()
            except TimeoutError:
                raise _timeout_error(what, timeout_ms, failure) from failure
            except ClientError as error:
                if not error.is_retriable or self.is_closed:
                    raise
                failure = error
            tries += 1
            if failure.code in STALE_METADATA:
                self.request_update()
            delay_ms = self.retry_backoff.delay_ms(tries)
            if self.now_ms() + delay_ms >= deadline_ms:
                raise _timeout_error(what, timeout_ms, failure) from failure
            await asyncio.sleep(delay_ms / 1000)

    # Metadata

    def track_topics(self, topics: Iterable[str]) -> None:
        """Include these topics in metadata updates from now on."""
        for topic in topics:
            self._tracked[topic] = None

    def untrack_topics(self, topics: Iterable[str]) -> None:
        for topic in topics:
            self._tracked.pop(topic, None)

    def track_all_topics(self, is_enabled: bool = True) -> None:
        """Include all topics in metadata updates, for pattern subscriptions."""
        self._tracks_all = is_enabled

    def request_update(self) -> None:
        """Request a metadata update without waiting for it. Updates are at least retry.backoff.ms apart."""
        self._is_stale = True
        if not self.is_closed and self._update_loop is None:
            self._update_loop = self.loop.create_task(self._update_while_stale())

    async def update_metadata(self) -> None:
        """Update the metadata of all tracked topics. A call during an update waits for the next one."""
        running = self._updating
        if running is not None:
            await asyncio.wait((running,))
            if self._updating is not None and self._updating is not running:
                await asyncio.shield(self._updating)
                return
        if self.is_closed:
            raise ClientClosedError
        task = self._updating = self.loop.create_task(self._update_metadata())
        task.add_done_callback(self._on_metadata_updated)
        await asyncio.shield(task)

    def _on_metadata_updated(self, task: "asyncio.Task[None]") -> None:
        if self._updating is task:
            self._updating = None
        if not task.cancelled():
            task.exception()  # waiting callers got it; mark it retrieved

    async def _update_metadata(self) -> None:
        topics = None if self._tracks_all else [MetadataRequestTopic(name=name) for name in self._tracked]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=self._creates_topics)
        response = await self.call(ANY_NODE, request, MetadataResponse)
        if response.error_code:
            raise broker_error(response.error_code, about="metadata")
        before = dict(self.cluster.topics)
        self.cluster.update(response, is_complete=topics is None)
        self.outages.check_topics(self._tracked, before, self.cluster)
        self._updated_ms = self.now_ms()
        self._restart_age_timer()
        for callback in list(self.update_callbacks):
            callback(self.cluster)

    async def _update_while_stale(self) -> None:
        """Update until no request is left.

        Failures are retried: callers that need the metadata have their own deadlines.
        """
        tries = 0
        try:
            while self._is_stale and not self.is_closed:
                delay_ms = self.retry_backoff.delay_ms(max(tries, 1))
                if tries:
                    await asyncio.sleep(delay_ms / 1000)
                elif self._updated_ms + delay_ms > self.now_ms():
                    await asyncio.sleep((self._updated_ms + delay_ms - self.now_ms()) / 1000)
                self._is_stale = False
                tries += 1
                try:
                    await self.update_metadata()
                except ClientError:
                    self._is_stale = True
        finally:
            self._update_loop = None

    def _restart_age_timer(self) -> None:
        if self._age_timer is not None:
            self._age_timer.cancel()
        self._age_timer = self.loop.call_later(self.config["metadata.max.age.ms"] / 1000, self.request_update)

    async def topic(self, name: str, *, timeout_ms: float, partition: int = 0) -> TopicInfo:
        """Return a topic that has the partition, updating metadata until it appears or the time is up."""
        deadline_ms = self.now_ms() + timeout_ms
        tries = 0
        failure: ClientError | None = None
        while True:
            info = self.cluster.topic(name)
            if info is not None and partition < len(info.partitions):
                return info
            self.track_topics((name,))
            try:
                async with asyncio.timeout_at(deadline_ms / 1000):
                    await self.update_metadata()
                failure = None
            except TimeoutError:
                raise failure or ClientTimeoutError(
                    f"Fetching metadata of topic {name!r} timed out after {timeout_ms:.0f} ms."
                ) from None
            except ClientError as error:
                if not error.is_retriable:
                    raise
                failure = error
            info = self.cluster.topic(name)
            if info is not None and partition < len(info.partitions):
                return info
            code = self.cluster.errors.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if code in FATAL_TOPIC_ERRORS:
                raise broker_error(code, about=f"topic {name!r}")
            if failure is None and info is not None:
                about = f"partition {partition} of topic {name!r}"
                failure = broker_error(code, f"it has partitions 0 to {len(info.partitions) - 1}.", about=about)
            elif failure is None:
                failure = broker_error(code, f"it did not exist for {timeout_ms:.0f} ms.", about=f"topic {name!r}")
            tries += 1
            delay_ms = self.retry_backoff.delay_ms(tries)
            if self.now_ms() + delay_ms >= deadline_ms:
                self.untrack_topics((name,))
                raise failure
            await asyncio.sleep(delay_ms / 1000)

    # Closing

    async def close(self) -> None:
        """Close all connections. Requests in flight fail with DisconnectedError."""
        self.is_closed = True
        for timer in (self._age_timer, self._idle_timer):
            if timer is not None:
                timer.cancel()
        tasks: list[asyncio.Task[Any]] = [*self._connecting.values()]
        tasks += [task for task in (self._updating, self._update_loop) if task is not None]
        for task in tasks:
            task.cancel()
        connections = list(self._connections.values())
        self._connections.clear()
        for connection in connections:
            connection.close()
        tasks += [self.loop.create_task(connection.wait_closed()) for connection in connections]
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_WAIT_SECONDS_MAX)
        late = [task for task in tasks if not task.done()]
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)


def _timeout_error(what: str, timeout_ms: float, failure: ClientError | None) -> ClientError:
    """Return the error of a call that timed out. An unreachable cluster keeps its own error."""
    if isinstance(failure, BootstrapError):
        return failure
    if failure is None:
        return ClientTimeoutError(f"{what} timed out after {timeout_ms:.0f} ms.")
    return ClientTimeoutError(
        f"{what} did not succeed within {timeout_ms:.0f} ms. {failure.message}", advice=failure.advice
    )


__all__ = ["ANY_NODE", "ClusterClient"]
