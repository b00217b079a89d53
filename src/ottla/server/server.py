"""The listeners and their connections: admits, throttles, rejects and closes connections."""

import asyncio
import logging

from ottla.base.ports import Listener, Network, Rng
from ottla.metadata.configs import BrokerLayers, broker_value
from ottla.runtime.broker import Broker
from ottla.server.connection import ServerConnection
from ottla.server.connection_quotas import Admission, ConnectionQuotas, ConnectionRateLimiter, connection_settings
from ottla.server.dispatch import served_apis
from ottla.server.fetch_sessions import FetchSessionCache
from ottla.server.loop_lag import LoopLag
from ottla.server.rate_limited_log import RateLimitedLog
from ottla.wire.framing import ReceiveBufferPool

log = logging.getLogger("ottla.server")

CLOSE_SECONDS_MAX = 1.0
DELAY_SECONDS_MAX = 86_400.0
"""A connection that would be throttled for longer waits until the limits change."""
SWEEP_SECONDS_MAX = 5.0
SWEEP_SECONDS_MIN = 0.05
SWEEPS_PER_IDLE_TIME = 20
"""Idle connections are closed at most 1/20 of the idle time late."""


class Server:
    """State shared by all connections of a node, and the limits on them."""

    def __init__(self, broker: Broker, network: Network, rng: Rng, *, protected_listener: str | None = None) -> None:
        self.broker = broker
        self.apis = served_apis()
        self.frame_max = broker.settings.request_bytes_max
        self.buffers = ReceiveBufferPool(self._number("queued.max.request.bytes"))
        self.fetch_sessions = FetchSessionCache(
            rng, slots_max=self._number("max.incremental.fetch.session.cache.slots")
        )
        self.closed_bytes_in = 0
        self.closed_bytes_out = 0
        self.accepted = self.rejected = self.idle_closed = 0
        """Connections: admitted, rejected because of a limit, closed because they were idle."""
        self.malformed = self.failed = 0
        """Requests that closed their connection: malformed ones, and those whose handler failed."""
        self.lag = LoopLag(broker.loop, self._on_lag)
        self._network = network
        self._listeners: list[Listener] = []
        self._names: list[str] = []
        self._connections: dict[ServerConnection, None] = {}
        self._waiting: dict[ServerConnection, None] = {}
        self._throttled: dict[ServerConnection, asyncio.TimerHandle | None] = {}
        """Connections over the creation rate, each with its timer."""
        self._waiting_max = self._number("socket.listen.backlog.size")
        self._configs = broker.image.configs
        self._protected = protected_listener
        self.quotas = ConnectionQuotas(connection_settings(self._layers(), []))
        self._rate_limiter = ConnectionRateLimiter(self.quotas.settings, broker.loop.time())
        self._idle_seconds = self._number("connections.max.idle.ms") / 1000
        self._slow_ms = self._number("ottla.slow.request.ms")
        self._sweep_timer: asyncio.TimerHandle | None = None
        self._request_counts: dict[int, int] = {}
        self._is_open = False
        self._ended: asyncio.Event | None = None
        now = broker.loop.time
        self._malformed_log = RateLimitedLog(log, logging.INFO, now)
        self._failure_log = RateLimitedLog(log, logging.ERROR, now)
        self._limit_log = RateLimitedLog(log, logging.WARNING, now)
        self._slow_log = RateLimitedLog(log, logging.WARNING, now)
        broker.api_ranges = tuple((api.key, api.advertised_min_version, api.max_version) for api in self.apis.values())

    async def listen(self, name: str, host: str, port: int) -> int:
        """Listen on an address and return the port. Raises OSError if it is not available."""
        listener = await self._network.listen(host, port, lambda: ServerConnection(self, name))
        self._listeners.append(listener)
        self._names.append(name)
        self.quotas.by_listener.setdefault(name, 0)
        return listener.port

    def open(self) -> None:
        """Admit connections from now on, those that were accepted during startup first."""
        protected = self._protected if len(self._names) > 1 else None
        self.quotas = ConnectionQuotas(connection_settings(self._layers(), self._names), protected)
        self.quotas.by_listener.update(dict.fromkeys(self._names, 0))
        self._rate_limiter = ConnectionRateLimiter(self.quotas.settings, self.broker.loop.time(), protected)
        self._is_open = True
        early, self._connections = self._connections, {}
        for connection in early:
            self._admit_or_throttle(connection)
        self.lag.start()
        self._sweep()

    def stop_listening(self) -> None:
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()
        self.lag.stop()
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()

    async def close_connections(self) -> None:
        """Close all connections after the responses sent so far; abort those that are still open after a second."""
        for connection in [*self._connections, *self._waiting, *self._throttled]:
            connection.close()
        if self._connections or self._waiting or self._throttled:
            self._ended = asyncio.Event()
            try:
                await asyncio.wait_for(self._ended.wait(), CLOSE_SECONDS_MAX)
            except TimeoutError:
                self.abort_connections()

    def abort_connections(self) -> None:
        for connection in [*self._connections, *self._waiting, *self._throttled]:
            connection.abort()

    @property
    def bytes_in(self) -> int:
        return self.closed_bytes_in + sum(connection.bytes_in for connection in self._connections)

    @property
    def bytes_out(self) -> int:
        return self.closed_bytes_out + sum(connection.bytes_out for connection in self._connections)

    @property
    def waiting_count(self) -> int:
        return len(self._waiting) + len(self._throttled)

    # Called by connections

    def on_connected(self, connection: ServerConnection) -> None:
        if self._is_open:
            self._maybe_apply_configs()
            self._admit_or_throttle(connection)
        else:
            self._connections[connection] = None

    def on_disconnected(self, connection: ServerConnection, sent_bytes: int) -> None:
        self.closed_bytes_in += connection.bytes_in
        self.closed_bytes_out += sent_bytes
        self._waiting.pop(connection, None)
        timer = self._throttled.pop(connection, None)
        if timer is not None:
            timer.cancel()
        if connection in self._connections:
            del self._connections[connection]
            if self._is_open:
                self.quotas.on_closed(connection.listener, connection.peer_host)
                self._admit_waiting()
        if self._ended is not None and not (self._connections or self._waiting or self._throttled):
            self._ended.set()

    def on_malformed_request(self, connection: ServerConnection, error: Exception) -> None:
        self.malformed += 1
        self._malformed_log.emit("closing connection from %s: %s", connection.peer, error)

    def on_failure(self, connection: ServerConnection, error: Exception) -> None:
        self.failed += 1
        self._failure_log.emit("closing connection from %s: a request failed", connection.peer, error=error)

    def maybe_log_slow(self, connection: ServerConnection, what: str, took_ms: int) -> None:
        if 0 <= self._slow_ms < took_ms:
            self._slow_log.emit("slow request from %s: %d ms in %s", connection.peer, took_ms, what)

    # Admission

    def _admit_or_throttle(self, connection: ServerConnection) -> None:
        """Admit a connection, with a delay if its listener's creation rate is exceeded."""
        loop = self.broker.loop
        delay = self._rate_limiter.acquire(connection.listener, loop.time())
        if delay <= 0:
            self._admit(connection)
        elif len(self._throttled) < self._waiting_max:
            self._throttled[connection] = (
                loop.call_later(delay, self._on_throttle_end, connection) if delay < DELAY_SECONDS_MAX else None
            )
        else:
            self._rate_limiter.release(connection.listener)
            self._reject(connection)

    def _on_throttle_end(self, connection: ServerConnection) -> None:
        del self._throttled[connection]
        self._admit(connection)

    def _reject(self, connection: ServerConnection) -> None:
        self.rejected += 1
        self._limit_log.emit(
            "rejecting connection from %s on listener %s: connection limit reached",
            connection.peer_host,
            connection.listener,
        )
        connection.abort()

    def _admit(self, connection: ServerConnection) -> None:
        listener, host = connection.listener, connection.peer_host
        admission = self.quotas.on_accepted(listener, host)
        if admission is Admission.WAITING and len(self._waiting) < self._waiting_max:
            self._waiting[connection] = None
            return
        if admission is not Admission.ADMITTED:
            self._reject(connection)
            return
        self.accepted += 1
        connection.active_at = self.broker.loop.time()
        self._connections[connection] = None
        connection.unmute()
        self._close_idlest()

    def _admit_waiting(self) -> None:
        """Admit waiting connections, the oldest first, as far as there are free slots."""
        for connection in list(self._waiting):
            if self.quotas.has_slot(connection.listener):
                del self._waiting[connection]
                self._admit(connection)

    def _close_idlest(self) -> None:
        """Close the connections that were idle longest while there are more than the limit."""
        surplus = self.quotas.total - self.quotas.settings.total_max
        if surplus > 0:
            going = [connection for connection in self._connections if self.quotas.is_closable(connection.listener)]
            for connection in sorted(going, key=lambda connection: connection.active_at)[:surplus]:
                self._limit_log.emit("closing connection from %s: connection limit exceeded", connection.peer)
                connection.abort()

    def _sweep(self) -> None:
        """Close idle connections; one timer serves them all."""
        now, idle = self.broker.loop.time(), self._idle_seconds
        self._maybe_apply_configs()
        if orphans := self.fetch_sessions.orphans(self.broker.clock.now_ms()):
            self.broker.spawn(self._close_sessions(orphans))
        if idle >= 0:
            for connection in list(self._connections):
                progress = connection.progress
                if progress != connection.last_progress:
                    connection.last_progress = progress
                    connection.active_at = now
                elif now - connection.active_at >= idle:
                    self.idle_closed += 1
                    connection.abort()
        interval = (
            min(max(idle / SWEEPS_PER_IDLE_TIME, SWEEP_SECONDS_MIN), SWEEP_SECONDS_MAX)
            if idle >= 0
            else SWEEP_SECONDS_MAX
        )
        self._sweep_timer = self.broker.loop.call_later(interval, self._sweep)

    async def _close_sessions(self, session_ids: list[int]) -> None:
        """Close sessions in time slices, as there may be hundreds, each with thousands of partitions."""
        for session_id in session_ids:
            session = self.fetch_sessions.close(session_id)
            if session is not None:
                self.broker.scheduler.free_in_slices(session.partitions)
            await self.broker.scheduler.yield_if_due()

    # Configs

    def _maybe_apply_configs(self) -> None:
        """Apply connection limits that were changed at runtime."""
        configs = self.broker.image.configs
        if configs is self._configs:
            return
        self._configs = configs
        try:
            settings = connection_settings(self._layers(), self._names)
        except ValueError as error:
            log.warning("keeping the current connection limits: max.connections.per.ip.overrides %s", error)
            return
        if settings != self.quotas.settings:
            self._rate_limiter = ConnectionRateLimiter(
                settings, self.broker.loop.time(), self._protected if len(self._names) > 1 else None
            )
            self.quotas.settings = settings
            self._close_idlest()
            self._admit_waiting()
            delayed, self._throttled = self._throttled, {}
            for connection, timer in delayed.items():
                if timer is not None:
                    timer.cancel()
                self._admit_or_throttle(connection)

    def _layers(self) -> BrokerLayers:
        image, settings = self.broker.image, self.broker.settings
        return BrokerLayers(settings.static_configs, image.cluster_configs(), image.broker_configs(settings.node_id))

    def _number(self, name: str) -> int:
        value = broker_value(name, self.broker.settings.static_configs)
        assert isinstance(value, int), name
        return value

    def _on_lag(self, seconds: float) -> None:
        """Log that the event loop was blocked, with the requests handled in that time as the likely cause."""
        before, self._request_counts = self._request_counts, {key: api.requests for key, api in self.apis.items()}
        if 0 <= self._slow_ms < seconds * 1000:
            counts = [(api.module, api.requests - before.get(key, 0)) for key, api in self.apis.items()]
            handled = ", ".join(f"{count} {name}" for name, count in counts if count) or "none"
            self._slow_log.emit(
                "event loop blocked for %d ms; requests handled in that time: %s", seconds * 1000, handled
            )
