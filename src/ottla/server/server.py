"""The listeners and the connections that came through them."""

import logging

from ottla.base.ports import Listener, Network
from ottla.runtime.broker import Broker
from ottla.server.connection import ServerConnection
from ottla.server.dispatch import served_apis
from ottla.wire.framing import ReceiveBuffers

log = logging.getLogger("ottla.server")


class Server:
    """What all connections of a node share."""

    def __init__(self, broker: Broker, network: Network) -> None:
        self.broker = broker
        self.apis = served_apis()
        self.buffers = ReceiveBuffers()
        self.frame_max = broker.settings.request_bytes_max
        self._network = network
        self._listeners: list[Listener] = []
        self._connections: dict[ServerConnection, None] = {}
        self._is_open = False
        broker.api_ranges = tuple((api.key, api.advertised_from, api.last) for api in self.apis.values())

    async def listen(self, name: str, host: str, port: int) -> int:
        """Serve clients at this address; the port that was taken is returned. OSError where it cannot be had."""
        listener = await self._network.listen(host, port, lambda: ServerConnection(self, name))
        self._listeners.append(listener)
        return listener.port

    def open(self) -> None:
        """The node is ready: those who connected meanwhile are heard now."""
        self._is_open = True
        for connection in list(self._connections):
            connection.resume_reading()

    def stop_listening(self) -> None:
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()

    def close_connections(self) -> None:
        """Answers that were made have left already; requests that still wait are not answered."""
        for connection in list(self._connections):
            connection.abort()

    def on_connected(self, connection: ServerConnection) -> None:
        self._connections[connection] = None
        if not self._is_open:
            connection.pause_reading()

    def on_disconnected(self, connection: ServerConnection) -> None:
        self._connections.pop(connection, None)

    def on_refused(self, connection: ServerConnection, error: Exception) -> None:
        log.info("closed the connection from %s: it sent %s", connection.peer, error)

    def on_failure(self, connection: ServerConnection, error: Exception) -> None:
        log.error("a request from %s failed; its connection is closed", connection.peer, exc_info=error)
