"""Compaction of a log of 100-byte records, of which one in ten is the latest of its key: how long it takes, and who notices.

One process or thread cleans on each side. Each broker has two such logs: one is cleaned while nothing else happens, the other while a
producer sends small requests at an even pace to another topic.
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
RECORDS_A_BATCH = 140
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
    """Batches whose keys are drawn from a tenth as many as there are records: a form, with other keys put into it each time."""
    form = build_batch(
        [
            Record(timestamp=int(time.time() * 1000), key=b"key-" + b"0" * KEY_DIGITS, value=b"v" * VALUE_BYTES)
            for _ in range(RECORDS_A_BATCH)
        ]
    )
    data = np.frombuffer(form, np.uint8)
    pattern = np.frombuffer(b"key-" + b"0" * KEY_DIGITS, np.uint8)
    starts = np.flatnonzero((np.lib.stride_tricks.sliding_window_view(data, len(pattern)) == pattern).all(axis=1)) + 4
    assert len(starts) == RECORDS_A_BATCH, len(starts)
    places = starts[:, None] + np.arange(KEY_DIGITS)
    powers = 10 ** np.arange(KEY_DIGITS - 1, -1, -1)
    count = size // (len(form) - RECORDS_AT) + 1
    source, keys = np.random.default_rng(5), int(count * RECORDS_A_BATCH * LIVE_SHARE)
    for _ in range(count):
        data[places] = (source.integers(0, keys, RECORDS_A_BATCH)[:, None] // powers % 10 + ord("0")).astype(np.uint8)
        write_checksum(form)
        yield bytes(form)


def fill(broker: BrokerProcess, topic: str, size: int) -> None:
    """A topic that is not cleaned yet."""
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
    time.sleep(1)  # a leader that does not lead yet would refuse the first
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
    """Let it be cleaned; how long that took, and the processor time of the broker and the processes that it started."""
    directory = broker.data_dir / f"{topic}-0"
    wanted = max(int(path.stem) for path in directory.glob("*.log"))
    before, began = cpu_seconds(broker.pid) + _children_seconds(broker.pid), time.perf_counter()
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.alter_configs({ConfigResource("topic", topic): {"min.cleanable.dirty.ratio": "0.0"}})
    while clean_offset(broker, topic) < wanted:
        if time.perf_counter() - began > CLEAN_SECONDS_MAX:
            raise BrokerError(f"{broker.name} has cleaned {topic} to {clean_offset(broker, topic)} of {wanted} only")
        time.sleep(0.02)
    took = time.perf_counter() - began
    return took, cpu_seconds(broker.pid) + _children_seconds(broker.pid) - before


def _children_seconds(pid: int) -> float:
    """Of the processes that a broker has started and that still run."""
    found = 0.0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rsplit(")", 1)[1].split()
            if int(fields[1]) == pid:
                found += cpu_seconds(int(path.parent.name))
    return found


def clean_under_load(broker: BrokerProcess, topic: str) -> tuple[float, list[float]]:
    """The same while a producer sends: how long it took, and its latencies."""
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
        raise BrokerError(f"{broker.name} did not clean {topic}")
    return result[0][0], latencies


def run(broker_types: Sequence[type[BrokerProcess]], run_size: RunSize, log: Log) -> Report:
    seconds: dict[str, float] = {}
    cpu: dict[str, float] = {}
    loaded: dict[str, float] = {}
    p99: dict[str, float] = {}
    for kind in broker_types:
        with kind(settings=SETTINGS) as broker:
            for topic in ("warm", "quiet", "busy"):
                fill(broker, topic, run_size.compacted_bytes if topic != "warm" else run_size.compacted_bytes // 4)
            clean(broker, "warm")
            seconds[kind.name], cpu[kind.name] = clean(broker, "quiet")
            loaded[kind.name], latencies = clean_under_load(broker, "busy")
            p99[kind.name] = percentile(latencies, 0.99) / 1e3
        log(
            f"{kind.name}: {seconds[kind.name]:.1f} s, CPU {cpu[kind.name]:.1f} s; with a producer {loaded[kind.name]:.1f} s, whose p99 is "
            f"{p99[kind.name]:.2f} ms (median {statistics.median(latencies) * 1e3:.2f} ms)"
        )
    size = run_size.compacted_bytes / 1e6
    rates = {name: size / value for name, value in seconds.items()}
    rows = [
        row(f"cleaning {size:,.0f} MB, one thread or process", seconds, ".1f", " s"),
        row("the same per second", rates, ",.0f", " MB"),
        row("processor time", cpu, ".1f", " s"),
        row(f"cleaning while a producer sends {RATE} requests/s of 1.1 kB", loaded, ".1f", " s"),
        row("p99 of that producer", p99, ".2f", " ms"),
    ]
    return Report(
        title="Compaction",
        head=HEAD,
        rows=rows,
        note=f"100-byte records, 10 % of them the latest of their keys, segments of {SEGMENT_BYTES >> 20} MB, batches of {RECORDS_A_BATCH} "
        "records, all in the page cache. The topic is let be cleaned by a change of its configs; it is clean when the broker's "
        "cleaner-offset-checkpoint says so.",
        figures={"seconds": seconds, "cpu_seconds": cpu, "seconds_under_load": loaded, "p99_ms": p99},
        goals=[
            Goal(
                "compaction: MB/s to Kafka's", quotient(rates.get("ottla"), rates.get("kafka")), RATE_MIN, at_most=False
            ),
            Goal(
                "p99 of a producer during compaction to Kafka's", quotient(p99.get("ottla"), p99.get("kafka")), P99_MAX
            ),
        ],
        summary=[rows[0]],
    )
