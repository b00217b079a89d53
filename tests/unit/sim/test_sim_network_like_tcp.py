"""The simulated and the real network make the same receiver calls in the same order."""

import asyncio

import pytest

from ottla.io.tcp import TcpNetwork
from ottla.sim.world import World

BIG = 48 << 20  # more than both sockets can buffer (tcp_wmem and tcp_rmem)


class Server:
    """Records its receiver calls. Consecutive `data` calls are one entry, since sizes differ."""

    def __init__(self, act):
        self.notes = []
        self.act = act
        self.buffer = bytearray(1 << 16)
        self.data = bytearray()
        self.done = asyncio.get_running_loop().create_future()

    def note(self, word):
        if not (self.notes and self.notes[-1] == word == "data"):
            self.notes.append(word)

    def connection_made(self, connection):
        self.connection = connection
        self.note("made")
        self.act(self, "made")

    def get_buffer(self, size_hint):
        return memoryview(self.buffer)

    def buffer_updated(self, size):
        self.data += self.buffer[:size]
        self.note("data")
        self.act(self, "data")

    def pause_writing(self):
        self.note("pause")
        self.act(self, "pause")

    def resume_writing(self):
        self.note("resume")
        self.act(self, "resume")

    def connection_lost(self, error):
        self.note("lost")
        self.done.set_result(None)


class SimulatedClient:
    """The client side, with the subset of asyncio's stream API that the scenarios use."""

    def __init__(self):
        self.data = bytearray()
        self.buffer = bytearray(1000)
        self.changed = asyncio.Event()
        self.is_lost = False

    def connection_made(self, connection):
        self.connection = connection

    def get_buffer(self, size_hint):
        return memoryview(self.buffer)

    def buffer_updated(self, size):
        self.data += self.buffer[:size]
        self.changed.set()

    def pause_writing(self):
        """The scenarios write little."""

    def resume_writing(self):
        """See `pause_writing`."""

    def connection_lost(self, error):
        self.is_lost = True
        self.changed.set()

    def write(self, data):
        self.connection.write([data])

    def close(self):
        self.connection.close()

    async def read(self, size):
        """Return `size` bytes, or fewer at the end of the stream."""
        while len(self.data) < size and not self.is_lost:
            self.changed.clear()
            await self.changed.wait()
        data = bytes(self.data[:size])
        del self.data[:size]
        return data


class RealClient:
    def __init__(self, reader, writer):
        self._reader = reader
        self.write = writer.write
        self.close = writer.close

    async def read(self, size):
        try:
            return await self._reader.readexactly(size)
        except asyncio.IncompleteReadError as error:
            return error.partial
        except ConnectionResetError:
            return b""


async def nothing_more(server, client):
    client.close()


async def echo(server, client):
    client.write(b"hello")
    assert await client.read(5) == b"hello"
    client.close()


async def server_closes(server, client):
    client.write(b"x")
    assert await client.read(BIG + 10) == bytes(BIG)


async def server_aborts(server, client):
    client.write(b"x")
    assert await client.read(10) == b""


async def back_pressure(server, client):
    client.write(b"x")
    assert len(await client.read(BIG + 3)) == BIG + 3
    client.close()


async def paused(server, client):
    client.write(b"first")
    assert await client.read(5) == b"paus."
    client.write(b"second")
    assert await client.read(5) == b"again"
    client.close()


def act_nothing(server, event):
    """Do nothing."""


def act_echo(server, event):
    if event == "data" and server.data == b"hello":
        server.connection.write([b"he", b"", memoryview(b"llo")])


def act_close(server, event):
    if event == "data":
        server.connection.write([bytes(BIG)])
        server.connection.close()


def act_abort(server, event):
    if event == "data":
        server.connection.abort()


def act_fill(server, event):
    if event == "data":
        server.connection.write([bytes(BIG)])
        assert server.connection.buffered_bytes() > 0
    elif event == "resume":
        assert server.connection.buffered_bytes() == 0
        server.connection.write([b"end"])


def act_pause(server, event):
    if event == "data" and server.data == b"first":
        server.connection.pause_reading()
        server.connection.write([b"paus."])
        asyncio.get_running_loop().call_later(0.05, resume, server)
    elif event == "data" and server.data == b"firstsecond":
        server.connection.write([b"again"])


def resume(server):
    assert server.data == b"first"
    server.note("resumed")
    server.connection.resume_reading()


SCENARIOS = {
    "nothing": (act_nothing, nothing_more, ["made", "lost"]),
    "echo": (act_echo, echo, ["made", "data", "lost"]),
    "close": (act_close, server_closes, ["made", "data", "pause", "lost"]),
    "abort": (act_abort, server_aborts, ["made", "data", "lost"]),
    "back-pressure": (act_fill, back_pressure, ["made", "data", "pause", "resume", "lost"]),
    "pause": (act_pause, paused, ["made", "data", "resumed", "data", "lost"]),
}


async def run_scenario(network, dial, scenario):
    act, client_steps, expected = scenario
    accepted = asyncio.get_running_loop().create_future()

    def accept():
        accepted.set_result(Server(act))
        return accepted.result()

    listener = await network.listen("127.0.0.1", 0, accept)
    client = await dial(listener.port)
    server = await accepted
    await client_steps(server, client)
    await server.done
    listener.close()
    assert server.notes == expected


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_simulated(scenario, monkeypatch):
    monkeypatch.setitem(globals(), "BIG", 1 << 20)  # enough for simulated sockets, whose buffers are small

    async def run(world):
        network = world.start("client").network

        async def dial(port):
            dialler = SimulatedClient()
            await network.connect("127.0.0.1", port, dialler)
            return dialler

        await run_scenario(world.start("node").network, dial, scenario)

    for seed in range(5):
        with World(seed) as world:
            world.run(run(world))


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
async def test_real(scenario):
    async def dial(port):
        return RealClient(*await asyncio.open_connection("127.0.0.1", port))

    await run_scenario(TcpNetwork(), dial, scenario)
