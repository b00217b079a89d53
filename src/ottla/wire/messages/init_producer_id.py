"""InitProducerId: assign an id and epoch to an idempotent or transactional producer."""

from ottla.wire.schema import Message, i16, i32, i64, string


class InitProducerIdRequest(Message):
    API_KEY = 22
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_FROM = 2

    transactional_id: str | None = string("0+", nullable="0+", default="")
    transaction_timeout_ms: int = i32("0+", default=0)
    producer_id: int = i64("3+", default=-1)
    producer_epoch: int = i16("3+", default=-1)


class InitProducerIdResponse(Message):
    API_KEY = 22
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_FROM = 2

    throttle_time_ms: int = i32("0+", default=0, ignorable=True)
    error_code: int = i16("0+", default=0)
    producer_id: int = i64("0+", default=-1)
    producer_epoch: int = i16("0+", default=0)
