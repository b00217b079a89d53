"""The producer snapshot file as a message, which tests compare with Kafka's. `log/producer_state.py` encodes it."""

from ottla.wire.schema import NEVER, Message, array, i16, i32, i64, u32


class ProducerEntry(Message):
    producer_id: int = i64("1", default=0)
    epoch: int = i16("1", default=0)
    last_sequence: int = i32("1", default=0)
    last_offset: int = i64("1", default=0)
    offset_delta: int = i32("1", default=0)
    timestamp: int = i64("1", default=0)
    coordinator_epoch: int = i32("1", default=0)
    current_txn_first_offset: int = i64("1", default=0)


class ProducerSnapshot(Message):
    MIN_VERSION = 1
    MAX_VERSION = 1
    FLEXIBLE_FROM = NEVER

    crc: int = u32("1", default=0)
    producer_entries: list[ProducerEntry] = array(ProducerEntry, "1", default=())
