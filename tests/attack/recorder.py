"""A proxy that records what clients send, so that real traffic can be mutated and sent again."""

import contextlib
import socket
import threading

Address = tuple[str, int]


class Recorder:
    """A proxy for a broker that advertises its address; `streams` holds the bytes sent by each client connection."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.streams: list[bytearray] = []
        self._sockets: list[socket.socket] = [self._listener]
        self._threads: list[threading.Thread] = []

    def start(self, broker: Address) -> None:
        self._run(self._accept, broker)

    def close(self) -> None:
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join(5)

    def requests(self) -> list[bytes]:
        """Return the complete requests, without their sizes, in the order of the connections."""
        found = []
        for stream in self.streams:
            position = 0
            while position + 4 <= len(stream):
                size = int.from_bytes(stream[position : position + 4], "big")
                if position + 4 + size > len(stream):
                    break
                found.append(bytes(stream[position + 4 : position + 4 + size]))
                position += 4 + size
        return found

    def _run(self, target: object, *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, broker: Address) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(broker)
                self._sockets += [client, server]
                stream = bytearray()
                self.streams.append(stream)
                self._run(self._pump, client, server, stream)
                self._run(self._pump, server, client, None)

    def _pump(self, source: socket.socket, target: socket.socket, recorded: bytearray | None) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if recorded is not None:
                    recorded += data
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
