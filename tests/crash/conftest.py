"""Brokers in child processes that are killed. `OTTLA_CRASH_PEER=kafka` tests Apache Kafka instead."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.peers import ApacheKafka, BrokerProcess, OttlaProcess

StartBroker = Callable[..., BrokerProcess]


@pytest.fixture
def start_broker(tmp_path: Path) -> Iterator[StartBroker]:
    """Return a function that starts a broker. Settings use Kafka's names, with `_` for dots."""
    started: list[BrokerProcess] = []

    def start(**settings: str) -> BrokerProcess:
        broker_class = ApacheKafka if os.environ.get("OTTLA_CRASH_PEER") == "kafka" else OttlaProcess
        named = {name.replace("_", "."): value for name, value in settings.items()}
        broker = broker_class(settings=named, data_dir=tmp_path / "data")
        started.append(broker)
        return broker.start()

    yield start
    for broker in started:
        broker.close()
