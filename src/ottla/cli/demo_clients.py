"""Clients of `ottla demo`: a producer thread, and consumers that run as processes so that they can be killed.

`python -m ottla.cli.demo_clients BOOTSTRAP TOPIC GROUP NAME` is such a consumer: it runs until its stdin is closed,
then leaves.
"""

import contextlib
import json
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field

from ottla.client import Consumer, Producer
from ottla.client.errors import CommitFailedError, WakeupError

ITEMS = ("bread", "butter", "apples", "coffee", "cheese", "honey")
CUSTOMERS = 100
PAUSE_SECONDS = 0.02
STOP_SECONDS_MAX = 5.0

ORDERS_PER_SECOND_MAX = 400
"""Processing rate of a consumer: more than its share of the orders, slow enough for a visible backlog."""
SESSION_TIMEOUT_MS = 2_000
"""Session timeout of the group. Kafka's default of 45 s would make the demo too long."""


class OrderProducer:
    """Produces orders at a constant rate. Keys are customers, so a customer's orders stay in one partition."""

    def __init__(self, bootstrap: str, topic: str, orders_per_second: int) -> None:
        self._producer = Producer(bootstrap_servers=bootstrap, client_id="shop")
        self._topic, self._rate = topic, orders_per_second
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ottla-demo-producer", daemon=True)
        self.produced = 0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait until every sent order is acknowledged."""
        if not self._is_over.is_set():
            self._is_over.set()
            if self._thread.ident is not None:
                self._thread.join()
            self._producer.close(STOP_SECONDS_MAX)

    def _run(self) -> None:
        started_at = time.monotonic()
        while not self._is_over.wait(PAUSE_SECONDS):
            due = int((time.monotonic() - started_at) * self._rate)
            while self.produced < due:
                self._produce(self.produced)
                self.produced += 1

    def _produce(self, number: int) -> None:
        # A fixed stride visits all customers in an order that looks random but is the same in every demo.
        customer = number * 37 % CUSTOMERS
        order = {
            "order": number,
            "customer": customer,
            "item": ITEMS[number % len(ITEMS)],
            "cents": 100 + number * 53 % 4900,
        }
        self._producer.send(self._topic, json.dumps(order).encode(), key=f"customer-{customer}".encode())


@dataclass(slots=True)
class ConsumerProcess:
    """A consumer process."""

    name: str
    process: "subprocess.Popen[bytes]"
    is_killed: bool = field(default=False)

    @classmethod
    def start(cls, name: str, bootstrap: str, topic: str, group: str) -> "ConsumerProcess":
        command = [sys.executable, "-m", "ottla.cli.demo_clients", bootstrap, topic, group, name]
        # In a new session, so that Ctrl-C reaches only the demo, which then stops the consumers in order.
        return cls(
            name, subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True)
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    def kill(self) -> None:
        """Kill it with SIGKILL, so that it cannot leave the group."""
        self.is_killed = True
        self.process.kill()
        self.process.wait()

    def request_leave(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()

    def wait(self) -> None:
        try:
            self.process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()


def consume(bootstrap: str, topic: str, group: str, name: str) -> None:
    consumer = Consumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        client_id=name,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=SESSION_TIMEOUT_MS // 4,
        partition_assignment_strategy="cooperative-sticky",
        max_poll_records=ORDERS_PER_SECOND_MAX // 10,
    )
    is_over = threading.Event()

    def wait_for_eof() -> None:
        sys.stdin.read()
        is_over.set()
        consumer.wakeup()

    threading.Thread(target=wait_for_eof, daemon=True).start()
    with consumer:
        consumer.subscribe([topic])
        while not is_over.is_set():
            try:
                orders = consumer.poll(1.0)
            except WakeupError:
                break
            if orders:
                time.sleep(len(orders) / ORDERS_PER_SECOND_MAX)  # simulates work
                # If the group has rebalanced, the new owners process these orders again.
                with contextlib.suppress(CommitFailedError):
                    consumer.commit()


if __name__ == "__main__":
    consume(*sys.argv[1:5])
