"""Connections within one machine are not paced, regardless of the system's congestion control."""

import asyncio
import os
import socket

import pytest

from ottla.base.ports import Connection
from ottla.io.tcp import TcpConnection, TcpNetwork


class IdleReceiver:
    def __init__(self, made: "asyncio.Future[TcpConnection]") -> None:
        self._made = made

    def connection_made(self, connection: Connection) -> None:
        assert isinstance(connection, TcpConnection)
        self._made.set_result(connection)

    def get_buffer(self, size_hint: int) -> memoryview:
        return memoryview(bytearray(10))

    def buffer_updated(self, size: int) -> None:
        raise AssertionError("nothing was sent")

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...

    def connection_lost(self, error: Exception | None) -> None:
        """End of the test."""


@pytest.mark.skipif(not hasattr(socket, "TCP_CONGESTION"), reason="the system has no congestion control per connection")
async def test_local_peer_is_not_paced() -> None:
    made: asyncio.Future[TcpConnection] = asyncio.get_running_loop().create_future()
    listener = await TcpNetwork().listen("127.0.0.1", 0, lambda: IdleReceiver(made))
    _, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    with socket.socket(fileno=os.dup((await made)._descriptor)) as accepted:
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0") == b"reno"
    writer.close()
    listener.close()
