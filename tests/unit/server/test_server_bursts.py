"""A burst of requests on one connection does not starve other connections."""

import asyncio
from typing import Any

import pytest

from ottla.node.assemble import Node, assemble
from ottla.node.config import node_config
from ottla.runtime import slice_scheduler
from ottla.sim.client import SimulatedClient
from ottla.sim.world import World
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

REQUESTS = 200


def test_burst_is_answered_in_order_and_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLICE_SECONDS", "SINGLE_CLIENT_SLICE_SECONDS"):
        monkeypatch.setattr(slice_scheduler, name, 0)  # each request takes longer

    async def scenario(world: World) -> Any:
        ports = world.start("node")
        config = node_config(
            {"listeners": "PLAINTEXT://node:9092", "log.dirs": "/data"}, directory="/", canonical_host=lambda: "node"
        )
        node: Node = await world.within(ports, assemble(ports, config))
        network = world.start("client").network
        many, few = SimulatedClient(network, "node", 9092), SimulatedClient(network, "node", 9092)
        await many.connect()
        await few.connect()
        slices = 0
        resume = world.loop.call_soon

        def call_soon(callback: Any, *args: Any, **options: Any) -> Any:
            nonlocal slices
            slices += getattr(callback, "__name__", "") == "_on_slice"
            return resume(callback, *args, **options)

        node.broker.loop.call_soon = call_soon  # type: ignore[method-assign]
        responses = await asyncio.gather(
            *(many.call(ApiVersionsRequest(), ApiVersionsResponse, 0) for _ in range(REQUESTS)),
            few.call(ApiVersionsRequest(), ApiVersionsResponse, 0),
        )
        assert [response.error_code for response in responses] == [0] * (REQUESTS + 1)
        del node.broker.loop.call_soon
        await world.within(ports, node.stop())
        return slices

    with World(9) as world:
        assert world.run(scenario(world)) > 5
