"""Compaction of a log of 100-byte records, of which one in ten is the latest of its key: its duration, and its effect
on a producer.

Each broker uses one cleaner process or thread. It has two such logs: one is compacted without other load, the other
while a producer sends small requests at a fixed rate to another topic.
"""

import contextlib
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from bench import frames
from bench.comparison import Log
from bench.frames import BrokerError, Connection
from bench.loads import check_accepted, percentile, produce_at_rate
from bench.peers import BrokerProcess, cpu_seconds
from bench.report import HEAD, Goal, Report, RunSize, quotient, row
from ottla.client import Admin, ConfigResource
from ottla.wire.batches import RECORDS_AT, Record, build_batch, write_checksum

SETTINGS = {"log.cleaner.backoff.ms": "50"}
RECORDS_PER_BATCH = 140
VALUE_BYTES = 70
KEY_DIGITS = 12
LIVE_SHARE = 0.1
SEGMENT_BYTES = 20 << 20
NEVER = {"min.cleanable.dirty.ratio": "1.0"}
RATE, REQUEST_BYTES = 500, 1_100
IN_FLIGHT = 20
CLEAN_SECONDS_MAX = 300.0
RATE_MIN, P99_MAX = 1.0, 1.0


def batches(size: int) -> Iterator[bytes]:
    """Yield copies of one batch with random keys, a tenth as many as records."""
    template = build_batch(
        [
            Record(timestamp=int(time.time() * 1000), key=b"key-" + b"0" * KEY_DIGITS, value=b"v" * VALUE_BYTES)
            for _ in range(RECORDS_PER_BATCH)
        ]
    )
    data = np.frombuffer(template, np.uint8)
    pattern = np.frombuffer(b"key-" + b"0" * KEY_DIGITS, np.uint8)
    starts = np.flatnonzero((np.lib.stride_tricks.sliding_window_view(data, len(pattern)) == pattern).all(axis=1)) + 4
    assert len(starts) == RECORDS_PER_BATCH, len(starts)
    positions = starts[:, None] + np.arange(KEY_DIGITS)
    powers = 10 ** np.arange(KEY_DIGITS - 1, -1, -1)
    count = size // (len(template) - RECORDS_AT) + 1
    source, keys = np.random.default_rng(5), int(count * RECORDS_PER_BATCH * LIVE_SHARE)
    for _ in range(count):
        data[positions] = (source.integers(0, keys, RECORDS_PER_BATCH)[:, None] // powers % 10 + ord("0")).astype(
            np.uint8
        )
        write_checksum(template)
        yield bytes(template)


def fill(broker: BrokerProcess, topic: str, size: int) -> None:
    """Fill a topic that is not compacted yet."""
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        topic_id = bytes(
            admin.create_topic(
                topic,
                1,
                1,
                {
                    "cleanup.policy": "compact",
                    "segment.bytes": str(SEGMENT_BYTES),
                    "file.delete.delay.ms": "1000",
                    **NEVER,
                },
            ).id
        )
    connection, waiting = Connection(broker.port), 0
    time.sleep(1)  # until the partition has a leader
    for batch in batches(size):
        connection.send(frames.produce(topic_id, batch))
        waiting += 1
        if waiting == IN_FLIGHT:
            check_accepted(connection.receive())
            waiting -= 1
    for _ in range(waiting):
        check_accepted(connection.receive())
    connection.close()


def clean_offset(broker: BrokerProcess, topic: str) -> int:
    path = broker.data_dir / "cleaner-offset-checkpoint"
    lines = path.read_text().splitlines() if path.exists() else []
    return next((int(line.split()[2]) for line in lines if line.startswith(f"{topic} 0 ")), 0)


def clean(broker: BrokerProcess, topic: str) -> tuple[float, float]:
    """Enable compaction. Return its duration, and the CPU time of the broker and its child processes."""
    directory = broker.data_dir / f"{topic}-0"
    target = max(int(path.stem) for path in directory.glob("*.log"))
    before, started = cpu_seconds(broker.pid) + _children_seconds(broker.pid), time.perf_counter()
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.alter_configs({ConfigResource("topic", topic): {"min.cleanable.dirty.ratio": "0.0"}})
    while clean_offset(broker, topic) < target:
        if time.perf_counter() - started > CLEAN_SECONDS_MAX:
            raise BrokerError(f"{broker.name} has cleaned {topic} to {clean_offset(broker, topic)} of {target} only")
        time.sleep(0.02)
    took = time.perf_counter() - started
    return took, cpu_seconds(broker.pid) + _children_seconds(broker.pid) - before


def _children_seconds(pid: int) -> float:
    """Return the CPU seconds of a broker's running child processes."""
    found = 0.0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rsplit(")", 1)[1].split()
            if int(fields[1]) == pid:
                found += cpu_seconds(int(path.parent.name))
    return found


def clean_under_load(broker: BrokerProcess, topic: str) -> tuple[float, list[float]]:
    """Compact the topic beside a producer. Return the duration, and the latencies of the producer."""
    connection = Connection(broker.port)
    topic_id = frames.create_topic(connection, "paced")
    connection.close()
    request = frames.produce(topic_id, frames.batch(1, REQUEST_BYTES))
    produce_at_rate(broker.port, request, RATE, 2.0)
    result: list[tuple[float, float]] = []
    cleaning = threading.Thread(target=lambda: result.append(clean(broker, topic)))
    cleaning.start()
    latencies = produce_at_rate(broker.port, request, RATE, 0.5, also=cleaning.is_alive)
    cleaning.join()
    if not result:
        raise BrokerError(f"{broker.name} did not compact {topic}")
    return result[0][0], latencies


def run(broker_types: Sequence[type[BrokerProcess]], run_size: RunSize, log: Log) -> Report:
    seconds: dict[str, float] = {}
    cpu: dict[str, float] = {}
    loaded: dict[str, float] = {}
    p99: dict[str, float] = {}
    for broker_type in broker_types:
        with broker_type(settings=SETTINGS) as broker:
            for topic in ("warm", "quiet", "busy"):
                fill(broker, topic, run_size.compacted_bytes if topic != "warm" else run_size.compacted_bytes // 4)
            clean(broker, "warm")
            seconds[broker_type.name], cpu[broker_type.name] = clean(broker, "quiet")
            loaded[broker_type.name], latencies = clean_under_load(broker, "busy")
            p99[broker_type.name] = percentile(latencies, 0.99) / 1e3
        log(
            f"{broker_type.name}: {seconds[broker_type.name]:.1f} s, CPU {cpu[broker_type.name]:.1f} s; "
            f"beside a producer {loaded[broker_type.name]:.1f} s, with p99 "
            f"{p99[broker_type.name]:.2f} ms (median {statistics.median(latencies) * 1e3:.2f} ms)"
        )
    size = run_size.compacted_bytes / 1e6
    rates = {name: size / value for name, value in seconds.items()}
    rows = [
        row(f"Compaction of {size:,.0f} MB, one thread or process", seconds, ".1f", " s"),
        row("data compacted per second", rates, ",.0f", " MB"),
        row("CPU time", cpu, ".1f", " s"),
        row(f"Compaction beside a producer of {RATE} requests/s of 1.1 kB", loaded, ".1f", " s"),
        row("p99 of that producer", p99, ".2f", " ms"),
    ]
    return Report(
        title="Compaction",
        head=HEAD,
        rows=rows,
        note=f"100-byte records, 10 % of them the latest of their keys, segments of {SEGMENT_BYTES >> 20} MB, batches "
        f"of {RECORDS_PER_BATCH} records, all in the page cache. A config change enables compaction, and the duration "
        "is measured until the cleaner-offset-checkpoint reaches the last segment.",
        measurements={"seconds": seconds, "cpu_seconds": cpu, "seconds_under_load": loaded, "p99_ms": p99},
        goals=[
            Goal(
                "Compaction: MB/s relative to Kafka",
                quotient(rates.get("ottla"), rates.get("kafka")),
                RATE_MIN,
                at_most=False,
            ),
            Goal(
                "p99 of a producer during compaction, relative to Kafka",
                quotient(p99.get("ottla"), p99.get("kafka")),
                P99_MAX,
            ),
        ],
        summary=[rows[0]],
    )
