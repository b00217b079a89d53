"""Test a built wheel as a user would: in an empty environment outside the checkout.

A Kafka client, pytest and the quick start.

    .venv/bin/python .ci/try_wheel.py DIST

DIST contains the wheel. The client (confluent-kafka) runs in this environment; the broker's has only the wheel and its
dependencies.
"""

import socket
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

CHECKOUT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CHECKOUT))

from bench.peers import OttlaProcess  # noqa: E402
from tests.docs.page import DOCS, blocks  # noqa: E402
from tests.docs.reader import PAGE_BOOTSTRAP, PageReader, free_port  # noqa: E402

RECORDS = 1000
TEST = """
from kafka import KafkaConsumer, KafkaProducer, TopicPartition


def test_round_trip(ottla_broker):
    producer = KafkaProducer(bootstrap_servers=ottla_broker.bootstrap)
    producer.send("greetings", b"hello").get(10)
    consumer = KafkaConsumer(
        bootstrap_servers=ottla_broker.bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=10_000
    )
    consumer.assign([TopicPartition("greetings", 0)])
    assert next(consumer).value == b"hello"
"""


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        raise SystemExit(
            f"{' '.join(str(word) for word in command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        )
    return done.stdout


def round_trip(bootstrap: str) -> None:
    """Produce with acks=all, and read everything back."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True})
    sent = [f"record {index}".encode() for index in range(RECORDS)]
    for value in sent:
        producer.produce("wheel", value, partition=0)
    if producer.flush(30):
        raise SystemExit("records were not acknowledged within 30 s")
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False})
    consumer.assign([TopicPartition("wheel", 0, 0)])
    got: list[bytes | None] = []
    while len(got) < RECORDS:
        messages = consumer.consume(RECORDS, timeout=30)
        if not messages or any(message.error() for message in messages):
            raise SystemExit(f"read {len(got)} of {RECORDS}: {[message.error() for message in messages]}")
        got += [message.value() for message in messages]
    consumer.close()
    if got != sent:
        raise SystemExit("the records read differ from the records sent")


def run_quick_start(dist: Path, directory: Path) -> int:
    """Run every line of docs/quick-start.md, starting with the installation: pip finds the wheel in `dist`."""
    host, _, port = PAGE_BOOTSTRAP.rpartition(":")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, int(port)))
            bootstrap = PAGE_BOOTSTRAP
        except OSError:
            bootstrap = f"{host}:{free_port()}"
            print(f"{PAGE_BOOTSTRAP} is in use: running the quick start with {bootstrap}")
    settings = {"PIP_FIND_LINKS": str(dist), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    with PageReader(directory, bootstrap=bootstrap, environment=settings) as reader:
        count = reader.run(blocks(DOCS / "quick-start.md"))
    origin = run(
        directory / "venv" / "bin" / "python", "-c", "import ottla; print(ottla.__file__)", cwd=directory
    ).strip()
    if not origin.startswith(str(directory)):
        raise SystemExit(f"the quick start used {origin}")
    return count


def main() -> None:
    (wheel,) = Path(sys.argv[1]).glob("ottla-*.whl")
    with tempfile.TemporaryDirectory(prefix="ottla-wheel-") as directory:
        home = Path(directory)
        python = home / "venv" / "bin" / "python"
        venv.create(home / "venv", with_pip=True)
        run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel.resolve(), cwd=home)
        origin = run(python, "-c", "import ottla; print(ottla.__file__)", cwd=home).strip()
        if not origin.startswith(str(home)):
            raise SystemExit(f"the wheel's environment imports {origin}")
        with OttlaProcess(python=python, arguments=["--ephemeral"]) as broker:
            round_trip(broker.bootstrap)
            code = broker.stop()
            print(broker.output())
            if code:
                raise SystemExit(f"ottla start ended with {code} after SIGTERM")
        run(
            python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "pytest", "kafka-python", cwd=home
        )
        (home / "test_outside.py").write_text(TEST)
        print(
            run(
                python,
                "-m",
                "pytest",
                "-q",
                "-W",
                "ignore::DeprecationWarning",
                "-p",
                "no:cacheprovider",
                "test_outside.py",
                cwd=home,
            )
        )
        (home / "quick-start").mkdir()
        count = run_quick_start(wheel.resolve().parent, home / "quick-start")
    print(
        f"{wheel.name} outside the checkout: {RECORDS} records written and read, a test with the fixture, "
        f"{count} blocks of the quick start"
    )


if __name__ == "__main__":
    main()
