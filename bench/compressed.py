"""Produce of batches with each codec. The broker has to decompress them to validate the records."""

from collections.abc import Sequence

from bench import frames
from bench.comparison import Load, Log, Target, run_loads
from bench.loads import produce_load
from bench.report import Report, RunSize

RECORDS = 100


def run(targets: Sequence[Target], run_size: RunSize, log: Log) -> Report:
    values = frames.events(RECORDS)
    batches = {codec: frames.batch_of(values, codec) for codec in frames.CODECS}
    loads = [
        Load(f"{RECORDS} records, {codec}, {len(records) / 1e3:.1f} kB", produce_load(records, 5))
        for codec, records in batches.items()
    ]
    what = f"One connection, 5 in flight, acks=1; batches of {RECORDS} records of about 100 bytes of JSON each."
    return run_loads("Compressed batches", loads, targets, run_size, log, what=what)
