"""Sends valid and invalid batches to the broker. Run against Apache Kafka, it validates the expected responses."""

import time
from collections.abc import Callable, Sequence

import pytest

from ottla.wire.batches import read_header
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.produce import PartitionProduceData, PartitionProduceResponse, ProduceRequest, TopicProduceData
from tests.compat.conftest import Broker, create_topic
from tests.compat.raw import RawConnection
from tests.unit.wire.batch_catalog import (
    FRAMING,
    HEADERS,
    RECORDS,
    STORED_DIFFERENTLY,
    TIMES,
    Case,
    has_log_start,
    has_message,
)
from tests.unit.wire.batch_catalog_compressed import COMPRESSED, CONVERTED

PRODUCE_VERSION, FETCH_VERSION = 8, 11
NOT_YET = (3, 6)
"""Errors of a topic that was just created."""


def produce(connection: RawConnection, topic: str, partition: int, batch: bytes) -> PartitionProduceResponse:
    request = ProduceRequest(
        acks=-1,
        timeout_ms=10_000,
        topic_data=[
            TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=batch)])
        ],
    )
    for _ in range(100):
        response: PartitionProduceResponse = (
            connection.call(request, PRODUCE_VERSION).responses[0].partition_responses[0]
        )
        if response.error_code not in NOT_YET:
            break
        time.sleep(0.1)
    return response


def fetch(connection: RawConnection, topic: str, partition: int) -> bytes:
    request = FetchRequest(
        max_wait_ms=1000,
        min_bytes=1,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[
            FetchTopic(
                topic=topic,
                partitions=[FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1 << 20)],
            )
        ],
    )
    return bytes(connection.call(request, FETCH_VERSION).responses[0].partitions[0].records)


def summary(response: PartitionProduceResponse) -> tuple[int, tuple[int, ...], bool, int]:
    return (
        response.error_code,
        tuple(error.batch_index for error in response.record_errors),
        response.error_message is not None,
        response.log_start_offset,
    )


def expected(case: Case) -> tuple[int, tuple[int, ...], bool, int]:
    return case.code, case.record_errors, has_message(case), 0 if has_log_start(case) else -1


@pytest.mark.parametrize(
    "cases",
    [FRAMING, HEADERS, TIMES, RECORDS, COMPRESSED, CONVERTED],
    ids=["framing", "headers", "times", "records", "compressed", "converted"],
)
def test_batches_get_expected_responses(broker: Broker, new_name: Callable[[], str], cases: Sequence[Case]) -> None:
    groups: dict[tuple[tuple[str, str], ...], list[Case]] = {}
    for case in cases:
        groups.setdefault(tuple(sorted(case.configs.items())), []).append(case)
    wrong = []
    with RawConnection(broker.address) as connection:
        for configs, members in groups.items():
            topic = new_name()
            create_topic(broker.bootstrap, topic, len(members), dict(configs))
            for partition, case in enumerate(members):
                now = int(time.time() * 1000)
                sent = case.batch(now)
                response = summary(produce(connection, topic, partition, sent))
                if response != expected(case):
                    wrong.append((case.name, response, expected(case)))
                elif case.code == 0 and case not in CONVERTED and "message.timestamp.type" not in case.configs:
                    header, header_sent = read_header(fetch(connection, topic, partition)), read_header(sent)
                    attributes, max_timestamp = header_sent.attributes, header_sent.max_timestamp
                    if case.name in STORED_DIFFERENTLY:
                        attributes, max_timestamp = (
                            STORED_DIFFERENTLY[case.name][0],
                            STORED_DIFFERENTLY[case.name][1](now),
                        )
                    if (header.attributes, header.max_timestamp) != (attributes, max_timestamp):
                        wrong.append((case.name, header, (attributes, max_timestamp)))
    assert wrong == []
