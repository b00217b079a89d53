"""The simulated network, at both ends of its streams."""

import asyncio
import errno

import pytest

from ottla.sim.network import QUEUE_BYTES_HIGH
from ottla.sim.world import World


class Recorder:
    """A receiver that records all calls."""

    def __init__(self, buffer_size=1000):
        self.buffer = bytearray(buffer_size)
        self.data = bytearray()
        self.pieces = []
        self.events = []
        self.connection = None
        self.lost = asyncio.get_running_loop().create_future()
        self.on_data = None

    def connection_made(self, connection):
        self.connection = connection
        self.events.append("made")

    def get_buffer(self, size_hint):
        assert size_hint == -1
        return memoryview(self.buffer)

    def buffer_updated(self, size):
        assert 0 < size <= len(self.buffer)
        self.data += self.buffer[:size]
        self.pieces.append(size)
        if self.on_data is not None:
            self.on_data()

    def pause_writing(self):
        self.events.append("pause")

    def resume_writing(self):
        self.events.append("resume")

    def connection_lost(self, error):
        self.events.append("lost")
        self.lost.set_result(error)


async def connected(world, client=None, server=None):
    """Return both ends of a stream between the processes "client" and "node"."""
    servers = []

    def accept():
        servers.append(server or Recorder())
        return servers[-1]

    node = world.start("node")
    listener = await node.network.listen("0.0.0.0", 0, accept)
    near = client or Recorder()
    await world.start("client").network.connect("node", listener.port, near)
    await asyncio.sleep(0.1)
    return near, servers[0], listener


def run(scenario, seed=1):
    with World(seed) as world:
        return world.run(scenario(world))


@pytest.mark.parametrize("seed", range(5))
def test_bytes_arrive_in_order_and_in_pieces(seed):
    sent = bytes(range(256)) * 2000

    async def scenario(world):
        client, server, _ = await connected(world)
        for start in range(0, len(sent), 5000):
            client.connection.write([sent[start : start + 2000], memoryview(sent)[start + 2000 : start + 5000]])
        server.connection.write([b"answer"])
        await asyncio.sleep(60)
        assert server.data == sent
        assert client.data == b"answer"
        assert min(server.pieces) < 1000 == max(server.pieces)
        assert (client.connection.peer_host, server.connection.peer_host) == ("node", "127.0.0.1")

    run(scenario, seed)


def test_close_follows_written_bytes():
    async def scenario(world):
        client, server, _ = await connected(world)
        client.connection.write([b"x" * 700_000])
        client.connection.close()
        client.connection.write([b"too late"])
        assert await server.lost is None
        assert await client.lost is None
        assert (len(server.data), set(server.data)) == (700_000, set(b"x"))

    run(scenario)


def test_end_of_stream_closes_peer_after_its_writes():
    async def scenario(world):
        client, server, _ = await connected(world)
        server.on_data = lambda: server.connection.write([b"y"])
        client.connection.write([b"x"])
        await asyncio.sleep(1)
        client.connection.close()
        assert await server.lost is None
        assert client.data == b"y"

    run(scenario)


def test_abort_discards_written_bytes():
    async def scenario(world):
        client, server, _ = await connected(world)
        client.connection.write([b"x" * 1_000_000])
        client.connection.abort()
        assert isinstance(await server.lost, ConnectionResetError)
        assert await client.lost is None
        assert len(server.data) < 1_000_000
        assert client.connection.buffered_bytes() == 0

    run(scenario)


def test_paused_reader_pauses_writer():
    """Back-pressure: wire and queue fill, the writer is paused, and resumed when all is sent."""

    async def scenario(world):
        client, server, _ = await connected(world)
        server.connection.pause_reading()
        written = 0
        while "pause" not in client.events:
            client.connection.write([bytes(10_000)])
            written += 10_000
            await asyncio.sleep(0.1)
        assert client.connection.buffered_bytes() > QUEUE_BYTES_HIGH
        assert (server.pieces, client.events) == ([], ["made", "pause"])
        server.connection.resume_reading()
        await asyncio.sleep(60)
        assert len(server.data) == written
        assert client.events == ["made", "pause", "resume"]
        assert client.connection.buffered_bytes() == 0

    run(scenario)


def test_files_are_sent_between_writes():
    async def scenario(world):
        client, server, _ = await connected(world)
        disk = world.start("third").disk
        file = disk.open("/f", create=True)
        file.append([bytes(range(250)) * 4000])
        client.connection.write([b"before"])
        client.connection.send_file(file, 5, 900_000)
        client.connection.write([b"after"])
        await asyncio.sleep(60)
        assert server.data == b"before" + file.read_at(5, 900_000) + b"after"
        client.connection.send_file(file, 999_990, 20)  # beyond the end of the file
        assert isinstance(await server.lost, ConnectionResetError)

    run(scenario)


def test_peers_are_notified_of_crash():
    """The peer is notified, the dead process is not, and nothing listens until a new process starts."""
    for seed in range(6):

        async def scenario(world):
            client, server, listener = await connected(world)
            client.connection.write([b"hello"])
            world.crash("node")
            error = await client.lost
            assert error is None or isinstance(error, ConnectionResetError)
            assert "lost" not in server.events
            again = world._running["client"].network
            with pytest.raises(ConnectionRefusedError):
                await again.connect("node", listener.port, Recorder())
            fresh = await world.start("node").network.listen("node", listener.port, Recorder)
            await again.connect("node", fresh.port, Recorder())

        run(scenario, seed)


def test_blocked_writer_is_notified_of_peer_crash():
    for seed in range(8):

        async def scenario(world):
            client, _, _ = await connected(world)
            client.connection.write([bytes(300_000)])
            await asyncio.sleep(0.001)
            world.crash("node")
            client.connection.write([bytes(300_000)])
            await client.lost

        run(scenario, seed)


def test_port_can_be_bound_once():
    async def scenario(world):
        network = world.start("node").network
        listener = await network.listen("", 9092, Recorder)
        with pytest.raises(OSError) as caught:
            await network.listen("", 9092, Recorder)
        assert caught.value.errno == errno.EADDRINUSE
        listener.close()
        assert (await network.listen("", 9092, Recorder)).port == 9092

    run(scenario)


def test_closed_listener_keeps_connections():
    async def scenario(world):
        client, server, listener = await connected(world)
        listener.close()
        client.connection.write([b"still"])
        await asyncio.sleep(1)
        assert server.data == b"still"
        with pytest.raises(ConnectionRefusedError):
            await world._running["client"].network.connect("node", listener.port, Recorder())

    run(scenario)


def test_cut_link_delays_bytes_until_healed():
    async def scenario(world):
        client, server, listener = await connected(world)
        world.fabric.cut("client", "node")
        client.connection.write([b"there"])
        server.connection.write([b"back"])
        connecting = asyncio.ensure_future(world._running["client"].network.connect("node", listener.port, Recorder()))
        await asyncio.sleep(100)
        assert (server.data, client.data, connecting.done()) == (b"", b"back", False)
        world.fabric.heal()
        await connecting
        await asyncio.sleep(1)
        assert server.data == b"there"
        world.fabric.partition("client", "node")
        client.connection.close()
        await asyncio.sleep(100)
        assert "lost" not in server.events
        world.fabric.heal()
        assert await server.lost is None

    run(scenario)


def test_empty_receive_buffer_raises():
    async def scenario(world):
        client, _, _ = await connected(world, server=Recorder(buffer_size=0))
        client.connection.write([b"x"])
        await asyncio.sleep(1)

    with pytest.raises(RuntimeError) as caught:
        run(scenario)
    assert "empty buffer" in str(caught.value.__cause__)


def test_equal_seeds_give_equal_traces():
    def digest(seed):
        async def scenario(world):
            client, server, _ = await connected(world)
            server.on_data = lambda: server.connection.write([b"z" * 100])
            client.connection.write([b"x" * 30_000])
            await asyncio.sleep(10)

        with World(seed) as world:
            world.run(scenario(world))
            return world.trace.digest(), world.trace.count, world.trace.entries()

    assert digest(1) == digest(1)
    assert digest(1) != digest(2)
    assert digest(1)[2][0] == "1000.000000 node start"
