"""Recovery after an unclean stop: the additional time from process start to the first acknowledged Produce.

One partition is filled and the broker is stopped cleanly. Then it is started alternately as it was left, and without
its clean-shutdown marker and recovery points, so that the complete partition is recovered. The difference is the
recovery time. Start times vary by more than a recovery takes, so the fastest of several starts is used.
"""

import contextlib
import socket
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench import frames
from bench.frames import BrokerError, Connection
from bench.loads import fill
from bench.peers import START_SECONDS_MAX, BrokerProcess
from bench.plot import Plot
from bench.report import HEAD, Goal, Report, RunSize, by_broker, quotient, row

RECORDS = 155
"""Records of about 100 bytes in a batch of 16 kB."""
SPEED_MIN = 1.5
SETTINGS = {"broker.heartbeat.interval.ms": "50"}
"""Kafka accepts requests after a heartbeat. Waiting for it, 2 s by default, would distort the recovery time."""
CLEAN_STOP_FILES = (".kafka_cleanshutdown", "recovery-point-offset-checkpoint")
TRY_SECONDS = 0.003
READ_BYTES = 8 << 20


def warm(directory: Path) -> None:
    """Load all log files into the page cache."""
    for path in sorted(directory.rglob("*.log")):
        with path.open("rb", buffering=0) as file:
            while file.read(READ_BYTES):
                pass


def first_ack(broker: BrokerProcess, topic_id: bytes) -> float:
    """Start the process. Return the seconds until it has acknowledged a record for the partition."""
    data = frames.produce(topic_id, frames.batch(1, 100))
    broker.command()  # checks Kafka's directory before the measurement
    started = time.perf_counter()
    broker.spawn()
    while time.perf_counter() - started < START_SECONDS_MAX:
        with (
            contextlib.suppress(OSError, BrokerError, socket.timeout),
            contextlib.closing(Connection(broker.port)) as connection,
        ):
            while True:
                if frames.produce_error(connection.request(data)) == 0:
                    return time.perf_counter() - started
                time.sleep(TRY_SECONDS)
        if broker.process.poll() is not None:
            break
        time.sleep(TRY_SECONDS)
    raise RuntimeError(f"{broker.name} acknowledges no record:\n{broker.output()[-3000:]}")


def rounds(broker: BrokerProcess, run_size: RunSize) -> dict[str, list[float]]:
    """Measure the seconds to the first acknowledgement after clean and unclean stops."""
    batch = frames.batch(RECORDS, 100)
    broker.start()
    with contextlib.closing(Connection(broker.port)) as connection:
        topic_id = frames.create_topic(connection, "bench-recovery")
        fill(connection, frames.produce(topic_id, batch), run_size.recovery_bytes // len(batch))
    broker.stop()
    found: dict[str, list[float]] = {"clean": [], "unclean": []}
    for _ in range(run_size.recovery_rounds):
        for stop, times in found.items():
            if stop == "unclean":
                for name in CLEAN_STOP_FILES:
                    (broker.data_dir / name).unlink()
            warm(broker.data_dir)
            times.append(first_ack(broker, topic_id))
            broker.stop()
    return found


def run(broker_types: Sequence[type[BrokerProcess]], run_size: RunSize, log: Callable[[str], None]) -> Report:
    times: dict[str, dict[str, list[float]]] = {}
    for broker_type in broker_types:
        with tempfile.TemporaryDirectory(prefix="recovery-") as directory:
            broker = broker_type(data_dir=Path(directory) / "data", settings=SETTINGS)
            try:
                times[broker_type.name] = rounds(broker, run_size)
            finally:
                broker.close()
        log(
            f"{broker_type.name}: "
            + "; ".join(f"{name} {min(found):.2f} s" for name, found in times[broker_type.name].items())
        )
    clean = {name: min(found["clean"]) for name, found in times.items()}
    unclean = {name: min(found["unclean"]) for name, found in times.items()}
    recovery = {name: unclean[name] - clean[name] for name in times}
    size = f"{run_size.recovery_bytes / 1e9:g} GB"
    label = f"Recovery of a {size} partition after an unclean stop"
    total = row(label, recovery, ".2f", " s")
    return Report(
        "Recovery",
        HEAD,
        [
            total,
            row("first acknowledgement after an unclean stop", unclean, ".2f", " s"),
            row("first acknowledgement after a clean stop", clean, ".2f", " s"),
        ],
        f"One partition of {size} in batches of 16 kB, in the page cache. Time from process start to the first "
        "acknowledged Produce, without clean-shutdown marker and recovery points, minus the same after a clean stop; "
        f"the lowest of {run_size.recovery_rounds}. Brokers send a heartbeat every 50 ms, so that no start waits for "
        "the next one.",
        {"seconds": times},
        [total],
        [Goal(f"{label}, speed", quotient(recovery.get("kafka"), recovery.get("ottla")), SPEED_MIN, at_most=False)],
        Plot(
            "bars",
            label,
            "s",
            ["recovery", "clean start"],
            by_broker({name: [recovery[name], clean[name]] for name in times}),
        ),
    )
