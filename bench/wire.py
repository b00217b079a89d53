"""Wire-level load: the same pre-encoded requests to each broker, after warm-up and in alternating rounds.

    python -m bench.wire NAME=PORT:PID [NAME=PORT:PID ...]     running brokers; ratios are relative to the first

Uses one connection. Load generator and brokers share the machine; CPU time per request is the measurement with the
least noise.
"""

import sys
from collections.abc import Sequence

from bench import frames
from bench.comparison import Load, Log, RunningBroker, Target, Thresholds, run_loads
from bench.loads import fetch_load, produce_load
from bench.report import Report, RunSize


def loads() -> list[Load]:
    """Return the loads, with batches of 100-byte records, and their thresholds."""

    def produce(label: str, records: int, in_flight: int, thresholds: Thresholds) -> Load:
        return Load(
            f"Produce {label}, {in_flight} in flight",
            produce_load(frames.batch(records, 100), in_flight),
            thresholds=thresholds,
        )

    def fetch(label: str, size: int, thresholds: Thresholds) -> Load:
        return Load(f"Fetch {label}", fetch_load(size), "mb_per_second", True, thresholds=thresholds)

    return [
        produce("170 B", 1, 5, Thresholds(4, 0.4, 0.33)),
        produce("1.1 kB", 10, 5, Thresholds(3.5, 0.4, 0.35)),
        produce("11 kB", 100, 5, Thresholds(1.8, 0.8, 0.6)),
        produce("66 kB", 600, 5, Thresholds(1.2, 1, 0.85)),
        produce("1 MB", 9000, 5, Thresholds(1, 1.1, 1)),
        produce("170 B", 1, 1, Thresholds(1.25, 0.8, 0.6)),
        fetch("16 kB", 1 << 14, Thresholds(1.2, None, 0.65)),
        fetch("64 kB", 1 << 16, Thresholds(1.1, None, 0.65)),
        fetch("1 MB", 1 << 20, Thresholds(1.05, None, 0.85)),
    ]


def run(targets: Sequence[Target], run_size: RunSize, log: Log) -> Report:
    what = "One connection, acks=1, records of about 100 bytes."
    return run_loads("Requests on the wire", loads(), targets, run_size, log, what=what)


def main() -> None:
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    targets = []
    for argument in sys.argv[1:]:
        name, _, address = argument.partition("=")
        port, _, pid = address.partition(":")
        targets.append(RunningBroker(name, int(port), int(pid)))
    run(targets, RunSize(), lambda text: print(text, flush=True))


if __name__ == "__main__":
    main()
