"""Who is let in, who waits and who is refused."""

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


def test_settings_come_from_all_layers():
    layers = BrokerLayers(
        {"max.connections": "9", "listener.name.inside.max.connections": "7"},
        {"max.connections.per.ip": "5"},
        {"max.connections.per.ip.overrides": "10.0.0.1:3, [::1]:4"},
    )
    assert connection_settings(layers, ["INSIDE", "OUTSIDE"]) == ConnectionSettings(
        9, 5, {"10.0.0.1": 3, "::1": 4}, {"INSIDE": 7}
    )


def test_rates_come_from_all_layers():
    layers = BrokerLayers(
        {"max.connection.creation.rate": "9", "listener.name.inside.max.connection.creation.rate": "7"}, {}, {}
    )
    settings = connection_settings(layers, ["INSIDE", "OUTSIDE"])
    assert (settings.total_rate, settings.per_listener_rate) == (9, {"INSIDE": 7})


def test_a_pace_lets_a_burst_through_and_then_one_after_the_other():
    pace = RateLimiter(2, 0.0)
    assert [pace.acquire(0.0) for _ in range(23)] == [0.0] * 20 + [0.5, 1.0, 1.5]
    assert pace.acquire(1.5) == 0.5
    pace.release()
    assert pace.acquire(1.5) == 0.5
    assert [pace.acquire(1000.0) for _ in range(21)] == [0.0] * 20 + [0.5]
    assert [RateLimiter(0, 0.0).acquire(5.0), RateLimiter((1 << 31) - 1, 0.0).acquire(0.0)] == [float("inf"), 0.0]


def test_brokers_wait_for_their_listener_only():
    paces = ConnectionRateLimiter(
        ConnectionSettings(9, 9, total_rate=1, per_listener_rate={"BROKERS": 2}), 0.0, "BROKERS"
    )
    assert [paces.acquire("CLIENTS", 0.0) for _ in range(12)] == [0.0] * 10 + [1.0, 2.0]
    assert [paces.acquire("BROKERS", 0.0) for _ in range(21)] == [0.0] * 20 + [0.5]


@pytest.mark.parametrize("text", ["here", "host:", ":5", "host:many", "host:-1", "a:1,b"])
def test_overrides_that_are_none(text):
    with pytest.raises(ValueError, match="must be a list of host:number"):
        read_overrides(text)


def test_an_address_has_its_share_and_gets_it_back():
    counts = ConnectionQuotas(ConnectionSettings(100, 2, {"special": 1}))
    assert [counts.on_accepted("L", "a") for _ in range(3)] == [ADMITTED, ADMITTED, REJECTED]
    assert [counts.on_accepted("L", "special") for _ in range(2)] == [ADMITTED, REJECTED]
    counts.on_closed("L", "a")
    assert counts.on_accepted("L", "a") is ADMITTED
    assert (counts.total, counts.by_listener) == (3, {"L": 3})


def test_places_of_all_and_of_a_listener():
    counts = ConnectionQuotas(ConnectionSettings(3, 100, {}, {"SMALL": 1}))
    assert [counts.on_accepted("SMALL", "a") for _ in range(2)] == [ADMITTED, WAITING]
    assert [counts.on_accepted("LARGE", "a") for _ in range(3)] == [ADMITTED, ADMITTED, WAITING]
    counts.on_closed("LARGE", "a")
    assert (counts.has_slot("SMALL"), counts.has_slot("LARGE")) == (False, True)


def test_brokers_come_in_where_clients_took_all_places():
    counts = ConnectionQuotas(ConnectionSettings(1, 100), protected_listener="BROKERS")
    assert counts.on_accepted("CLIENTS", "a") is ADMITTED
    assert not counts.is_closable("CLIENTS")
    assert counts.on_accepted("BROKERS", "b") is ADMITTED
    assert (counts.is_closable("CLIENTS"), counts.is_closable("BROKERS")) == (True, False)


def test_a_line_is_logged_once_in_a_second_and_the_others_are_counted(caplog):
    times = iter((0.0, 0.2, 0.9, 1.0, 5.0))
    occasional = RateLimitedLog(logging.getLogger("test.occasional"), logging.WARNING, lambda: next(times))
    with caplog.at_level(logging.WARNING):
        for number in range(5):
            occasional.emit("it was %d", number)
    assert [record.getMessage() for record in caplog.records] == [
        "it was 0",
        "it was 3 (2 similar messages suppressed)",
        "it was 4",
    ]


class Timers:
    """A loop whose one timer rings when the test says so."""

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


def test_lag_is_how_late_the_timer_rings():
    loop, heard = Timers(), []
    lag = LoopLag(loop, heard.append)
    lag.start()
    for late in (0.0, 0.0005, 0.03, 9.0):
        loop.now = loop.due + late
        loop.callback()
    assert [round(seconds, 4) for seconds in heard] == [0.0, 0.0005, 0.03, 9.0]
    assert lag.counts == [2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1]
    assert round(lag.sum_seconds, 4) == 9.0305
    lag.stop()
    assert loop.callback is None


def config_with(**settings):
    given = {"listeners": "PLAINTEXT://node:9092", "log.dirs": "/data", **settings}
    return node_config(given, directory="/", canonical_host=lambda: "node")


async def connected_at(world, network, count):
    """When each of so many clients, who come at once, has its first answer; None where it is sent away."""
    loop = asyncio.get_running_loop()
    began, times = loop.time(), {}

    async def come(number):
        client = SimulatedClient(network, "node", 9092)
        try:
            await client.connect()
            await client.call(ApiVersionsRequest(), ApiVersionsResponse, 0)
            times[number] = round(loop.time() - began)
        except Disconnected:
            times[number] = None
        client.close()

    await asyncio.gather(*(come(number) for number in range(count)))
    return [times[number] for number in sorted(times)]


def test_who_comes_too_fast_waits_and_too_many_are_sent_away():
    async def story(world):
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
        world.run(story(world))


def test_a_rate_changes_while_some_wait():
    async def story(world):
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
        world.run(story(world))
