"""What a broker pays for what it holds: a clean start with many segments, and a seek into a large partition beside one into a small one.

The files are made here, in the formats that both brokers read, while the broker is stopped: sparse ones stand for large logs.
"""

import contextlib
import os
import random
import resource
import statistics
import struct
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench import frames
from bench.frames import BrokerError, Connection
from bench.loads import percentile
from bench.peers import ApacheKafka, BrokerProcess, resident_bytes
from bench.plot import Plot
from bench.recovery import first_ack
from bench.report import HEAD, TITLES, Goal, Report, RunSize, by_broker, quotient, row

SEGMENTS = 20
START_SECONDS_MAX = 2.0
MEMORY_MB_MAX = 200.0
SEGMENT_BYTES = 1 << 30
BATCHES = 256
"""In each segment of the large logs, at equal distances."""
SIZES_GB = (1, 50)
SEEK_TIMES_MAX = 2.0
SEEKS = 4000
OTHER_FILES = 1000
"""That a broker opens beside its segments: jars, sockets, its other topics."""


def batch_at(batch: bytes, offset: int) -> bytes:
    """The batch as it stands in a log: neither its offset nor its leader's epoch is in its checksum."""
    return struct.pack(">q", offset) + batch[8:12] + bytes(4) + batch[16:]


def write_segment(directory: Path, base: int, batch: bytes, positions: Sequence[int], *, size: int) -> None:
    """One record at each of the positions, all of which are in the index. What lies between is never looked at."""
    stem = directory / f"{base:020d}"
    with stem.with_suffix(".log").open("wb") as file:
        for number, position in enumerate(positions):
            file.seek(position)
            file.write(batch_at(batch, base + number))
        file.truncate(size)
    index = b"".join(struct.pack(">ii", number, position) for number, position in enumerate(positions) if position)
    stem.with_suffix(".index").write_bytes(index)
    timestamp = struct.unpack_from(">q", batch, 35)[0]
    stem.with_suffix(".timeindex").write_bytes(struct.pack(">qi", timestamp, 0))


def write_log(directory: Path, segments: int, batch: bytes, per_segment: int, segment_bytes: int) -> None:
    for path in directory.glob("0*"):
        path.unlink()
    step = segment_bytes // per_segment
    for number in range(segments):
        positions = [at * step for at in range(per_segment)]
        is_last = number == segments - 1
        write_segment(
            directory,
            number * per_segment,
            batch,
            positions,
            size=positions[-1] + len(batch) if is_last else segment_bytes,
        )


def seek_latencies(broker: BrokerProcess, topic_id: bytes, end: int, size: int) -> list[float]:
    """One fetch of one batch after another, each from a random offset."""
    chooser, latencies = random.Random(3), []
    with contextlib.closing(Connection(broker.port)) as connection:
        for number in range(SEEKS * 2):
            offset = chooser.randrange(end)
            data = frames.fetch(topic_id, offset, size)
            began = time.perf_counter()
            response = connection.request(data)
            if number >= SEEKS:
                latencies.append(time.perf_counter() - began)
            elif frames.read_fetch(response).next_offset != offset + 1:
                raise BrokerError(f"{broker.name} has something else at offset {offset}")
    return sorted(latencies)


def measure(broker: BrokerProcess, run_size: RunSize) -> dict[str, list[float]]:
    batch = frames.batch(1, 1000)
    many, names = "bench-many", {size: f"bench-{size}gb" for size in SIZES_GB}
    broker.start()
    with contextlib.closing(Connection(broker.port)) as connection:
        many_id = frames.create_topic(connection, many, partitions=run_size.large_partitions)
        topics = {size: frames.create_topic(connection, name) for size, name in names.items()}
    broker.stop()
    for number in range(run_size.large_partitions):
        write_log(broker.data_dir / f"{many}-{number}", SEGMENTS, batch, 1, len(batch))
    for size, name in names.items():
        write_log(broker.data_dir / f"{name}-0", size, batch, BATCHES, SEGMENT_BYTES)
    os.sync()
    found: dict[str, list[float]] = {"seconds": [], "mb": [], **{f"seek_{size}": [] for size in SIZES_GB}}
    for _ in range(run_size.starts):
        found["seconds"].append(first_ack(broker, many_id))
        found["mb"].append(resident_bytes(broker.pid) / 1e6)
        for size in SIZES_GB:
            latencies = seek_latencies(broker, topics[size], size * BATCHES - 1, len(batch))
            found[f"seek_{size}"].append(percentile(latencies, 0.5))
        broker.stop()
    return found


def run(broker_types: Sequence[type[BrokerProcess]], run_size: RunSize, log: Callable[[str], None]) -> Report:
    found: dict[str, dict[str, list[float]]] = {}
    left_out = ""
    for kind in broker_types:
        files_max, files = resource.getrlimit(resource.RLIMIT_NOFILE)[1], run_size.large_partitions * SEGMENTS
        if kind is ApacheKafka and files_max < files + OTHER_FILES:
            left_out = f" Apache Kafka keeps every segment open, and does not start with {files:,} where {files_max:,} files may be."
            log(left_out.strip())
            continue
        with tempfile.TemporaryDirectory(prefix="large-") as directory:
            broker = kind(data_dir=Path(directory) / "data")
            try:
                found[kind.name] = measure(broker, run_size)
            finally:
                broker.close()
        log(
            f"{kind.name}: "
            + ", ".join(f"{name} {statistics.median(figures):.2f}" for name, figures in found[kind.name].items())
        )
    return report(found, run_size, left_out)


def report(found: dict[str, dict[str, list[float]]], run_size: RunSize, left_out: str) -> Report:
    medians = {
        key: {name: statistics.median(one[key]) for name, one in found.items()} for key in next(iter(found.values()))
    }
    small, large = SIZES_GB
    grown = {name: quotient(medians[f"seek_{large}"][name], medians[f"seek_{small}"][name]) for name in found}
    held = f"{run_size.large_partitions:,} partitions × {SEGMENTS} segments"
    rows = [
        row(f"Clean start to the first ack, {held}", medians["seconds"], ".2f", " s"),
        row("Resident memory then", medians["mb"], ",.0f", " MB"),
        row(f"Seek into {small} GB", medians[f"seek_{small}"], ",.0f", " µs"),
        row(f"Seek into {large} GB", medians[f"seek_{large}"], ",.0f", " µs"),
        [f"{large} GB to {small} GB", *(f"{grown[name]:.2f}×" if grown.get(name) else "–" for name in TITLES), ""],
    ]
    return Report(
        "Large logs",
        HEAD,
        rows,
        f"Medians of {run_size.starts} starts. A seek is a Fetch of one batch at a random offset of a sparse log; the median of {SEEKS:,}, "
        f"after as many to warm up.{left_out}",
        {"found": found},
        [rows[0], rows[1], rows[4]],
        [
            Goal(rows[0][0], medians["seconds"].get("ottla"), START_SECONDS_MAX, unit=" s"),
            Goal(f"Resident memory, {held}", medians["mb"].get("ottla"), MEMORY_MB_MAX, unit=" MB"),
            Goal(f"Seek into {large} GB to one into {small} GB", grown.get("ottla"), SEEK_TIMES_MAX),
        ],
        Plot("bars", "Clean start", "s", [held], by_broker({name: [medians["seconds"][name]] for name in found})),
    )
