"""Mutated requests over the simulated network: the node sends well-formed responses or closes the connection.

`pytest tests/fuzz --seed N` replays a failure.
"""

import asyncio
import logging
from struct import Struct

import pytest

from ottla.node.assemble import assemble
from ottla.server.dispatch import served_apis
from ottla.sim.client import SimulatedClient, records_of
from ottla.sim.rng import stream
from ottla.sim.world import World
from ottla.wire.batches import Record, build_batch
from ottla.wire.errors import MalformedMessage
from ottla.wire.framing import FrameReader, ReceiveBufferPool
from ottla.wire.headers import skip_tags
from ottla.wire.schema import decode
from tests.fuzz.mutations import Requests, messages, mutate
from tests.sim import sim_scenario

pytestmark = pytest.mark.timeout(60)  # a seed takes less than a second; one that loops must not block the others

CONNECTIONS = 200
REQUESTS_MAX = 4
API_VERSIONS = 18
_head = Struct(">hhi").unpack_from
_RESPONSES = messages("Response")


class Fuzzer:
    """A client connection that keeps the frames it receives."""

    def __init__(self):
        self.reader = FrameReader(ReceiveBufferPool(), 100 << 20, self.on_frame)
        self.get_buffer = self.reader.get_buffer
        self.buffer_updated = self.reader.received
        self.frames = []
        self.connection = None
        self.lost = asyncio.get_running_loop().create_future()

    def on_frame(self, buffer, view, start, end):
        self.frames.append(bytes(view[start:end]))
        return True

    def connection_made(self, connection):
        self.connection = connection

    def pause_writing(self):
        """The fuzzer writes little."""

    def resume_writing(self):
        """See `pause_writing`."""

    def connection_lost(self, error):
        self.lost.set_result(error)


def requests_in(stream):
    """Split what was sent into requests as the broker does: a mutated size gives other requests than were meant."""
    position = 0
    while position + 12 <= len(stream):
        size = int.from_bytes(stream[position : position + 4], "big", signed=True)
        if size < 0:
            return
        if size >= 8:
            yield stream[position + 4 : position + 4 + size]
        position += 4 + size


def check_responses(sent, frames, apis):
    """Assert that each frame is the complete response of a request that was sent, in order and of its version."""
    rest = requests_in(b"".join(sent))
    for frame in frames:
        correlation_id = int.from_bytes(frame[:4], "big", signed=True)
        matching = (request for request in rest if _head(request)[2] == correlation_id)
        assert any(is_response(frame, _head(request)[0], _head(request)[1], apis) for request in matching), (
            f"{frame[:100]!r} is no response to any request that was sent"
        )


def is_response(frame, key, version, apis):
    api = apis.get(key)
    if api is None:
        return False
    if not api.min_version <= version <= api.max_version:
        if key != API_VERSIONS:
            return False
        version = 0
    try:
        position = skip_tags(frame, 4, len(frame)) if version >= api.response_flexible_from else 4
        _, end = decode(_RESPONSES[key], version, frame, position)
    except MalformedMessage:
        return False
    return end == len(frame)


async def attack(world, network, requests, source, apis, request_types):
    fuzzer = Fuzzer()
    await network.connect("node", sim_scenario.PORT, fuzzer)
    sent = []
    for number in range(source.randint(1, REQUESTS_MAX)):
        cls = source.choice(request_types)
        api = apis[cls.API_KEY]
        version = source.randint(api.min_version, api.max_version)
        frame = mutate(requests.request(cls, version, number), source)
        sent.append(frame)
        cuts = sorted(source.randrange(len(frame) + 1) for _ in range(source.choice((0, 0, 1, 3))))
        for first, last in zip([0, *cuts], [*cuts, len(frame)], strict=True):
            if not fuzzer.lost.done() and first < last:
                fuzzer.connection.write([frame[first:last]])
                await asyncio.sleep(source.choice((0, 0, 0.01)))
    await asyncio.wait((fuzzer.lost,), timeout=source.uniform(0.01, 2.0))
    if not fuzzer.lost.done():
        source.choice((fuzzer.connection.close, fuzzer.connection.abort))()
        await fuzzer.lost
    check_responses(sent, fuzzer.frames, apis)
    return len(fuzzer.frames)


async def run_attack(world):
    source = stream(world.seed, "fuzz")
    ports = world.start("node")
    config = sim_scenario.simulated_config(
        socket__request__max__bytes="1000000",
        queued__max__request__bytes="1000000",
        connections__max__idle__ms="60000",
        auto__create__topics__enable="false",
    )
    node = await world.within(ports, assemble(ports, config))
    network = world.start("client").network
    witness = SimulatedClient(network, "node", sim_scenario.PORT)
    await witness.connect()
    names = ["witness", "target", "compacted"]
    for name in names:
        result = await witness.create_topic(name, 2, {"cleanup.policy": "compact"} if name == "compacted" else {})
        assert result.error_code == 0, result
    apis = served_apis()
    request_types = [cls for key, cls in messages("Request").items() if key in apis]
    assert [cls.API_KEY for cls in request_types] == sorted(apis)
    requests = Requests(source, [(name, witness.topic_ids[name]) for name in names[1:]])
    responses = 0
    for number in range(CONNECTIONS):
        responses += await attack(world, network, requests, source, apis, request_types)
        batch = build_batch([Record(value=b"%d" % number)])
        response = await asyncio.wait_for(witness.produce("witness", 0, batch, acks=-1), 5)
        assert (response.error_code, response.base_offset) == (0, number)
    server = node._server
    while server.quotas.total > 1:  # the last requests are still on their way
        await asyncio.sleep(0.1)
    assert (server.buffers.owned_bytes, server.buffers.reserved_bytes, server.buffers.waiting_count) == (0, 0, 0)
    assert server.failed == 0
    fetched = await witness.fetch("witness", 0, 0)
    assert [record.value for record in records_of(fetched.records, 0)] == [
        b"%d" % number for number in range(CONNECTIONS)
    ]
    witness.close()
    await world.within(ports, node.stop())
    return responses


def test_mutated_requests_affect_only_their_connection(sim_seed):
    loud = sim_scenario.ErrorLogHandler()
    logger = logging.getLogger("ottla")
    logger.addHandler(loud)
    try:
        with World(sim_seed) as world:
            responses = world.run(run_attack(world))
    finally:
        logger.removeHandler(loud)
    assert not loud.errors, "\n".join(loud.errors)
    assert responses > CONNECTIONS // 10  # otherwise connections were closed before anything was parsed
