"""A reader of uncached records beside a producer at a fixed rate, which does not need the disk."""

import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from bench import frames
from bench.comparison import Log, Results
from bench.frames import BrokerError, Connection
from bench.load_process import start_load_process
from bench.loads import Measurements, fill, median_measurements, percentile, produce_at_rate, read_once
from bench.peers import BrokerProcess
from bench.plot import Plot
from bench.report import HEAD, KAFKA, TITLES, Goal, Report, RunSize, by_broker, rows_of, sync_disks

PER_SECOND = 2000
RECORDS_PER_REQUEST = 10
FILL_RECORDS = 64
"""Records of 1 kB in a batch of 64 kB."""
FETCH_SIZE = 1 << 20
TIMES_ALONE_MAX = 2.0
SAMPLES = 200
DROPS_MAX = 10
CACHED_SHARE_MAX = 0.05


def segment_files(broker: BrokerProcess, topic: str) -> Iterator[Path]:
    yield from sorted((broker.data_dir / f"{topic}-0").glob("*.log"))


def drop_from_cache(paths: Sequence[Path]) -> None:
    """Fsync the files and drop them from the page cache, with retries. Raises BrokerError if that fails."""
    for _ in range(DROPS_MAX):
        samples = [sample for path in paths for sample in drop_and_sample(path, max(1, SAMPLES // len(paths)))]
        if sum(samples) <= len(samples) * CACHED_SHARE_MAX:
            return
        time.sleep(1)
    raise BrokerError(
        f"{sum(samples)} of {len(samples)} samples are still in memory: this file system does not drop cached files "
        "(set TMPDIR)"
    )


def drop_and_sample(path: Path, samples: int) -> list[bool]:
    """Drop the file from the page cache. Return, for each sampled position, whether it is still cached."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        size = os.fstat(file).st_size
        return [is_cached(file, position) for position in range(0, size, max(1, size // samples))]
    finally:
        os.close(file)


def is_cached(file: int, position: int) -> bool:
    """Whether the byte at this position can be read without the disk."""
    try:
        return os.preadv(file, [bytearray(1)], position, os.RWF_NOWAIT) > 0
    except BlockingIOError:
        return False


def one_round(
    broker: BrokerProcess, topics: dict[str, bytes], old: str, run_size: RunSize, pool: ProcessPoolExecutor
) -> Measurements:
    """Measure the producer alone, then beside a reader until that has read everything."""
    data = frames.produce(topics["new"], frames.batch(RECORDS_PER_REQUEST, 100))
    sync_disks()
    alone = produce_at_rate(broker.port, data, PER_SECOND, run_size.cold_alone_seconds)
    drop_from_cache(list(segment_files(broker, old)))
    reader = pool.submit(read_once, broker.port, topics["old"], FETCH_SIZE)
    beside = produce_at_rate(broker.port, data, PER_SECOND, 0.0, also=lambda: not reader.done())
    read = reader.result()
    return {
        "alone_p50_us": percentile(alone, 0.5),
        "alone_p99_us": percentile(alone, 0.99),
        "beside_p50_us": percentile(beside, 0.5),
        "beside_p99_us": percentile(beside, 0.99),
        "beside_max_us": beside[-1] * 1e6,
        "beside_requests": len(beside),
        "read_mb_per_second": read["mb_per_second"],
    }


def run(brokers: Sequence[BrokerProcess], run_size: RunSize, log: Log) -> Report:
    stamp = time.time_ns()
    old, new = f"old-{stamp}", f"new-{stamp}"
    connections = {broker.name: Connection(broker.port) for broker in brokers}
    topics: dict[str, dict[str, bytes]] = {}
    for broker in brokers:
        connection = connections[broker.name]
        topics[broker.name] = {"old": frames.create_topic(connection, old), "new": frames.create_topic(connection, new)}
        filler = frames.produce(topics[broker.name]["old"], frames.batch(FILL_RECORDS, 1000))
        fill(connection, filler, run_size.cold_bytes // len(filler) + 1)
        log(f"{broker.name}: {run_size.cold_bytes / 1e9:g} GB written")
        data = frames.produce(topics[broker.name]["new"], frames.batch(RECORDS_PER_REQUEST, 100))
        produce_at_rate(broker.port, data, PER_SECOND, min(run_size.warm_seconds, run_size.cold_alone_seconds))
    runs: dict[str, list[Measurements]] = {broker.name: [] for broker in brokers}
    with start_load_process() as pool:
        for _ in range(run_size.cold_rounds):
            for broker in brokers:
                runs[broker.name].append(one_round(broker, topics[broker.name], old, run_size, pool))
    for connection in connections.values():
        frames.delete_topics(connection, [old, new])
        connection.close()
    medians: Results = {name: median_measurements(rounds) for name, rounds in runs.items()}
    for name, one in medians.items():
        log(
            f"{name}: produce p99 {one['alone_p99_us']:,.0f} µs alone, {one['beside_p99_us']:,.0f} µs beside a reader "
            f"at {one['read_mb_per_second']:,.0f} MB/s"
        )
    return report(runs, medians, run_size)


def report(runs: dict[str, list[Measurements]], medians: Results, run_size: RunSize) -> Report:
    columns = (
        ("Produce p50 alone", "alone_p50_us", ",.0f", " µs"),
        ("Produce p99 alone", "alone_p99_us", ",.0f", " µs"),
        ("Produce p50 beside the reader", "beside_p50_us", ",.0f", " µs"),
        ("Produce p99 beside the reader", "beside_p99_us", ",.0f", " µs"),
        ("Longest beside the reader", "beside_max_us", ",.0f", " µs"),
        ("Reader", "read_mb_per_second", ",.0f", " MB/s"),
    )
    rows = rows_of(columns, medians)
    ours, theirs = medians.get("ottla", {}), medians.get("kafka", {})
    limit = max(TIMES_ALONE_MAX * ours["alone_p99_us"], theirs.get("beside_p99_us", 0.0)) / 1e3 if ours else 0.0
    size = f"{run_size.cold_bytes / 1e9:g} GB"
    note = (
        f"Produce 1.1 kB {PER_SECOND:,} times a second on one connection, latency from the moment a request was due; "
        f"alone for {run_size.cold_alone_seconds:g} s, then beside a process that reads {size}, dropped from the page "
        f"cache, {FETCH_SIZE >> 20} MB per Fetch. Medians of {run_size.cold_rounds}, alternating."
    )
    measured = ours["beside_p99_us"] / 1e3 if ours else None
    what = f"Produce p99 beside the reader: the larger of {TIMES_ALONE_MAX:g}× alone and {KAFKA}'s"
    plotted = {
        name: [one["alone_p99_us"] / 1e3, one["beside_p99_us"] / 1e3] for name, one in medians.items() if name in TITLES
    }
    return Report(
        "A cold reader beside a producer",
        HEAD,
        rows,
        note,
        {"runs": runs},
        [
            [f"{rows[1][0]}, {PER_SECOND:,} req/s of 1.1 kB", *rows[1][1:]],
            [f"{rows[3][0]} of {size} from disk", *rows[3][1:]],
        ],
        [Goal(what, measured, limit, unit=" ms")],
        Plot("bars", f"Produce p99, {PER_SECOND:,} req/s", "ms", ["alone", "beside a cold reader"], by_broker(plotted)),
    )
