"""Produce with acks 0, 1 and all: what an answer costs, and what waiting for it does."""

from collections.abc import Sequence

from bench import frames
from bench.loads import produce_load, silent_load
from bench.report import Effort, Report
from bench.rounds import Load, Say, Target, run_loads

RECORDS = 10


def run(targets: Sequence[Target], effort: Effort, say: Say) -> Report:
    records = frames.batch(RECORDS, 100)
    loads = [
        Load("Produce 1.1 kB, acks=0", silent_load(records)),
        Load("Produce 1.1 kB, acks=1", produce_load(records, 5)),
        Load("Produce 1.1 kB, acks=all", produce_load(records, 5, acks=-1)),
    ]
    what = "One connection, one replica; 5 requests in flight, with acks=0 as many as the socket takes, the last one answered."
    return run_loads("Acks", loads, targets, effort, say, what=what)
