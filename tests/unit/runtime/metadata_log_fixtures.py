"""Helpers for tests of the metadata log in simulation."""

import json
from collections.abc import Callable, Coroutine
from typing import Any

from ottla.base.ids import Uuid
from ottla.log.config import LogConfig
from ottla.runtime.metadata_log import MetadataLog, MetadataLogFailed
from ottla.sim.world import SimulatedPorts, World
from ottla.wire.batches import decode_records, iterate_batches
from ottla.wire.records.metadata import FeatureLevelRecord, TopicRecord

DIRECTORY = "/data/__cluster_metadata-0"
CLUSTER = "AAAAAAAAAAAAAAAAAAAAAg"
FEATURES = FeatureLevelRecord("metadata.version", 30)


def topic(number: int) -> TopicRecord:
    return TopicRecord(f"t{number}", Uuid(number.to_bytes(16, "big")))


def open_log(
    ports: SimulatedPorts,
    *,
    clean: bool = False,
    failures: list[MetadataLogFailed] | None = None,
    config: LogConfig | None = None,
) -> MetadataLog:
    failed = failures if failures is not None else []
    ports.disk.make_directories("/data")
    ports.disk.fsync_directory("/")  # as the node does when it formats the directory
    return MetadataLog.open(
        ports.disk,
        ports.clock,
        ports.workers,
        DIRECTORY,
        node_id=1,
        clean=clean,
        config=config or LogConfig(),
        on_failed=failed.append,
    )


def run(world: World, scenario: Callable[[SimulatedPorts], Coroutine[Any, Any, Any]]) -> Any:
    """Run a scenario as a process of the simulated node, which exits afterwards."""
    ports = world.start("node")

    async def within() -> Any:
        return await world.within(ports, scenario(ports))

    result = world.run(within())
    world.exit("node")
    return result


def batches(world: World) -> list[tuple[int, int, bool, list[bytes | None]]]:
    """Return base offset, leader epoch, control flag and record values of each batch in the only segment."""
    data = dict(world.storage("node").files())[f"{DIRECTORY}/{0:020d}.log"]
    found = []
    for position, header in iterate_batches(data):
        records = decode_records(data[position : position + header.size])
        found.append((header.base_offset, header.leader_epoch, header.is_control, [record.value for record in records]))
    return found


def quorum_state(world: World) -> dict[str, Any]:
    return json.loads(dict(world.storage("node").files())[f"{DIRECTORY}/quorum-state"])


async def open_and_close(ports: SimulatedPorts) -> int:
    log = open_log(ports)
    await log.close()
    return log.epoch
