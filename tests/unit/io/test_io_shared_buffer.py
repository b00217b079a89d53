"""A connection copies the bytes of a memoryview that it cannot send at once, as the caller reuses the buffer."""

import asyncio

from ottla.base.ports import Connection
from ottla.io.tcp import TcpNetwork

SIZE = 16 << 20
"""More than a socket accepts at once."""


class BufferReuser:
    """Responds to the first bytes twice from one buffer, which it overwrites after each write."""

    def __init__(self) -> None:
        self.buffer = bytearray(16)

    def connection_made(self, connection: Connection) -> None:
        self.connection = connection

    def get_buffer(self, size_hint: int) -> memoryview:
        return memoryview(self.buffer)

    def buffer_updated(self, size: int) -> None:
        shared = bytearray(SIZE)
        for digit in b"12":
            shared[:] = bytes([digit]) * SIZE
            self.connection.write([b"<", memoryview(shared), b">"])
            shared[:] = b"?" * SIZE
        self.connection.close()

    def pause_writing(self) -> None:
        """Not needed: nothing more is written."""

    def resume_writing(self) -> None:
        """Not needed: nothing more is written."""

    def connection_lost(self, error: Exception | None) -> None:
        """End of the test."""


async def test_borrowed_view_is_copied_if_it_cannot_be_sent() -> None:
    listener = await TcpNetwork().listen("127.0.0.1", 0, BufferReuser)
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    writer.write(b"go")
    assert await reader.read() == b"<" + b"1" * SIZE + b"><" + b"2" * SIZE + b">"
    writer.close()
    listener.close()
