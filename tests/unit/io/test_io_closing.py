"""Closing a connection whose peer is still sending does not lose responses that were written before."""

import asyncio

import pytest

from ottla.base.ports import Connection
from ottla.io.tcp import LINGER_SECONDS, TcpNetwork

RESPONSE = b"response" * 1000
UNREAD = bytes(1 << 20)


class ClosesAfterOneRead:
    """Responds to the first bytes and closes, although unread bytes follow."""

    def __init__(self, lost: "asyncio.Future[None]") -> None:
        self.lost = lost
        self.buffer = bytearray(16)
        self.connection: Connection | None = None

    def connection_made(self, connection: Connection) -> None:
        self.connection = connection

    def get_buffer(self, size_hint: int) -> memoryview:
        return memoryview(self.buffer)

    def buffer_updated(self, size: int) -> None:
        assert self.connection is not None, "data received after the close"
        self.connection.pause_reading()
        self.connection.write([RESPONSE])
        self.connection.close()
        self.connection = None

    def pause_writing(self) -> None:
        raise AssertionError("the response is small")

    def resume_writing(self) -> None:
        raise AssertionError("the response is small")

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.set_result(None)


@pytest.mark.parametrize("ends", [True, False], ids=["peer closes", "peer stays connected"])
async def test_responses_before_a_close_are_received(ends: bool) -> None:
    loop = asyncio.get_running_loop()
    lost: asyncio.Future[None] = loop.create_future()
    listener = await TcpNetwork().listen("127.0.0.1", 0, lambda: ClosesAfterOneRead(lost))
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    writer.write(UNREAD)
    assert await reader.read() == RESPONSE  # up to EOF, neither truncated nor reset
    if ends:
        writer.close()
    await asyncio.wait_for(lost, LINGER_SECONDS * 20)  # a peer that does not close is disconnected
    writer.close()
    listener.close()
