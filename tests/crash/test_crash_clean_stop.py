"""SIGTERM and restart: all records exist, and idempotent producers continue."""

import threading

from tests.compat.conftest import create_topic
from tests.compat.raw import RawConnection
from tests.crash.conftest import StartBroker
from tests.crash.files import check_partition
from tests.crash.load import Ledger, Sender, check
from tests.crash.test_crash_torn_files import BATCHES, TOPIC, fill, numbers, produce, wait_until_led
from tests.crash.test_crash_under_load import address, wait_for

STOPPED_BY_SIGTERM = (0, 143)
"""Ottla exits with 0, a JVM that was terminated by a signal with 128 + 15."""


def test_stopped_node_restarts_clean(start_broker: StartBroker) -> None:
    """Records, offsets, sequences and indexes survive three restarts."""
    broker = start_broker()
    producer_id = fill(broker)
    directory = broker.data_dir / f"{TOPIC}-0"
    for end in range(BATCHES, BATCHES + 3):
        assert broker.stop() in STOPPED_BY_SIGTERM
        stopped = check_partition(directory)
        assert (stopped.segments, stopped.end_offset) == (3, end)
        broker.start()
        wait_until_led(broker)
        assert numbers(broker) == list(range(end))
        with RawConnection(address(broker)) as connection:
            assert produce(connection, end - 1, producer_id) == (0, end - 1), "the last one is a duplicate"
            assert produce(connection, end - 2, producer_id)[0] == 45, (
                "a snapshot keeps one batch per producer, in Kafka's format too"
            )
            assert produce(connection, end + 1, producer_id)[0] == 45, "a gap is rejected"
            assert produce(connection, end, producer_id) == (0, end)


def test_node_stops_cleanly_under_load(start_broker: StartBroker) -> None:
    broker = start_broker()
    create_topic(broker.bootstrap, "load", 2, {"segment.bytes": "1048576"})
    ledgers = {0: Ledger(), 1: Ledger()}
    lock = threading.Lock()
    for round_number in range(3):
        # New producers each time: a snapshot contains a producer's last batch only, so a producer that retries several
        # batches may be rejected, by Apache Kafka too.
        senders = [Sender(4 * round_number + i, "load", ledgers, lock, acks=-1, idempotent=i > 1) for i in range(4)]
        stop = threading.Event()
        for sender in senders:
            sender.start(address(broker), stop)
        wait_for(lambda senders=senders: sum(sender.acked_batches for sender in senders) >= 100)
        assert broker.stop() in STOPPED_BY_SIGTERM
        stop.set()
        for sender in senders:
            sender.join()
        broker.start()

        def served() -> bool:
            try:
                check(address(broker), "load", ledgers)
            except AssertionError as error:
                if "error_code=" in str(error):  # no leader yet
                    return False
                raise
            return True

        wait_for(served)
        for partition in ledgers:
            check_partition(broker.data_dir / f"load-{partition}")
