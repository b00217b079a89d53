"""Metadata responses to requests found by the fuzzer. The expectations were recorded from Apache Kafka 4.3."""

import pytest

from ottla.node.assemble import assemble
from ottla.sim.client import SimulatedClient
from ottla.sim.world import World
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.sim import sim_scenario

ID = b"a" * 16
NO_ID = bytes(16)


def result_of(call):
    """Return what `call(client)` returns on a node with the topic `known`."""

    async def scenario(world):
        ports = world.start("node")
        node = await world.within(
            ports, assemble(ports, sim_scenario.simulated_config(auto__create__topics__enable="false"))
        )
        client = SimulatedClient(world.start("client").network, "node", sim_scenario.PORT)
        await client.connect()
        assert (await client.create_topic("known", 1)).error_code == 0
        response = await call(client)
        await world.within(ports, node.stop())
        return response

    with World(1) as world:
        return world.run(scenario(world))


def metadata(version, *topics):
    async def call(client):
        ids = {"known": client.topic_ids["known"]}
        requested = [MetadataRequestTopic(name=name, topic_id=ids.get(topic_id, topic_id)) for name, topic_id in topics]
        response = await client.call(MetadataRequest(topics=requested), MetadataResponse, version)
        found = [
            (topic.error_code, topic.name, topic.topic_id if topic.error_code else None) for topic in response.topics
        ]
        return (
            found,
            len(response.brokers),
            response.cluster_id is not None,
            response.controller_id,
            response.error_code,
        )

    return result_of(call)


@pytest.mark.parametrize("version", [10, 11])
def test_topic_ids_are_rejected_before_version_12(version):
    """The complete request is rejected, with an error for each topic in request order."""
    nothing = (0, False, -1, 0)
    assert metadata(version, ("known", NO_ID), (None, ID)) == ([(42, "known", NO_ID), (42, "", ID)], *nothing)
    assert metadata(version, (None, NO_ID), ("x", NO_ID), ("x", NO_ID)) == (
        [(42, "", NO_ID), (42, "x", NO_ID), (42, "x", NO_ID)],
        *nothing,
    )
    assert metadata(version, ("known", ID)) == ([(42, "known", ID)], *nothing)


@pytest.mark.parametrize("version", [12, 13])
def test_name_is_ignored_if_topic_id_is_set(version):
    served = (1, True, 1, 0)
    assert metadata(version, ("nope", NO_ID), (None, ID), (None, ID)) == ([(100, None, ID)], *served)
    assert metadata(version, ("nope", ID), (None, NO_ID)) == ([(100, None, ID)], *served)
    assert metadata(version, ("nope", "known")) == ([(0, "known", None)], *served)


@pytest.mark.parametrize("version", [12, 13])
def test_topic_without_name_and_id(version):
    error = -1 if version >= 13 else 0
    assert metadata(version, ("known", NO_ID), (None, NO_ID)) == (
        [(-1, "known", NO_ID), (-1, "", NO_ID)],
        0,
        False,
        -1,
        error,
    )
