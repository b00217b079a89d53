"""`ottla log`: dump, stats, and verify, which finds every kind of damage and reports its position."""

import io
import json
import struct
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from ottla.base.ids import Uuid
from ottla.cli.app import run
from ottla.cli.log_stats import PartitionStats, stats_table
from ottla.cli.output import print_table
from ottla.io.disk import RealDisk
from ottla.log.config import LogConfig
from ottla.log.partition_log import PartitionLog
from ottla.wire.batches import Record, build_batch

NAME = "0" * 20
SEGMENT_BYTES = 700


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Three segments with batches of an idempotent producer, closed cleanly."""
    directory = tmp_path / "data" / "orders-0"
    config = LogConfig(segment_bytes=SEGMENT_BYTES, index_interval_bytes=100)
    log = PartitionLog.open(
        RealDisk(), str(directory), config=config, topic_id=Uuid(b"t" * 16), now_ms=1000, clean=True
    )
    for number in range(8):
        records = [
            Record(timestamp=1000 + 100 * number + at, key=b"k%d" % at, value=b"v" * 50 if at else None)
            for at in range(2)
        ]
        batch = build_batch(records, codec=number % 5, producer_id=7, producer_epoch=0, base_sequence=2 * number)
        log.append(memoryview(bytearray(batch)), leader_epoch=number // 4, now_ms=1000)
    log.close()
    return directory


def files(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    code = run(["log", *arguments, "--json"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return code, lines if arguments[0] == "dump" else lines[0]


def test_verify_finds_no_problems_in_a_valid_log_and_changes_nothing(
    partition: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files(partition)
    code, found = run_json(capsys, "verify", str(partition.parent))
    assert (code, found) == (0, {"files": len(before), "batches": 8, "records": 16, "problems": []})
    assert files(partition) == before


def flip_bit(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def last(partition: Path, suffix: str) -> Path:
    return sorted(partition.glob(f"*{suffix}"))[-1]


def truncate(partition: Path) -> None:
    path = partition / f"{NAME}.log"
    path.write_bytes(path.read_bytes()[:-10])


def shift_index(partition: Path) -> None:
    path = partition / f"{NAME}.index"
    relative, position = struct.unpack_from(">ii", path.read_bytes())
    path.write_bytes(struct.pack(">ii", relative, position + 1) + path.read_bytes()[8:])


def age_time_index(partition: Path) -> None:
    path = partition / f"{NAME}.timeindex"
    data = path.read_bytes()
    timestamp, relative = struct.unpack_from(">qi", data, len(data) - 12)
    path.write_bytes(data[:-12] + struct.pack(">qi", timestamp - 1, relative))


def swap_epochs(partition: Path) -> None:
    (partition / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n1 2\n")


def copy_batch(partition: Path) -> None:
    path = last(partition, ".log")
    path.write_bytes(path.read_bytes() * 2)


@pytest.mark.parametrize(
    ("damage", "suffix", "text"),
    [
        (
            lambda partition: flip_bit(partition / f"{NAME}.log", 80),
            ".log",
            "invalid checksum of the batch at offset 0",
        ),
        (truncate, ".log", "bytes of an incomplete batch"),
        (shift_index, ".index", "no batch starts at position"),
        (lambda partition: (partition / f"{NAME}.index").write_bytes(b"\0\0\0"), ".index", "incomplete entry"),
        (age_time_index, ".timeindex", "later than"),
        (swap_epochs, ".log", "but leader-epoch-checkpoint says"),
        (
            lambda partition: (partition / "leader-epoch-checkpoint").write_text("0\n3\n0 0\n"),
            "leader-epoch-checkpoint",
            "not a complete",
        ),
        (copy_batch, ".log", "expected at least"),
        (lambda partition: flip_bit(last(partition, ".snapshot"), 20), ".snapshot", "corrupt producer snapshot"),
        (
            lambda partition: (partition / "partition.metadata").write_bytes(b"\xff"),
            "partition.metadata",
            "codec can't decode",
        ),
    ],
)
def test_verify_finds_damage(
    partition: Path, capsys: pytest.CaptureFixture[str], damage: Callable[[Path], None], suffix: str, text: str
) -> None:
    damage(partition)
    before = files(partition)
    code, found = run_json(capsys, "verify", str(partition))
    assert code == 1
    assert [
        problem for problem in found["problems"] if problem["file"].endswith(suffix) and text in problem["problem"]
    ], found
    assert files(partition) == before


def test_verify_finds_a_snapshot_that_does_not_match_the_log(
    partition: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The snapshot is valid, but of another log."""
    from ottla.log.producer_state import ProducerStateManager

    table = ProducerStateManager()
    table.add_batch(7, 0, 90, 2, 6, 1000)
    snapshot = last(partition, ".snapshot")
    snapshot.write_bytes(table.encode())
    code, found = run_json(capsys, "verify", str(partition))
    assert (code, [problem["file"] for problem in found["problems"]]) == (1, [str(snapshot)])
    assert (
        "producer 7 has epoch, sequence and offset (0, 91, 7), but (0, 15, 15) in the log"
        in found["problems"][0]["problem"]
    )


@pytest.mark.parametrize(
    "name",
    [
        "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint",
        "replication-offset-checkpoint",
        "cleaner-offset-checkpoint",
    ],
)
@pytest.mark.parametrize(
    ("offset", "texts"),
    [(0, []), (16, []), (17, ["offset 17 of orders-0 is after the log end offset 16"])],
)
def test_verify_finds_checkpoint_offsets_after_the_log_end(
    partition: Path, capsys: pytest.CaptureFixture[str], name: str, offset: int, texts: list[str]
) -> None:
    checkpoint = partition.parent / name
    checkpoint.write_text(f"0\n2\ngone 0 99\norders 0 {offset}\n")
    code, found = run_json(capsys, "verify", str(partition.parent))
    assert (code, found["problems"]) == (
        int(bool(texts)),
        [{"file": str(checkpoint), "position": -1, "problem": text} for text in texts],
    )
    assert run_json(capsys, "verify", str(checkpoint))[0] == 0, "without its logs, a checkpoint cannot be checked"


def test_verify_finds_an_incomplete_checkpoint(partition: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint = partition.parent / "recovery-point-offset-checkpoint"
    checkpoint.write_text("0\n2\norders 0 99\n")
    code, found = run_json(capsys, "verify", str(partition.parent))
    assert (code, [problem["file"] for problem in found["problems"]]) == (1, [str(checkpoint)])


def test_verify_allows_a_log_that_has_grown_meanwhile(partition: Path) -> None:
    from ottla.cli.log_files import find_log_files
    from ottla.cli.log_verify import Verifier

    (partition.parent / "recovery-point-offset-checkpoint").write_text("0\n1\norders 0 20\n")
    listed = find_log_files([str(partition.parent)])
    (partition / f"{16:020d}.log").write_bytes(b"")
    assert Verifier().verify(listed).problems == []


def test_dump_of_batches_and_records(partition: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = run_json(capsys, "dump", "--records", *[str(path) for path in sorted(partition.glob("*.log"))])
    assert (
        code,
        [(entry["base_offset"], entry["last_offset"], entry["codec"], entry["leader_epoch"]) for entry in found],
    ) == (
        0,
        [
            (2 * number, 2 * number + 1, ("none", "gzip", "snappy", "lz4", "zstd")[number % 5], number // 4)
            for number in range(8)
        ],
    )
    assert found[1]["records"] == [
        {"offset": 2, "timestamp": 1100, "key": "k0", "value": None},
        {"offset": 3, "timestamp": 1101, "key": "k1", "value": "v" * 50},
    ]


def test_dump_of_every_file_type(partition: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = run_json(capsys, "dump", str(partition))
    assert code == 0
    assert {entry["kind"] for entry in found} == {
        "segment",
        "offset index",
        "time index",
        "producer snapshot",
        "leader epochs",
        "partition metadata",
    }
    producers = [entry for entry in found if entry["kind"] == "producer snapshot"]
    assert (producers[-1]["producer_id"], producers[-1]["last_sequence"], producers[-1]["last_offset"]) == (7, 15, 15)
    assert [(entry["epoch"], entry["start_offset"]) for entry in found if entry["kind"] == "leader epochs"] == [
        (0, 0),
        (1, 8),
    ]


def test_stats(partition: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = run_json(capsys, "stats", str(partition.parent))
    (stats,), (topic,) = found["partitions"], found["topics"]
    assert (code, stats["name"], topic["name"]) == (0, "orders-0", "orders")
    assert {
        name: stats[name]
        for name in (
            "batches",
            "records",
            "distinct_keys",
            "tombstones",
            "records_without_key",
            "first_timestamp",
            "last_timestamp",
            "next_offset",
            "producers",
            "records_per_batch",
        )
    } == {
        "batches": 8,
        "records": 16,
        "distinct_keys": 2,
        "tombstones": 8,
        "records_without_key": 0,
        "first_timestamp": 1000,
        "last_timestamp": 1701,
        "next_offset": 16,
        "producers": 1,
        "records_per_batch": 2.0,
    }
    assert stats["codecs"] == {"none": 2, "gzip": 2, "snappy": 2, "lz4": 1, "zstd": 1}
    assert stats["log_bytes"] == sum(path.stat().st_size for path in partition.glob("*.log"))
    code, quick = run_json(capsys, "stats", "--quick", str(partition))
    assert (code, "distinct_keys" in quick["partitions"][0], quick["partitions"][0]["records"]) == (0, False, 16)


def test_text_output(partition: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["log", "verify", str(partition)]) == 0
    assert capsys.readouterr().out.endswith("8 batches, 16 records: no problems\n")
    assert run(["log", "dump", "--records", str(partition / f"{NAME}.log")]) == 0
    assert '    offset=1 timestamp=1001 key="k1" value="' in capsys.readouterr().out
    assert run(["log", "stats", str(partition)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert " ".join(lines[0]) == "name segments size records batch span rec/s ratio keys"
    size = sum(path.stat().st_size for path in partition.glob("*.log"))
    assert lines[1][:7] == [
        "orders-0",
        str(len(list(partition.glob("*.log")))),
        str(size),
        "B",
        "16",
        f"{size / 8:.0f}",
        "B",
    ]
    assert lines[1][7:10] == ["0.701", "s", "23"]


def test_stats_table_is_narrow_and_has_one_row_for_empty_partitions() -> None:
    full = PartitionStats("payments.transactions.v2-11")
    full.segments, full.log_bytes, full.batches, full.records = 1024, 1 << 40, 99_999_999, 1 << 31
    full.first_timestamp, full.last_timestamp = 0, 90 * 86_400_000
    full.stored_bytes, full.plain_bytes, full.tombstones = 1, 25, 12_345
    full.keys = dict.fromkeys(range(10_000))
    every = [full, *(PartitionStats(f"__consumer_offsets-{index}") for index in range(50)), PartitionStats("orders-0")]
    columns, rows = stats_table([each.document(with_records=True) for each in every], with_records=True)
    assert [row[0] for row in rows] == ["payments.transactions.v2-11", "__consumer_offsets (50 empty)", "orders-0"]
    assert rows[0][1:] == [1024, "1.1 TB", "2.147 G", "11 kB", "90 d", "276", "25.0", "10000"]
    with redirect_stdout(io.StringIO()) as output:
        print_table(columns, rows)
    assert max(len(line) for line in output.getvalue().splitlines()) <= 100


def test_deleted_partitions_are_skipped_unless_named(partition: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deleted = partition.rename(partition.with_name("orders-0.0123456789abcdef-delete"))
    assert run(["log", "stats", str(partition.parent)]) == 1
    assert "no broker files found" in capsys.readouterr().err
    assert run(["log", "stats", str(deleted)]) == 0


@pytest.mark.parametrize(
    ("name", "text"),
    [("nowhere", "no such file"), ("other.txt", "not the name of a broker file"), ("", "no broker files found")],
)
def test_unknown_files_are_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str) -> None:
    (tmp_path / "other.txt").write_text("x")
    assert run(["log", "dump", str(tmp_path / name)]) == 1
    assert text in capsys.readouterr().err
