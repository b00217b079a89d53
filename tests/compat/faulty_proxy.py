"""A proxy between client and broker that breaks connections on request."""

import contextlib
import select
import socket
import threading


class FaultyProxy:
    """Forwards `port` to another local port. The broker must advertise the proxy's port."""

    def __init__(self, target_port: int = 0) -> None:
        self.target_port = target_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.drops_answers = False
        """While true, data from the broker is dropped."""
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._is_closed = False
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                client, _ = self._listener.accept()
                broker = socket.create_connection(("127.0.0.1", self.target_port))
            except OSError:
                continue
            self._pairs.append((client, broker))
            threading.Thread(target=self._forward, args=(client, broker), daemon=True).start()

    def _forward(self, client: socket.socket, broker: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError):
            while True:
                ready, _, _ = select.select([client, broker], [], [], 30)
                for source in ready:
                    data = source.recv(1 << 16)
                    if not data:
                        return
                    if source is client:
                        broker.sendall(data)
                    elif not self.drops_answers:
                        client.sendall(data)
        for each in (client, broker):
            each.close()

    def disconnect_all(self) -> None:
        """Abort all connections."""
        self.cuts += 1
        pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for each in pair:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
                each.close()

    def close(self) -> None:
        self._is_closed = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.disconnect_all()
