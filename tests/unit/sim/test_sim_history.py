"""The history and log file checks detect every kind of violation."""

import random

import pytest

from ottla.sim.history import History
from ottla.sim.log_files import check_log_files
from ottla.wire.batches import Record, build_batch

P = ("topic", 0)


def records(*values, start=0):
    return [Record(offset=start + index, value=value) for index, value in enumerate(values)]


def sent(history, *values, producer="p", is_idempotent=True):
    return history.on_send(producer, P, values, is_idempotent=is_idempotent)


def test_valid_history_has_no_violations():
    history = History()
    history.on_acked(sent(history, b"a", b"b"), 0)
    sent(history, b"lost")
    sent(history, b"unknown")
    history.on_failed(sent(history, b"rejected"))
    history.on_fetched(P, records(b"a", b"b"), 2, known_before=0)
    history.on_fetched(P, records(b"unknown", start=2), 3, known_before=history.high_watermark(P))
    history.on_fetched(P, [], 2, known_before=0)  # an earlier request whose response came later
    assert history.check({P: records(b"a", b"b", b"unknown")}) == []


def violation(record_events, final):
    history = History()
    record_events(history)
    return [line.partition(":")[0] for line in history.check({P: final})]


def test_two_values_at_one_offset():
    def record_events(history):
        sent(history, b"a"), sent(history, b"b")
        history.on_fetched(P, records(b"a"), 1, known_before=0)
        history.on_fetched(P, records(b"b"), 1, known_before=0)

    assert "1" in violation(record_events, records(b"a", b"b"))


def test_missing_acked_record():
    assert violation(lambda history: history.on_acked(sent(history, b"a"), 0), []) == ["1, 3"]


def test_missing_record_that_was_read():
    def record_events(history):
        sent(history, b"a")
        history.on_fetched(P, records(b"a"), 1, known_before=0)

    assert violation(record_events, []) == ["1, 3"]


def test_duplicate_of_idempotent_producer():
    assert violation(lambda history: sent(history, b"a"), records(b"a", b"a")) == ["4"]
    assert violation(lambda history: sent(history, b"a", is_idempotent=False), records(b"a", b"a")) == []


def test_batch_acked_at_two_offsets():
    def record_events(history):
        send = sent(history, b"a")
        history.on_acked(send, 0)
        history.on_acked(send, 1)

    assert "4" in violation(record_events, records(b"a", b"a"))


def test_rejected_record_in_log():
    assert violation(lambda history: history.on_failed(sent(history, b"a")), records(b"a")) == ["5"]


def test_incomplete_batch():
    assert violation(lambda history: sent(history, b"a", b"b"), records(b"a")) == ["2"]


def test_offset_gap():
    assert violation(
        lambda history: (sent(history, b"a"), sent(history, b"b")), [Record(0, value=b"a"), Record(2, value=b"b")]
    ) == ["2"]


def test_out_of_order_sends_of_producer():
    assert violation(lambda history: (sent(history, b"a"), sent(history, b"b")), records(b"b", b"a")) == ["8"]


def test_value_never_sent():
    assert violation(lambda history: None, records(b"a")) == ["1"]


def test_high_watermark_decreases_or_is_exceeded():
    def record_events(history):
        sent(history, b"a")
        history.on_fetched(P, records(b"a"), 1, known_before=0)
        history.on_fetched(P, [], 0, known_before=history.high_watermark(P))

    assert violation(record_events, records(b"a")) == ["19"]
    above = violation(
        lambda history: (sent(history, b"a"), history.on_fetched(P, records(b"a"), 0, known_before=0)), records(b"a")
    )
    assert above == ["19"]


def test_power_loss_discards_observations():
    history = History()
    history.on_acked(sent(history, b"a"), 0)
    history.on_fetched(P, records(b"a"), 1, known_before=0)
    history.discard_observations()
    assert history.check({P: []}) == []


@pytest.fixture
def files():
    """Two segments with batches at offsets 0 (2 records), 2 (1) and 3 (1); index entries for the second and fourth."""
    first = build_batch([Record(timestamp=10, value=b"a"), Record(timestamp=30, value=b"b")])
    second = build_batch([Record(timestamp=20, value=b"c")], base_offset=2)
    third = build_batch([Record(timestamp=40, value=b"d")], base_offset=3)
    return {
        "/d/t-0/00000000000000000000.log": bytes(first + second),
        "/d/t-0/00000000000000000000.index": (2).to_bytes(4, "big") + len(first).to_bytes(4, "big"),
        "/d/t-0/00000000000000000000.timeindex": (30).to_bytes(8, "big") + (1).to_bytes(4, "big"),
        "/d/t-0/00000000000000000003.log": bytes(third),
        "/d/t-0/00000000000000000003.index": b"",
        "/d/t-0/00000000000000000003.timeindex": (40).to_bytes(8, "big") + (0).to_bytes(4, "big"),
        "/d/t-0/leader-epoch-checkpoint": b"whatever",
    }


def test_consistent_files_have_no_problems(files):
    assert check_log_files(files.items()) == []


def test_any_changed_byte_is_detected(files):
    """In the indexes any byte; in the log any byte covered by a checksum."""
    source = random.Random(1)
    for path, data in files.items():
        if path.endswith(("checkpoint", "0.log")):
            continue
        for position in range(21 if path.endswith(".log") else 0, len(data)):
            changed = bytearray(data)
            changed[position] ^= 1 << source.randrange(8)
            assert check_log_files((files | {path: bytes(changed)}).items()), (path, position)


def test_missing_data_is_detected(files):
    for path in files:
        if not path.endswith(("checkpoint", "3.log", "0.log")):
            rest = {other: data for other, data in files.items() if other != path}
            assert check_log_files(rest.items()) == [f"{path} is missing"]
    assert len(check_log_files((files | {"/d/t-0/00000000000000000003.log": b""}).items())) > 0
    torn = files["/d/t-0/00000000000000000003.log"][:-1]
    assert any(
        "after its last batch" in line
        for line in check_log_files((files | {"/d/t-0/00000000000000000003.log": torn}).items())
    )
