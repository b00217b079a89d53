"""Cost of stored data: a clean start with many segments, and a seek into a large partition compared with one into a
small one.

The benchmark writes the log files itself while the broker is stopped; large logs are sparse files.
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
"""Batches per segment of the large logs, at equal distances."""
SIZES_GB = (1, 50)
SEEK_RATIO_MAX = 2.0
SEEKS = 4000
OTHER_FILES = 1000
"""Files that a broker opens besides segments: jars, sockets, its other topics."""


def batch_at(batch: bytes, offset: int) -> bytes:
    """Return the batch with an offset and leader epoch 0; its checksum covers neither."""
    return struct.pack(">q", offset) + batch[8:12] + bytes(4) + batch[16:]


def write_segment(directory: Path, base: int, batch: bytes, positions: Sequence[int], *, size: int) -> None:
    """Write a segment with a record at each position, all of which are in the index. Other bytes are never read."""
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
    """Fetch one batch after another, each at a random offset. Return the latencies, ascending."""
    chooser, latencies = random.Random(3), []
    with contextlib.closing(Connection(broker.port)) as connection:
        for number in range(SEEKS * 2):
            offset = chooser.randrange(end)
            data = frames.fetch(topic_id, offset, size)
            started = time.perf_counter()
            response = connection.request(data)
            if number >= SEEKS:
                latencies.append(time.perf_counter() - started)
            elif frames.read_fetch(response).next_offset != offset + 1:
                raise BrokerError(f"{broker.name} returned another record for offset {offset}")
    return sorted(latencies)


def measure(broker: BrokerProcess, run_size: RunSize) -> dict[str, list[float]]:
    batch = frames.batch(1, 1000)
    many_name, names = "bench-many", {size: f"bench-{size}gb" for size in SIZES_GB}
    broker.start()
    with contextlib.closing(Connection(broker.port)) as connection:
        many_id = frames.create_topic(connection, many_name, partitions=run_size.large_partitions)
        topics = {size: frames.create_topic(connection, name) for size, name in names.items()}
    broker.stop()
    for number in range(run_size.large_partitions):
        write_log(broker.data_dir / f"{many_name}-{number}", SEGMENTS, batch, 1, len(batch))
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
    for broker_type in broker_types:
        files_max, files = resource.getrlimit(resource.RLIMIT_NOFILE)[1], run_size.large_partitions * SEGMENTS
        if broker_type is ApacheKafka and files_max < files + OTHER_FILES:
            left_out = (
                f" Apache Kafka keeps every segment open and cannot start with {files:,} segments"
                f" and a limit of {files_max:,} open files."
            )
            log(left_out.strip())
            continue
        with tempfile.TemporaryDirectory(prefix="large-") as directory:
            broker = broker_type(data_dir=Path(directory) / "data")
            try:
                found[broker_type.name] = measure(broker, run_size)
            finally:
                broker.close()
        log(
            f"{broker_type.name}: "
            + ", ".join(
                f"{name} {statistics.median(measurements):.2f}"
                for name, measurements in found[broker_type.name].items()
            )
        )
    return report(found, run_size, left_out)


def report(found: dict[str, dict[str, list[float]]], run_size: RunSize, left_out: str) -> Report:
    medians = {
        key: {name: statistics.median(one[key]) for name, one in found.items()} for key in next(iter(found.values()))
    }
    small, large = SIZES_GB
    seek_ratio = {name: quotient(medians[f"seek_{large}"][name], medians[f"seek_{small}"][name]) for name in found}
    size = f"{run_size.large_partitions:,} partitions × {SEGMENTS} segments"
    rows = [
        row(f"Clean start to the first acknowledgement, {size}", medians["seconds"], ".2f", " s"),
        row("Resident memory after that start", medians["mb"], ",.0f", " MB"),
        row(f"Seek into {small} GB", medians[f"seek_{small}"], ",.0f", " µs"),
        row(f"Seek into {large} GB", medians[f"seek_{large}"], ",.0f", " µs"),
        [
            f"Seek into {large} GB / seek into {small} GB",
            *(f"{seek_ratio[name]:.2f}×" if seek_ratio.get(name) else "–" for name in TITLES),
            "",
        ],
    ]
    return Report(
        "Large logs",
        HEAD,
        rows,
        f"Medians of {run_size.starts} starts. A seek is a Fetch of one batch at a random offset of a sparse log; the "
        f"median of {SEEKS:,}, after as many to warm up.{left_out}",
        {"found": found},
        [rows[0], rows[1], rows[4]],
        [
            Goal(rows[0][0], medians["seconds"].get("ottla"), START_SECONDS_MAX, unit=" s"),
            Goal(f"Resident memory, {size}", medians["mb"].get("ottla"), MEMORY_MB_MAX, unit=" MB"),
            Goal(f"Seek into {large} GB / seek into {small} GB", seek_ratio.get("ottla"), SEEK_RATIO_MAX),
        ],
        Plot("bars", "Clean start", "s", [size], by_broker({name: [medians["seconds"][name]] for name in found})),
    )
