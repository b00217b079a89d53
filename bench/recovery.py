"""After an unclean stop: how much longer a broker takes from the start of its process to its first acknowledged Produce.

One partition is filled, the broker is stopped in order, and started from then on in turns: as it was left, and without its clean-shutdown
marker and its recovery points, so that all of the partition has to be checked. The difference of the two is the recovery. A start varies by
more than a recovery takes, so that the quickest of several is taken of each.
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
"""Of about 100 bytes: a batch of 16 kB."""
SPEED_MIN = 1.5
SETTINGS = {"broker.heartbeat.interval.ms": "50"}
"""Kafka serves from a heartbeat on: with two seconds between them a recovery would be hidden, or doubled, by the wait for the next."""
MARKS = (".kafka_cleanshutdown", "recovery-point-offset-checkpoint")
TRY_SECONDS = 0.003
READ_BYTES = 8 << 20


def warm(directory: Path) -> None:
    """All of the files are in the page cache."""
    for path in sorted(directory.rglob("*.log")):
        with path.open("rb", buffering=0) as file:
            while file.read(READ_BYTES):
                pass


def first_ack(broker: BrokerProcess, topic_id: bytes) -> float:
    """Start the process; the seconds until it has acknowledged a record for the partition."""
    data = frames.produce(topic_id, frames.batch(1, 100))
    broker.command()  # Kafka looks at its directory here, before the clock starts
    began = time.perf_counter()
    broker.spawn()
    while time.perf_counter() - began < START_SECONDS_MAX:
        with (
            contextlib.suppress(OSError, BrokerError, socket.timeout),
            contextlib.closing(Connection(broker.port)) as connection,
        ):
            while True:
                if frames.produce_error(connection.request(data)) == 0:
                    return time.perf_counter() - began
                time.sleep(TRY_SECONDS)
        if broker.process.poll() is not None:
            break
        time.sleep(TRY_SECONDS)
    raise RuntimeError(f"{broker.name} does not acknowledge anything:\n{broker.output()[-3000:]}")


def rounds(broker: BrokerProcess, run_size: RunSize) -> dict[str, list[float]]:
    """Seconds to the first ack after a clean stop and without its marks."""
    batch = frames.batch(RECORDS, 100)
    broker.start()
    with contextlib.closing(Connection(broker.port)) as connection:
        topic_id = frames.create_topic(connection, "bench-recovery")
        fill(connection, frames.produce(topic_id, batch), run_size.recovery_bytes // len(batch))
    broker.stop()
    found: dict[str, list[float]] = {"clean": [], "unclean": []}
    for _ in range(run_size.recovery_rounds):
        for kind, times in found.items():
            if kind == "unclean":
                for name in MARKS:
                    (broker.data_dir / name).unlink()
            warm(broker.data_dir)
            times.append(first_ack(broker, topic_id))
            broker.stop()
    return found


def run(broker_types: Sequence[type[BrokerProcess]], run_size: RunSize, log: Callable[[str], None]) -> Report:
    times: dict[str, dict[str, list[float]]] = {}
    for kind in broker_types:
        with tempfile.TemporaryDirectory(prefix="recovery-") as directory:
            broker = kind(data_dir=Path(directory) / "data", settings=SETTINGS)
            try:
                times[kind.name] = rounds(broker, run_size)
            finally:
                broker.close()
        log(f"{kind.name}: " + "; ".join(f"{name} {min(found):.2f} s" for name, found in times[kind.name].items()))
    clean = {name: min(found["clean"]) for name, found in times.items()}
    unclean = {name: min(found["unclean"]) for name, found in times.items()}
    taken = {name: unclean[name] - clean[name] for name in times}
    size = f"{run_size.recovery_bytes / 1e9:g} GB"
    label = f"Recovery of an unclean partition of {size}"
    drawn = row(label, taken, ".2f", " s")
    return Report(
        "Recovery",
        HEAD,
        [
            drawn,
            row("first ack after an unclean stop", unclean, ".2f", " s"),
            row("first ack after a clean stop", clean, ".2f", " s"),
        ],
        f"One partition of {size} in batches of 16 kB, in the page cache; from the start of the process to the first acknowledged Produce, "
        f"without clean-shutdown marker and recovery points, less the same after a clean stop; the lowest of {run_size.recovery_rounds}. "
        "Brokers send a heartbeat every 50 ms, so that nobody waits for the next one.",
        {"seconds": times},
        [drawn],
        [Goal(f"{label}, speed", quotient(taken.get("kafka"), taken.get("ottla")), SPEED_MIN, at_most=False)],
        Plot(
            "bars",
            label,
            "s",
            ["recovery", "clean start"],
            by_broker({name: [taken[name], clean[name]] for name in times}),
        ),
    )
