"""A standalone Spark cluster with two worker processes: executors use only the wheel, and may die."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from ottla.testing import Broker

ROOT = Path(__file__).parents[2]
SECONDS_MAX = 120
DRIVER = """
import json, sys
import ottla.spark
spark = ottla.spark.session(master=sys.argv[1], config={
    "spark.ui.enabled": "false", "spark.submit.pyFiles": sys.argv[2],
    "spark.executor.cores": "1", "spark.executor.memory": "512m",
    "spark.cores.max": "2", "spark.driver.host": "127.0.0.1", "spark.sql.shuffle.partitions": "2"})

def where(rows):
    import os, ottla
    yield sum(1 for _ in rows), ottla.__file__, os.getcwd()

options = {"kafka.bootstrap.servers": sys.argv[3], "subscribe": "spread", "minPartitions": "8"}
frame = spark.read.format("ottla").options(**options).load()
found = frame.select("offset").rdd.mapPartitions(where).collect()
print(json.dumps({"rows": sum(rows for rows, _, _ in found), "homes": sorted({home for _, home, _ in found}),
                  "executors": len({directory for _, _, directory in found})}))
spark.stop()
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build a wheel like `pip wheel`, without network access."""
    directory = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        str(directory),
        str(ROOT),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no wheel could be created: {done.stderr[-300:]}")
    return next(directory.glob("*.whl"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Return the address of a master with two workers."""
    import pyspark

    from ottla.spark.java import find_java_home

    directory = tmp_path_factory.mktemp("cluster")
    logged = directory / "cluster.log"
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    program = [str(Path(pyspark.__file__).parent / "bin" / "spark-class")]
    environment = dict(os.environ) | {
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "JAVA_HOME": str(find_java_home(dict(os.environ))),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_NO_DAEMONIZE": "1",
    }
    deploy = "org.apache.spark.deploy"
    commands = [[*program, f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]]
    commands += [
        [
            *program,
            f"{deploy}.worker.Worker",
            "--host",
            "127.0.0.1",
            "--webui-port",
            "0",
            "--cores",
            "1",
            "--memory",
            "1g",
            "--work-dir",
            str(directory / f"worker-{number}"),
            address,
        ]
        for number in range(2)
    ]
    running = []
    try:
        with logged.open("wb") as log:
            for command in commands:
                running.append(
                    subprocess.Popen(
                        command, stdout=log, stderr=log, env=environment, start_new_session=True, cwd=directory
                    )
                )
        deadline = time.monotonic() + SECONDS_MAX
        while logged.read_text(errors="replace").count("Successfully registered with master") < 2:
            assert time.monotonic() < deadline, logged.read_text(errors="replace")[-3000:]
            time.sleep(0.2)
        yield address
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait(30)


def test_workers_need_only_the_wheel(cluster, wheel, tmp_path):
    """Executors do not import the driver's copy but the one in their working directories."""
    from ottla.client import Producer

    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    carried = tmp_path / "carried.zip"  # Spark puts archives on the path, and a wheel is one
    shutil.copy(wheel, carried)
    with Broker() as broker:
        broker.create_topic("spread", 2)
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            for index in range(4000):
                producer.send("spread", b"%d" % index, partition=index % 2)
        command = [sys.executable, str(script), cluster, str(carried), broker.bootstrap]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS_MAX, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(done.stdout.splitlines()[-1])
    assert (result["rows"], result["executors"]) == (4000, 2)
    assert all("carried.zip" in home for home in result["homes"]), result


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="an executor is found by /proc")
def test_killed_executor_of_stateful_query(cluster, tmp_path):
    """The executor dies in the second of three micro-batches, with its state. Everything is counted once."""
    from ottla.client import Producer

    counts, mark = tmp_path / "counts", tmp_path / "killed.json"
    counts.mkdir()
    values = [b"%d" % (index % 7) for index in range(1000)]
    values[501] = b"here"
    with Broker() as broker:
        broker.create_topic("counted", 2)
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            for index, value in enumerate(values):
                producer.send("counted", value, partition=index % 2)
        options = {
            "kafka.bootstrap.servers": broker.bootstrap,
            "subscribe": "counted",
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": "400",
        }
        command = [
            sys.executable,
            "-m",
            "tests.spark.executor_loss_driver",
            cluster,
            json.dumps(options),
            str(tmp_path / "checkpoint"),
            str(counts),
            "here",
            str(mark),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS_MAX, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-3000:]
    killed = json.loads(mark.read_text())
    assert any("CoarseGrainedExecutorBackend" in word for word in killed["command"])
    assert not Path(f"/proc/{killed['pid']}/cmdline").exists()
    assert sorted(path.name for path in counts.iterdir()) == [f"{number}.json" for number in range(3)]
    assert json.loads((counts / "0.json").read_text()) == counted(values[:400])
    assert json.loads((counts / "2.json").read_text()) == counted(values)


def counted(values):
    return {value.decode(): count for value, count in Counter(values).items()}
