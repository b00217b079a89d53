"""Every client reads what every other client wrote."""

from collections.abc import Callable, Iterator

import pytest

from tests.compat.clients.base import CODECS, Client
from tests.compat.conftest import CLIENTS, Broker, create_topic, delete_topics
from tests.compat.record import Read, Sent, by_partition, contents_corpus

PARTITIONS = 2


Held = tuple[str, dict[int, list[Sent]]]


@pytest.fixture(scope="module")
def written(broker: Broker, get_client: Callable[[str], Client], topic_names: Callable[[], str]) -> Iterator[Held]:
    """A topic written by every available client, each with another codec, and its records."""
    topic = topic_names()
    create_topic(broker.bootstrap, topic, PARTITIONS, {})
    written_records: dict[int, list[Sent]] = {partition: [] for partition in range(PARTITIONS)}
    for name, codec in zip(CLIENTS, CODECS, strict=True):
        try:
            client = get_client(name)
        except pytest.skip.Exception:
            continue
        records = [record for record in contents_corpus(PARTITIONS) if client.can_send(record)]
        client.produce(broker.bootstrap, topic, records, codec=codec)
        for record in records:
            written_records[record.partition].append(record)
    yield topic, written_records
    delete_topics(broker.bootstrap, [topic])


def comparable(record: Read | Sent, *, blurred: bool) -> tuple[object, ...]:
    """Return the fields to compare, without timestamps, which kcat does not set.

    `blurred` drops headers with commas and nulls, which kcat's output cannot represent.
    """
    headers = tuple(name for name, _ in record.headers) if blurred else record.headers
    return record.partition, record.key, record.value, headers


def test_clients_read_each_others_records(broker: Broker, client: Client, written: Held) -> None:
    topic, written_records = written
    ends = {partition: len(records) for partition, records in written_records.items()}
    found = by_partition(client.consume(broker.bootstrap, topic, dict.fromkeys(ends, 0), ends))
    blurred = client.name == "kcat"
    assert {
        partition: [comparable(record, blurred=blurred) for record in read] for partition, read in found.items()
    } == {
        partition: [comparable(record, blurred=blurred) for record in records]
        for partition, records in written_records.items()
    }
    assert {partition: [record.offset for record in read] for partition, read in found.items()} == {
        partition: list(range(end)) for partition, end in ends.items()
    }
