"""Kafka's tool reads the files of a log with transactions."""

import re
from pathlib import Path

import pytest

from bench.peers import PeerUnavailable, kafka_class_path, kafka_tool
from tests.unit.log.log_fixtures import open_log
from tests.unit.log.test_log_transactions import filled

DUMP = "org.apache.kafka.tools.DumpLogSegments"


@pytest.fixture(scope="module", autouse=True)
def tools() -> None:
    try:
        kafka_class_path()
    except PeerUnavailable as reason:
        pytest.skip(str(reason))


def test_kafka_dump_log_reads_transaction_files(tmp_path: Path) -> None:
    filled(open_log(tmp_path / "t-0")).close()
    files = [str(path) for path in sorted((tmp_path / "t-0").glob("0*"))]
    assert [Path(path).suffix for path in files] == [
        ".index",
        ".log",
        ".timeindex",
        ".txnindex",
        ".index",
        ".log",
        ".snapshot",
        ".timeindex",
        ".txnindex",
        ".snapshot",
    ]
    output = kafka_tool(DUMP, "--print-data-log", "--files", ",".join(files)).stdout
    found = re.findall(r"producerId: (\d+) firstOffset: (\d+) lastOffset: (\d+) lastStableOffset: (\d+)", output)
    assert found == [("1", "0", "3", "2"), ("2", "2", "5", "4")]
    assert re.findall(r"endTxnMarker: (\w+) coordinatorEpoch: (\d+)", output) == [
        ("ABORT", "3"),
        ("ABORT", "3"),
        ("COMMIT", "3"),
    ]
    assert not re.search(r"(?i)mismatch|corrupt|invalid|exception|error|not found", output), output
