"""Connection limits, the rate-limited log and the measurement of event loop lag."""

import asyncio
import logging

import pytest

from ottla.metadata.configs import BrokerLayers
from ottla.node.assemble import assemble
from ottla.node.config import node_config
from ottla.server.connection_quotas import (
    Admission,
    ConnectionQuotas,
    ConnectionRateLimiter,
    ConnectionSettings,
    RateLimiter,
    connection_settings,
    read_overrides,
)
from ottla.server.loop_lag import LoopLag
from ottla.server.rate_limited_log import RateLimitedLog
from ottla.sim.client import Disconnected, SimulatedClient
from ottla.sim.world import World
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

ADMITTED, WAITING, REJECTED = Admission.ADMITTED, Admission.WAITING, Admission.REJECTED


def test_connection_settings_merge_all_config_layers():
    layers = BrokerLayers(
        {"max.connections": "9", "listener.name.inside.max.connections": "7"},
        {"max.connections.per.ip": "5"},
        {"max.connections.per.ip.overrides": "10.0.0.1:3, [::1]:4"},
    )
    assert connection_settings(layers, ["INSIDE", "OUTSIDE"]) == ConnectionSettings(
        9, 5, {"10.0.0.1": 3, "::1": 4}, {"INSIDE": 7}
    )


def test_connection_rates_merge_all_config_layers():
    layers = BrokerLayers(
        {"max.connection.creation.rate": "9", "listener.name.inside.max.connection.creation.rate": "7"}, {}, {}
    )
    settings = connection_settings(layers, ["INSIDE", "OUTSIDE"])
    assert (settings.total_rate, settings.per_listener_rate) == (9, {"INSIDE": 7})


def test_rate_limiter_allows_a_burst_and_then_spreads_connections():
    limiter = RateLimiter(2, 0.0)
    assert [limiter.acquire(0.0) for _ in range(23)] == [0.0] * 20 + [0.5, 1.0, 1.5]
    assert limiter.acquire(1.5) == 0.5
    limiter.release()
    assert limiter.acquire(1.5) == 0.5
    assert [limiter.acquire(1000.0) for _ in range(21)] == [0.0] * 20 + [0.5]
    assert [RateLimiter(0, 0.0).acquire(5.0), RateLimiter((1 << 31) - 1, 0.0).acquire(0.0)] == [float("inf"), 0.0]


def test_protected_listener_is_exempt_from_the_total_rate():
    limiter = ConnectionRateLimiter(
        ConnectionSettings(9, 9, total_rate=1, per_listener_rate={"BROKERS": 2}), 0.0, "BROKERS"
    )
    assert [limiter.acquire("CLIENTS", 0.0) for _ in range(12)] == [0.0] * 10 + [1.0, 2.0]
    assert [limiter.acquire("BROKERS", 0.0) for _ in range(21)] == [0.0] * 20 + [0.5]


@pytest.mark.parametrize("text", ["here", "host:", ":5", "host:many", "host:-1", "a:1,b"])
def test_read_overrides_rejects_other_formats(text):
    with pytest.raises(ValueError, match="must be a list of host:number"):
        read_overrides(text)


def test_address_limit_rejects_surplus_and_frees_slots():
    counts = ConnectionQuotas(ConnectionSettings(100, 2, {"special": 1}))
    assert [counts.on_accepted("L", "a") for _ in range(3)] == [ADMITTED, ADMITTED, REJECTED]
    assert [counts.on_accepted("L", "special") for _ in range(2)] == [ADMITTED, REJECTED]
    counts.on_closed("L", "a")
    assert counts.on_accepted("L", "a") is ADMITTED
    assert (counts.total, counts.by_listener) == (3, {"L": 3})


def test_total_and_listener_limits_make_connections_wait():
    counts = ConnectionQuotas(ConnectionSettings(3, 100, {}, {"SMALL": 1}))
    assert [counts.on_accepted("SMALL", "a") for _ in range(2)] == [ADMITTED, WAITING]
    assert [counts.on_accepted("LARGE", "a") for _ in range(3)] == [ADMITTED, ADMITTED, WAITING]
    counts.on_closed("LARGE", "a")
    assert (counts.has_slot("SMALL"), counts.has_slot("LARGE")) == (False, True)


def test_protected_listener_is_exempt_from_the_total_limit():
    counts = ConnectionQuotas(ConnectionSettings(1, 100), protected_listener="BROKERS")
    assert counts.on_accepted("CLIENTS", "a") is ADMITTED
    assert not counts.is_closable("CLIENTS")
    assert counts.on_accepted("BROKERS", "b") is ADMITTED
    assert (counts.is_closable("CLIENTS"), counts.is_closable("BROKERS")) == (True, False)


def test_rate_limited_log_emits_once_a_second_and_counts_the_rest(caplog):
    times = iter((0.0, 0.2, 0.9, 1.0, 5.0))
    limited_log = RateLimitedLog(logging.getLogger("test.limited_log"), logging.WARNING, lambda: next(times))
    with caplog.at_level(logging.WARNING):
        for number in range(5):
            limited_log.emit("it was %d", number)
    assert [record.getMessage() for record in caplog.records] == [
        "it was 0",
        "it was 3 (2 similar messages suppressed)",
        "it was 4",
    ]


class Timers:
    """A loop with one timer, fired by the test."""

    def __init__(self):
        self.now = 0.0
        self.due = self.callback = None

    def time(self):
        return self.now

    def call_at(self, when, callback):
        self.due, self.callback = when, callback
        return self

    def cancel(self):
        self.callback = None


def test_loop_lag_is_how_late_the_timer_fires():
    loop, measured = Timers(), []
    lag = LoopLag(loop, measured.append)
    lag.start()
    for late in (0.0, 0.0005, 0.03, 9.0):
        loop.now = loop.due + late
        loop.callback()
    assert [round(seconds, 4) for seconds in measured] == [0.0, 0.0005, 0.03, 9.0]
    assert lag.counts == [2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1]
    assert round(lag.sum_seconds, 4) == 9.0305
    lag.stop()
    assert loop.callback is None


def config_with(**settings):
    given = {"listeners": "PLAINTEXT://node:9092", "log.dirs": "/data", **settings}
    return node_config(given, directory="/", canonical_host=lambda: "node")


async def connected_at(world, network, count):
    """Connect `count` clients at once; return the second of each one's first response, None if it was rejected."""
    loop = asyncio.get_running_loop()
    began, times = loop.time(), {}

    async def connect(number):
        client = SimulatedClient(network, "node", 9092)
        try:
            await client.connect()
            await client.call(ApiVersionsRequest(), ApiVersionsResponse, 0)
            times[number] = round(loop.time() - began)
        except Disconnected:
            times[number] = None
        client.close()

    await asyncio.gather(*(connect(number) for number in range(count)))
    return [times[number] for number in sorted(times)]


def test_connections_over_the_rate_are_delayed_and_over_the_backlog_rejected():
    async def scenario(world):
        ports = world.start("node")
        config = config_with(**{"max.connection.creation.rate": "1", "socket.listen.backlog.size": "3"})
        node = await world.within(ports, assemble(ports, config))
        network = world.start("client").network
        times = await connected_at(world, network, 15)
        assert sorted(time for time in times if time is not None) == [0] * 10 + [1, 2, 3]
        assert (times.count(None), node._server.rejected) == (2, 2)
        assert await connected_at(world, network, 1) in ([0], [1])
        await world.within(ports, node.stop())

    with World(3) as world:
        world.run(scenario(world))


def test_rate_change_applies_to_delayed_connections():
    async def scenario(world):
        ports = world.start("node")
        node = await world.within(ports, assemble(ports, config_with(**{"max.connection.creation.rate": "0"})))
        network = world.start("client").network
        waiting = asyncio.ensure_future(connected_at(world, network, 1))
        await asyncio.sleep(100)
        assert not waiting.done()
        change = AlterableConfig(name="max.connection.creation.rate", config_operation=0, value="5")
        resource = AlterConfigsResource(resource_type=4, resource_name="", configs=[change])
        await node.broker.controller.submit(IncrementalAlterConfigsRequest(resources=[resource]))
        assert 100 <= (await waiting)[0] <= 110
        await world.within(ports, node.stop())

    with World(4) as world:
        world.run(scenario(world))
