"""Fixtures of the Spark tests, which need PySpark. Each test process shares one session and one broker.

`OTTLA_SPARK_BOOTSTRAP=host:port` uses another broker, for example Apache Kafka, which must pass the same tests.
"""

import importlib.util
import itertools
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("pyspark") is None or importlib.util.find_spec("pyarrow") is None:
    collect_ignore_glob = ["test_*.py"]

FAST = {"kafka.default.api.timeout.ms": "3000", "kafka.retry.backoff.ms": "20", "fetchOffset.numRetries": "0"}
"""Short timeouts, so that expected failures are fast."""


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    given = os.environ.get("OTTLA_SPARK_BOOTSTRAP")
    if given:
        yield given
        return
    from ottla.testing import Broker

    with Broker() as broker:
        yield broker.bootstrap


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    import ottla.spark

    session = ottla.spark.session(
        "tests",
        master="local[2]",
        config={
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.session.timeZone": "UTC",
            "spark.driver.memory": "1g",
        },
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def admin(bootstrap: str) -> Iterator[Any]:
    from ottla.client import Admin

    with Admin(bootstrap_servers=bootstrap) as client:
        yield client


@pytest.fixture(scope="session")
def topic_names() -> Callable[[], str]:
    """Return names that are unique across tests, processes and runs."""
    prefix, counter = f"spark-{secrets.token_hex(4)}", itertools.count()
    return lambda: f"{prefix}-{next(counter)}"


@pytest.fixture
def make_topic(admin: Any, topic_names: Callable[[], str]) -> Iterator[Callable[..., str]]:
    """Create a topic, deleted after the test if it still exists. Underscores in config names stand for dots."""
    from ottla.client import ClientError

    created: list[str] = []

    def make(partitions: int = 1, name: str | None = None, **configs: str) -> str:
        created.append(name or topic_names())
        admin.create_topic(created[-1], partitions, 1, {key.replace("_", "."): value for key, value in configs.items()})
        return created[-1]

    yield make
    there = admin.list_topics()
    left = [name for name in dict.fromkeys(created) if name in there]
    try:
        if left:
            admin.delete_topics(left)
    except ClientError as error:
        pytest.fail(f"topics were not removed: {error}")


@pytest.fixture
def produce(bootstrap: str) -> Callable[..., None]:
    """Write values to a partition; with `start_ms`, one millisecond apart."""
    from ottla.client import Producer

    def write(
        topic: str,
        values: list[bytes | None],
        partition: int = 0,
        *,
        key: bytes | None = None,
        start_ms: int | None = None,
        headers: Any = (),
        codec: str = "none",
    ) -> None:
        with Producer(bootstrap_servers=bootstrap, compression_type=codec) as producer:
            for index, value in enumerate(values):
                producer.send(
                    topic,
                    value,
                    key=key,
                    partition=partition,
                    headers=list(headers),
                    timestamp=None if start_ms is None else start_ms + index,
                )

    return write


@pytest.fixture
def read_options(bootstrap: str) -> Callable[..., dict[str, str]]:
    """Return the options for reading a topic. Arguments add or replace options."""

    def options(topic: str | None = None, **more: Any) -> dict[str, str]:
        given = {"kafka.bootstrap.servers": bootstrap, **FAST}
        if topic is not None:
            given["subscribe"] = topic
        return given | {name.replace("__", "."): str(value) for name, value in more.items()}

    return options


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    return str(tmp_path / "checkpoint")
