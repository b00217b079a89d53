"""Produce with acks 0, 1 and all: the cost of a response, and of waiting for it."""

from collections.abc import Sequence

from bench import frames
from bench.comparison import Load, Log, Target, run_loads
from bench.loads import acks0_load, produce_load
from bench.report import Report, RunSize

RECORDS = 10


def run(targets: Sequence[Target], run_size: RunSize, log: Log) -> Report:
    records = frames.batch(RECORDS, 100)
    loads = [
        Load("Produce 1.1 kB, acks=0", acks0_load(records)),
        Load("Produce 1.1 kB, acks=1", produce_load(records, 5)),
        Load("Produce 1.1 kB, acks=all", produce_load(records, 5, acks=-1)),
    ]
    what = (
        "One connection, one replica; 5 requests in flight; with acks=0 as many as the socket accepts, and one final "
        "request with acks=1."
    )
    return run_loads("Acks", loads, targets, run_size, log, what=what)
