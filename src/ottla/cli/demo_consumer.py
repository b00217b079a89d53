"""One consumer of `ottla demo`, as a process of its own so that it can really be killed: `python -m ottla.cli.demo_consumer ...`.

It handles orders until its standard input ends, then leaves the group. Killed, it leaves nothing behind, and the group has to notice.
"""

import contextlib
import sys
import threading
import time

from ottla.client import Consumer
from ottla.client.consumer_errors import CommitFailed, Wakeup

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
            except Wakeup:
                break
            if orders:
                time.sleep(len(orders) / ORDERS_PER_SECOND_MAX)  # the work
                with contextlib.suppress(CommitFailed):  # the group has gone on without it: others handle these again
                    consumer.commit()


if __name__ == "__main__":
    consume(*sys.argv[1:5])
