"""Data directories: formatting of new ones, checks of existing ones, and errors that name the fix."""

import json
import random
from typing import Any

import pytest

from ottla.base.ids import Uuid, uuid_from_text, uuid_text
from ottla.node.storage import Storage, StorageError, prepare_storage
from ottla.runtime.snapshots import decode_snapshot
from ottla.sim.disk import SimulatedDisk
from ottla.sim.storage import Storage as SimulatedStorage
from ottla.wire.records.metadata import FeatureLevelRecord

CLUSTER = uuid_text(Uuid(b"c" * 16))
OTHER = uuid_text(Uuid(b"o" * 16))
BOOTSTRAP = [FeatureLevelRecord("metadata.version", 30), FeatureLevelRecord("eligible.leader.replicas.version", 1)]


class CountingRng:
    def __init__(self, start: int = 0) -> None:
        self.count = start

    def random_bytes(self, size: int) -> bytes:
        self.count += 1
        return self.count.to_bytes(size, "big")

    def below(self, limit: int) -> int:
        return 0


def numbered(number: int) -> Uuid:
    raw = bytearray(number.to_bytes(16, "big"))
    raw[6] |= 0x40
    raw[8] |= 0x80
    return Uuid(bytes(raw))


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk()


@pytest.fixture
def rng() -> CountingRng:
    return CountingRng()


def prepare(disk: SimulatedDisk, rng: CountingRng, *dirs: str, metadata: str | None = None, **changes: Any) -> Storage:
    values: dict[str, Any] = {"node_id": 1, "cluster_id": None} | changes
    return prepare_storage(disk, rng, dirs, metadata or dirs[0], now_ms=5, **values)


def released(storage: Storage) -> Storage:
    storage.release()
    return storage


def meta(disk: SimulatedDisk, path: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in disk.read(f"{path}/meta.properties").decode().splitlines())


def write_meta(disk: SimulatedDisk, path: str, **changes: str | None) -> None:
    values = {"version": "1", "cluster.id": CLUSTER, "node.id": "1", "directory.id": uuid_text(numbered(77))}
    values |= {name.replace("_", "."): value for name, value in changes.items()}
    disk.make_directories(path)
    text = "#\n#Sun Nov 15 09:33:27 UTC 2026\n" + "".join(
        f"{name}={value}\n" for name, value in values.items() if value is not None
    )
    disk.write_atomically(f"{path}/meta.properties", text.encode())


def test_new_directories_are_formatted(disk: SimulatedDisk, rng: CountingRng) -> None:
    """They get one cluster id, an id each, and the first records of a new cluster."""
    storage = prepare(disk, rng, "/a", "/b/c")
    cluster = uuid_text(numbered(1))
    assert (storage.cluster_id, storage.node_id, storage.previous_broker_epoch) == (cluster, 1, -1)
    assert [(found.path, found.directory_id, found.is_clean) for found in storage.directories] == [
        ("/a", numbered(2), False),
        ("/b/c", numbered(3), False),
    ]
    assert storage.metadata_directory is storage.directories[0]
    assert storage.metadata_log_path == "/a/__cluster_metadata-0"
    assert meta(disk, "/b/c") == {
        "cluster.id": cluster,
        "directory.id": uuid_text(numbered(3)),
        "node.id": "1",
        "version": "1",
    }
    assert storage.read_bootstrap_records(disk) == BOOTSTRAP
    assert decode_snapshot(disk.read("/b/c/bootstrap.checkpoint")).records == BOOTSTRAP


def test_second_start_changes_nothing(disk: SimulatedDisk, rng: CountingRng) -> None:
    first = released(prepare(disk, rng, "/a", "/b"))
    before = dict(disk.storage.files())
    second = released(prepare(disk, CountingRng(500), "/a", "/b"))
    assert second.cluster_id == first.cluster_id
    assert [found.directory_id for found in second.directories] == [found.directory_id for found in first.directories]
    assert dict(disk.storage.files()) == before


def test_given_cluster_id_is_used(disk: SimulatedDisk, rng: CountingRng) -> None:
    assert released(prepare(disk, rng, "/a", cluster_id=CLUSTER)).cluster_id == CLUSTER
    assert released(prepare(disk, rng, "/a", cluster_id=CLUSTER)).cluster_id == CLUSTER
    with pytest.raises(StorageError, match="22 characters"):
        prepare(disk, rng, "/new", cluster_id="short")


def test_metadata_log_may_have_a_separate_directory(disk: SimulatedDisk, rng: CountingRng) -> None:
    storage = prepare(disk, rng, "/a", "/b", metadata="/m")
    assert [found.path for found in storage.directories] == ["/m", "/a", "/b"]
    assert storage.metadata_log_path == "/m/__cluster_metadata-0"


def test_directory_formatted_by_kafka_is_accepted(disk: SimulatedDisk, rng: CountingRng) -> None:
    write_meta(disk, "/a")
    storage = prepare(disk, rng, "/a")
    assert (storage.cluster_id, storage.directories[0].directory_id) == (CLUSTER, numbered(77))
    assert storage.read_bootstrap_records(disk) == BOOTSTRAP


def test_new_directory_joins_the_cluster_of_existing_ones(disk: SimulatedDisk, rng: CountingRng) -> None:
    write_meta(disk, "/a")
    storage = prepare(disk, rng, "/a", "/new")
    assert storage.cluster_id == CLUSTER
    assert meta(disk, "/new")["cluster.id"] == CLUSTER
    assert storage.directories[1].directory_id == numbered(1)


def test_directory_without_an_id_gets_one(disk: SimulatedDisk, rng: CountingRng) -> None:
    write_meta(disk, "/a", directory_id=None)
    assert prepare(disk, rng, "/a").directories[0].directory_id == numbered(1)
    assert uuid_from_text(meta(disk, "/a")["directory.id"]) == numbered(1)
    assert not disk.exists("/a/bootstrap.checkpoint")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"node_id": "2"}, "/a belongs to node 2, not to node 1; set node.id=2"),
        ({"version": "0"}, "version is 0"),
        ({"version": None}, "version is missing"),
        ({"cluster_id": None}, "cluster.id is missing"),
        ({"cluster_id": ""}, "cluster.id is empty"),
        ({"node_id": None}, "node.id is missing"),
        ({"node_id": "x"}, "'x'"),
        ({"directory_id": "AAAA"}, "'AAAA'"),
    ],
)
def test_invalid_meta_properties_are_rejected(
    disk: SimulatedDisk, rng: CountingRng, changes: dict[str, Any], message: str
) -> None:
    write_meta(disk, "/a", **changes)
    with pytest.raises(StorageError) as caught:
        prepare(disk, rng, "/a")
    assert message in str(caught.value)


def test_directory_of_another_cluster_is_rejected(disk: SimulatedDisk, rng: CountingRng) -> None:
    write_meta(disk, "/a")
    with pytest.raises(StorageError, match=f"belongs to cluster {CLUSTER}, not to {OTHER}"):
        prepare(disk, rng, "/a", cluster_id=OTHER)


def test_directories_of_two_clusters_are_rejected(disk: SimulatedDisk, rng: CountingRng) -> None:
    write_meta(disk, "/a")
    write_meta(disk, "/b", cluster_id=OTHER, directory_id=uuid_text(numbered(78)))
    with pytest.raises(StorageError, match=f"/b belongs to cluster {OTHER}, but /a to {CLUSTER}"):
        prepare(disk, rng, "/a", "/b")


def test_copied_directory_is_rejected(disk: SimulatedDisk, rng: CountingRng) -> None:
    write_meta(disk, "/a")
    write_meta(disk, "/b")
    with pytest.raises(StorageError, match="/b and /a have the same directory id"):
        prepare(disk, rng, "/a", "/b")


def test_missing_metadata_directory_does_not_create_a_new_cluster(disk: SimulatedDisk, rng: CountingRng) -> None:
    """That would orphan the other directories: an unmounted disk looks the same."""
    write_meta(disk, "/b")
    with pytest.raises(StorageError, match="/a is empty, but /b already belong"):
        prepare(disk, rng, "/a", "/b")
    assert not disk.exists("/a")


@pytest.mark.parametrize("found", ["__cluster_metadata-0/quorum-state", "t-0/partition.metadata"])
def test_logs_without_meta_properties_are_rejected(disk: SimulatedDisk, rng: CountingRng, found: str) -> None:
    disk.make_directories(f"/a/{found.partition('/')[0]}")
    disk.write_atomically(f"/a/{found}", b"x")
    with pytest.raises(StorageError, match=r"contains .*-0 but no meta.properties"):
        prepare(disk, rng, "/a")


def test_directory_with_unrelated_files_is_formatted(disk: SimulatedDisk, rng: CountingRng) -> None:
    disk.make_directories("/a/lost+found")
    prepare(disk, rng, "/a")
    assert disk.exists("/a/meta.properties")


def test_directory_is_used_by_one_node_at_a_time(disk: SimulatedDisk, rng: CountingRng) -> None:
    """A node that is rejected leaves no locks behind."""
    first = prepare(disk, rng, "/b")
    with pytest.raises(StorageError, match="/b is in use by another node"):
        prepare(disk, rng, "/a", "/b")
    first.release()
    write_meta(disk, "/a", node_id="2")
    with pytest.raises(StorageError, match="belongs to node 2"):
        prepare(disk, rng, "/a", "/b")
    prepare(disk, rng, "/b").release()


def test_file_in_place_of_a_directory_is_rejected(disk: SimulatedDisk, rng: CountingRng) -> None:
    disk.write_atomically("/a", b"file")
    with pytest.raises(StorageError, match="/a"):
        prepare(disk, rng, "/a")


def test_clean_shutdown_marker_applies_to_one_start(disk: SimulatedDisk, rng: CountingRng) -> None:
    storage = prepare(disk, rng, "/a", "/b")
    storage.mark_clean(disk, 233)
    storage.release()
    assert (
        disk.read("/a/.kafka_cleanshutdown")
        == disk.read("/b/.kafka_cleanshutdown")
        == b'{"version":0,"brokerEpoch":233}'
    )
    second = released(prepare(disk, rng, "/a", "/b"))
    assert (second.previous_broker_epoch, [found.is_clean for found in second.directories]) == (233, [True, True])
    third = released(prepare(disk, rng, "/a", "/b"))
    assert (third.previous_broker_epoch, [found.is_clean for found in third.directories]) == (-1, [False, False])


@pytest.mark.parametrize(
    ("markers", "clean", "epoch"),
    [
        ((b'{"version":0,"brokerEpoch":5}', None), [True, False], -1),
        ((b'{"version":0,"brokerEpoch":5}', b'{"version":0,"brokerEpoch":6}'), [True, True], -1),
        ((b"", b""), [True, True], -1),
        ((b"[]", b"{}"), [True, True], -1),
    ],
)
def test_markers_with_different_epochs(
    disk: SimulatedDisk, rng: CountingRng, markers: tuple[bytes | None, ...], clean: list[bool], epoch: int
) -> None:
    """Each directory has its own marker; the broker epoch needs equal markers. Older versions write empty ones."""
    released(prepare(disk, rng, "/a", "/b"))
    for path, data in zip(("/a", "/b"), markers, strict=True):
        if data is not None:
            disk.write_atomically(f"{path}/.kafka_cleanshutdown", data)
    storage = prepare(disk, rng, "/a", "/b")
    assert ([found.is_clean for found in storage.directories], storage.previous_broker_epoch) == (clean, epoch)


def test_corrupt_bootstrap_records_are_rejected(disk: SimulatedDisk, rng: CountingRng) -> None:
    storage = prepare(disk, rng, "/a")
    disk.write_atomically("/a/bootstrap.checkpoint", b"torn")
    with pytest.raises(StorageError, match=r"bootstrap\.checkpoint is corrupt"):
        storage.read_bootstrap_records(disk)


def test_formatting_is_completed_after_a_crash_at_any_step() -> None:
    """The next start completes it, with one cluster id for all directories."""
    for at in range(1, 60):
        disk = SimulatedDisk()
        died = [False]
        disk.crash_in(at, lambda disk=disk, died=died: (died.__setitem__(0, True), disk.crash("flushed"))[0])
        try:
            prepare(disk, CountingRng(), "/x/a", "/x/b").release()
        except BaseException:
            assert died[0]
        survivor = SimulatedDisk(disk.storage)
        storage = prepare(survivor, CountingRng(900), "/x/a", "/x/b")
        ids = {meta(survivor, path)["cluster.id"] for path in ("/x/a", "/x/b")}
        assert ids == {storage.cluster_id}
        assert storage.read_bootstrap_records(survivor) == BOOTSTRAP
        if not died[0]:
            return
    raise AssertionError("formatting has more steps than expected")


def test_formatted_directory_survives_a_power_failure() -> None:
    """Its parent directories do too."""
    for seed in range(20):
        disk = SimulatedDisk(SimulatedStorage(random.Random(seed)))
        first = prepare(disk, CountingRng(), "/x/y/a", "/x/y/b")
        disk.crash("flushed")
        second = prepare(SimulatedDisk(disk.storage), CountingRng(900), "/x/y/a", "/x/y/b")
        assert second.cluster_id == first.cluster_id


def test_clean_shutdown_marker_has_kafkas_format(disk: SimulatedDisk, rng: CountingRng) -> None:
    storage = prepare(disk, rng, "/a")
    storage.mark_clean(disk, 7)
    assert json.loads(disk.read("/a/.kafka_cleanshutdown")) == {"version": 0, "brokerEpoch": 7}


def test_directory_with_other_files_is_rejected_and_left_unchanged(disk: SimulatedDisk, rng: CountingRng) -> None:
    for number in range(4):
        disk.make_directories("/home")
        disk.write_atomically(f"/home/{number}.txt", b"mine")
    before = dict(disk.storage.files())
    with pytest.raises(StorageError, match=r"contains 0.txt, 1.txt, 2.txt, ...; choose a new or empty directory"):
        prepare(disk, rng, "/new/a", "/home")
    assert dict(disk.storage.files()) == before
    assert not disk.exists("/new")


@pytest.mark.parametrize("name", ["lost+found/x", "bootstrap.checkpoint", "meta.properties.tmp"])
def test_file_system_root_and_interrupted_formatting_are_accepted(
    name: str, disk: SimulatedDisk, rng: CountingRng
) -> None:
    path = f"/data/{name}"
    disk.make_directories(path.rpartition("/")[0])
    disk.write_atomically(path, b"")
    released(prepare(disk, rng, "/data"))
    assert disk.exists("/data/meta.properties")
