"""Opening a metadata log: snapshots, voters, and corrupt files."""

from collections.abc import Iterator
from typing import Any

import pytest

from ottla.runtime.metadata_log import CorruptMetadataLog
from ottla.runtime.snapshots import SnapshotId, encode_snapshot
from ottla.sim.world import SimulatedPorts, World
from ottla.wire.records.control import VotersRecord
from ottla.wire.records.metadata import NoOpRecord
from tests.unit.runtime.metadata_log_fixtures import (
    CLUSTER,
    DIRECTORY,
    FEATURES,
    open_and_close,
    open_log,
    quorum_state,
    run,
    topic,
)


@pytest.fixture
def world() -> Iterator[World]:
    with World(7) as created:
        yield created


def write_snapshot(ports: SimulatedPorts, records: list[Any], end_offset: int, epoch: int, **more: Any) -> None:
    ports.disk.make_directories(DIRECTORY)
    data = encode_snapshot(records, metadata_version=30, now_ms=5, epoch=epoch, **more)
    ports.disk.write_atomically(f"{DIRECTORY}/{SnapshotId(end_offset, epoch).file_name}", data)


def test_records_in_the_snapshot_are_not_replayed_from_the_log(world: World) -> None:
    """This holds even if the log still has them."""

    async def first(ports: SimulatedPorts) -> None:
        log = open_log(ports)
        for number in range(1, 5):
            await log.append([topic(number)])
        await log.close()
        write_snapshot(ports, [FEATURES, topic(9)], 3, 1)

    run(world, first)

    async def second(ports: SimulatedPorts) -> list[Any]:
        log = open_log(ports)
        return [*log.replay_all(), log.end_offset]

    assert run(world, second) == [(2, FEATURES), (2, topic(9)), (3, topic(3)), (4, topic(4)), 6]


def test_log_that_ends_before_its_snapshot_continues_after_it(world: World) -> None:
    """As after the loss of the log: offsets and epochs must not be reused."""

    async def first(ports: SimulatedPorts) -> None:
        log = open_log(ports)
        await log.append([topic(1)])
        await log.close()
        write_snapshot(ports, [FEATURES, topic(9)], 100, 7)

    run(world, first)

    async def second(ports: SimulatedPorts) -> list[Any]:
        log = open_log(ports)
        found = [*log.replay_all(), log.epoch]
        return [*found, await log.append([topic(10)])]

    assert run(world, second) == [(99, FEATURES), (99, topic(9)), 8, 101]

    async def third(ports: SimulatedPorts) -> list[Any]:
        return [record for _, record in open_log(ports).replay_all()]

    assert run(world, third) == [FEATURES, topic(9), topic(10)]


def test_voters_in_the_log_are_preserved(world: World) -> None:
    """As formatted by Kafka with --standalone: quorum-state has version 1, and the node must be the only voter."""
    voters = VotersRecord(0, [VotersRecord.Voter(1)])
    ports = world.start("node")
    write_snapshot(ports, [], 0, 0, kraft_version=1, voters=voters)
    world.exit("node")
    assert run(world, open_and_close) == 1
    assert quorum_state(world) == {
        "leaderId": 1,
        "leaderEpoch": 1,
        "votedId": -1,
        "votedDirectoryId": "AAAAAAAAAAAAAAAAAAAAAA",
        "data_version": 1,
    }


SNAPSHOT = f"{5:020d}-{1:010d}.checkpoint"
TWO_VOTERS = VotersRecord(0, [VotersRecord.Voter(1), VotersRecord.Voter(2)])


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("quorum-state", b"not json", "quorum-state"),
        ("quorum-state", b'{"data_version":0}', "quorum-state"),
        (
            "quorum-state",
            b'{"leaderId":2,"leaderEpoch":3,"currentVoters":[{"voterId":1},{"voterId":2}],"data_version":0}',
            r"quorum with other voters \[2\]",
        ),
        (SNAPSHOT, b"torn", SNAPSHOT),
        (SNAPSHOT, b"", SNAPSHOT),
        (SNAPSHOT, encode_snapshot([NoOpRecord()], metadata_version=30, now_ms=0)[:-10], SNAPSHOT),
        (SNAPSHOT, bytes(reversed(encode_snapshot([NoOpRecord()], metadata_version=30, now_ms=0))), SNAPSHOT),
        (
            SNAPSHOT,
            encode_snapshot([], metadata_version=30, now_ms=0, kraft_version=1, voters=TWO_VOTERS),
            r"quorum with other voters \[2\]",
        ),
    ],
)
def test_metadata_log_rejects_corrupt_files_and_other_voters(
    world: World, name: str, data: bytes, message: str
) -> None:
    """The log is not recreated, which would lose metadata that others rely on."""
    ports = world.start("node")
    ports.disk.make_directories(DIRECTORY)
    ports.disk.write_atomically(f"{DIRECTORY}/{name}", data)
    with pytest.raises(CorruptMetadataLog, match=message):
        open_log(ports)


def test_metadata_log_rejects_a_log_without_its_first_segments(world: World) -> None:
    ports = world.start("node")
    ports.disk.make_directories(DIRECTORY)
    ports.disk.open(f"{DIRECTORY}/{50:020d}.log", create=True).close()
    log = open_log(ports)
    with pytest.raises(CorruptMetadataLog, match="50"):
        log.load(CLUSTER)
