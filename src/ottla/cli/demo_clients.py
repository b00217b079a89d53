"""Who acts in `ottla demo`: a thread that produces orders, and consumers that are processes."""

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


class OrderProducer:
    """Orders at an even rate; each customer's orders stay in one partition, because the customer is the key."""

    def __init__(self, bootstrap: str, topic: str, orders_per_second: int) -> None:
        self._producer = Producer(bootstrap_servers=bootstrap, client_id="shop")
        self._topic, self._rate = topic, orders_per_second
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ottla-demo-traffic", daemon=True)
        self.produced = 0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait until every order that was sent is acknowledged."""
        if not self._is_over.is_set():
            self._is_over.set()
            if self._thread.ident is not None:
                self._thread.join()
            self._producer.close(STOP_SECONDS_MAX)

    def _run(self) -> None:
        began = time.monotonic()
        while not self._is_over.wait(PAUSE_SECONDS):
            due = int((time.monotonic() - began) * self._rate)
            while self.produced < due:
                self._produce(self.produced)
                self.produced += 1

    def _produce(self, number: int) -> None:
        # A fixed stride visits all customers in an order that looks like chance and is the same in every demo.
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
    """A consumer's process."""

    name: str
    process: "subprocess.Popen[bytes]"
    is_killed: bool = field(default=False)

    @classmethod
    def start(cls, name: str, bootstrap: str, topic: str, group: str) -> "ConsumerProcess":
        command = [sys.executable, "-m", "ottla.cli.demo_clients", bootstrap, topic, group, name]
        # In a session of its own, so that Ctrl-C is heard by the demo alone, which then ends everybody in order.
        return cls(
            name, subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True)
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    def kill(self) -> None:
        """As `kill -9`: it cannot say goodbye."""
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


ORDERS_PER_SECOND_MAX = 400
"""As fast as one of them works: fast enough for its share, and slow enough for a backlog to be seen."""
SESSION_TIMEOUT_MS = 2_000
"""How long a silent member is believed to live. Kafka's default is 45 s; nobody wants to watch that."""


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

    def wait_for_the_end() -> None:
        sys.stdin.read()
        is_over.set()
        consumer.wakeup()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    with consumer:
        consumer.subscribe([topic])
        while not is_over.is_set():
            try:
                orders = consumer.poll(1.0)
            except WakeupError:
                break
            if orders:
                time.sleep(len(orders) / ORDERS_PER_SECOND_MAX)  # the work
                with contextlib.suppress(
                    CommitFailedError
                ):  # the group has gone on without it: others handle these again
                    consumer.commit()


if __name__ == "__main__":
    consume(*sys.argv[1:5])
