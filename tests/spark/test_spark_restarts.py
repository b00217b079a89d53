"""Drivers and brokers that go down: nothing is lost, and a stateful query counts nothing twice."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from ottla.testing import Broker
from tests.spark.counting_driver import counting

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


def test_a_driver_that_is_killed_and_a_broker_that_restarts(spark, tmp_path):
    """The driver is killed in the midst of its micro-batches, the broker dies and comes back; another driver goes on."""
    counts, checkpoint = tmp_path / "counts", str(tmp_path / "checkpoint")
    counts.mkdir()
    with Broker(data=tmp_path / "data") as broker:
        broker.create_topic("counted", 2)
        options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": "counted", "startingOffsets": "earliest",
                   "maxOffsetsPerTrigger": "50", "groupId": "counting"}
        produce(broker.bootstrap, "counted", [b"%d" % (index % 7) for index in range(1000)])
        command = [sys.executable, "-m", "tests.spark.counting_driver", json.dumps(options), checkpoint, str(counts)]
        with (tmp_path / "driver.log").open("wb") as log:
            driver = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, cwd=Path(__file__).parents[2])
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
        expected = {str(number): sum(index % 7 == number for index in range(1000)) + sum(index % 7 == number for index in range(40))
                    for number in range(7)}
        assert json.loads((counts / f"{last}.json").read_text()) == expected


def test_a_broker_that_restarts_under_a_running_query(spark, tmp_path):
    """Tasks and planning wait for it."""
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
