"""Brokers as processes that are killed. `OTTLA_CRASH_PEER=kafka` runs the same tests on Apache Kafka, to see that they are fair to it."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.peers import ApacheKafka, BrokerProcess, OttlaProcess

StartBroker = Callable[..., BrokerProcess]


@pytest.fixture
def start_broker(tmp_path: Path) -> Iterator[StartBroker]:
    """A broker with its data under the test's directory; the settings are Kafka's names."""
    started: list[BrokerProcess] = []

    def start(**settings: str) -> BrokerProcess:
        kind = ApacheKafka if os.environ.get("OTTLA_CRASH_PEER") == "kafka" else OttlaProcess
        named = {name.replace("_", "."): value for name, value in settings.items()}
        broker = kind(settings=named, data_dir=tmp_path / "data")
        started.append(broker)
        return broker.start()

    yield start
    for broker in started:
        broker.close()
