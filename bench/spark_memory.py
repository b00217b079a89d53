"""Memory of a Spark task while it reads: the peak of the largest Python worker, on a topic of some million records and
on a far longer one. It is limited by the options of the source and does not depend on the length of the topic.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench import frames
from bench.loads import fill
from bench.peers import BrokerProcess
from bench.report import Goal, Report, RunSize
from bench.spark_environments import Job
from bench.spark_read import JOB

PARTITIONS = 2
RECORDS_PER_BATCH = 140
TIMES_LONGER = 25
"""100 M records instead of 4 M."""
GROWTH_MAX = 1.25
SAMPLE_SECONDS = 0.2
WORKER = b"pyspark/daemon"
WORKER_MODULE = b"pyspark.daemon"


def make_topic(port: int, topic: str, records: int) -> int:
    """Fill a topic with copies of a 16 kB batch. Return the number of records."""
    connection = frames.Connection(port)
    topic_id = frames.create_topic(connection, topic, partitions=PARTITIONS)
    values = [index.to_bytes(4, "big") * 25 for index in range(RECORDS_PER_BATCH)]
    each = -(-records // (RECORDS_PER_BATCH * PARTITIONS))
    for index in range(PARTITIONS):
        fill(connection, frames.produce(topic_id, frames.batch_of(values), partition=index), each)
    connection.close()
    return each * PARTITIONS * RECORDS_PER_BATCH


@contextmanager
def watching_workers() -> Iterator[list[int]]:
    """Yield a list that collects samples of the resident memory of Spark's Python workers while the block runs."""
    peaks: list[int] = []
    ended = threading.Event()

    def sample() -> None:
        while not ended.wait(SAMPLE_SECONDS):
            peaks.extend(_worker_bytes())

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield peaks
    finally:
        ended.set()
        thread.join()


def _worker_bytes() -> list[int]:
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdecimal():
            continue
        try:
            command = (process / "cmdline").read_bytes()
            if WORKER not in command and WORKER_MODULE not in command:
                continue
            status = (process / "status").read_text()
        except OSError:
            continue  # the process has ended
        found += [int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS:")]
    return found


def run(brokers: Sequence[BrokerProcess], run_size: RunSize, log: Callable[[str], None]) -> Report:
    broker = next(each for each in brokers if each.name == "ottla")
    few = int(run_size.perf_records * 4 / 3)
    rows, peaks = [], []
    for target in (few, few * TIMES_LONGER):
        topic = f"spark-{time.time_ns()}"
        records = make_topic(broker.port, topic, target)
        options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
        with Job("ottla", JOB, ()) as job, watching_workers() as seen:
            took = job.run(what="batch", options=options)["seconds"]
        connection = frames.Connection(broker.port)
        frames.delete_topic(connection, topic)
        connection.close()
        peaks.append(max(seen))
        log(
            f"{records:,} records: {records / took:,.0f} rows/s, peak of the largest Python worker "
            f"{peaks[-1] / 1e6:.0f} MB"
        )
        rows.append([f"{records / 1e6:,.0f} M records", f"{records / took:,.0f}", f"{peaks[-1] / 1e6:.0f} MB"])
    note = "A batch read into Spark's `noop`, two partitions, `local[2]`, a fresh session; sampled five times a second."
    goal = Goal(f"memory of a Spark task, {TIMES_LONGER} times the records", peaks[1] / peaks[0], GROWTH_MAX)
    return Report(
        "Memory of Spark's tasks",
        ("", "rows/s", "peak of the largest Python worker"),
        rows,
        note,
        {"peak_bytes": peaks},
        goals=[goal],
    )
