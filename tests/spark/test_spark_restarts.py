"""Drivers and brokers that crash: nothing is lost, and a stateful query counts nothing twice."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from ottla.testing import Broker
from tests.spark.copying_driver import copying, hang_once
from tests.spark.counting_driver import counting
from tests.spark.readers import read, values

SECONDS_MAX = 150


def wait_for(condition, what):
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, f"waited for {what}"
        time.sleep(0.1)


def produce(bootstrap, topic, values):
    from ottla.client import Producer

    with Producer(bootstrap_servers=bootstrap) as producer:
        for index, value in enumerate(values):
            producer.send(topic, value, partition=index % 2)


def test_killed_driver_and_restarted_broker(spark, tmp_path):
    """The driver is killed during its micro-batches, the broker crashes and restarts, and another driver continues."""
    counts, checkpoint = tmp_path / "counts", str(tmp_path / "checkpoint")
    counts.mkdir()
    with Broker(data=tmp_path / "data") as broker:
        broker.create_topic("counted", 2)
        options = {
            "kafka.bootstrap.servers": broker.bootstrap,
            "subscribe": "counted",
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": "50",
            "groupId": "counting",
        }
        produce(broker.bootstrap, "counted", [b"%d" % (index % 7) for index in range(1000)])
        command = [sys.executable, "-m", "tests.spark.counting_driver", json.dumps(options), checkpoint, str(counts)]
        with (tmp_path / "driver.log").open("wb") as log:
            driver = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True, cwd=Path(__file__).parents[2]
            )
        try:
            wait_for(lambda: driver.poll() is not None or (counts / "3.json").exists(), "micro-batches of the driver")
            assert driver.poll() is None, (tmp_path / "driver.log").read_text()[-3000:]
        finally:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
        before = len(list(counts.glob("*.json")))
        assert before < 20
        broker.kill()
        broker.restart()
        produce(broker.bootstrap, "counted", [b"%d" % (index % 7) for index in range(40)])
        query = counting(spark, options, checkpoint, counts).trigger(availableNow=True).start()
        assert query.awaitTermination(SECONDS_MAX)
        last = max((int(path.stem) for path in counts.glob("*.json")), default=-1)
        expected = {
            str(number): sum(index % 7 == number for index in range(1000))
            + sum(index % 7 == number for index in range(40))
            for number in range(7)
        }
        assert json.loads((counts / f"{last}.json").read_text()) == expected


def test_driver_killed_while_writing(spark, tmp_path):
    """The driver dies in the third micro-batch, when one of its two tasks has written its rows.

    Another driver writes all of it again: committed micro-batches are there once, everything at least once.
    """
    checkpoint, mark = tmp_path / "checkpoint", tmp_path / "held"
    rows = [b"%d" % index for index in range(600)]
    with Broker() as broker:
        broker.create_topic("from", 2)
        broker.create_topic("to", 2)
        options = {
            "kafka.bootstrap.servers": broker.bootstrap,
            "subscribe": "from",
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": "200",
        }
        written = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": "to"}
        produce(broker.bootstrap, "from", rows)
        command = [
            sys.executable,
            "-m",
            "tests.spark.copying_driver",
            json.dumps(options),
            "to",
            str(checkpoint),
            "500",
            str(mark),
        ]
        with (tmp_path / "driver.log").open("wb") as log:
            driver = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True, cwd=Path(__file__).parents[2]
            )
        try:
            wait_for(
                lambda: driver.poll() is not None or (mark.exists() and len(read(written)) >= 500),
                "a half of a micro-batch",
            )
            assert driver.poll() is None, (tmp_path / "driver.log").read_text()[-3000:]
        finally:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
        assert sorted(path.name for path in (checkpoint / "commits").glob("[0-9]*")) == ["0", "1"]
        produce(broker.bootstrap, "from", [b"new"] * 40)
        query = (
            copying(spark, options, "to", str(checkpoint), hang_once(b"500", mark)).trigger(availableNow=True).start()
        )
        assert query.awaitTermination(SECONDS_MAX)
        found = Counter(values(read(written)))
    assert {row: found[row] for row in rows[:400]} == dict.fromkeys(rows[:400], 1)
    assert {row: found[row] for row in rows[401::2]} == dict.fromkeys(rows[401::2], 2)
    assert all(found[row] in (1, 2) for row in rows[400::2])
    assert found[b"new"] == 40
    assert sorted(found) == sorted({*rows, b"new"})


def test_broker_restart_during_query(spark, tmp_path):
    """Tasks and planning wait for the broker."""
    counts = tmp_path / "counts"
    counts.mkdir()
    with Broker(data=tmp_path / "data") as broker:
        broker.create_topic("counted", 2)
        options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": "counted", "startingOffsets": "earliest"}
        query = counting(spark, options, str(tmp_path / "checkpoint"), counts).start()
        try:
            for _ in range(3):
                produce(broker.bootstrap, "counted", [b"x"] * 10)
                query.processAllAvailable()
                broker.kill()
                broker.restart()
            produce(broker.bootstrap, "counted", [b"x"] * 10)
            query.processAllAvailable()
        finally:
            query.stop()
        last = max(int(path.stem) for path in counts.glob("*.json"))
        assert json.loads((counts / f"{last}.json").read_text()) == {"x": 40}
