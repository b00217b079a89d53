"""What a connection is lent it may look at only while it is called: what waits for the socket is its own."""

import asyncio

from ottla.base.ports import Connection
from ottla.io.tcp import TcpNetwork

SIZE = 16 << 20
"""More than a socket takes at once."""


class Lends:
    """Answers the first bytes with memory that it uses for something else at once, twice."""

    def __init__(self) -> None:
        self.buffer = bytearray(16)

    def connection_made(self, connection: Connection) -> None:
        self.connection = connection

    def get_buffer(self, size_hint: int) -> memoryview:
        return memoryview(self.buffer)

    def buffer_updated(self, size: int) -> None:
        lent = bytearray(SIZE)
        for digit in b"12":
            lent[:] = bytes([digit]) * SIZE
            self.connection.write([b"<", memoryview(lent), b">"])
            lent[:] = b"?" * SIZE
        self.connection.close()

    def pause_writing(self) -> None:
        """Nothing more will be written."""

    def resume_writing(self) -> None:
        """Nothing more will be written."""

    def connection_lost(self, error: Exception | None) -> None:
        """The reader has it all."""


async def test_borrowed_view_is_copied_if_it_cannot_be_sent() -> None:
    listener = await TcpNetwork().listen("127.0.0.1", 0, Lends)
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    writer.write(b"go")
    assert await reader.read() == b"<" + b"1" * SIZE + b"><" + b"2" * SIZE + b">"
    writer.close()
    listener.close()
