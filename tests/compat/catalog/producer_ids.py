"""InitProducerId of idempotent producers."""

from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from tests.compat.catalog.case import Call, Case


def init(**fields: object) -> Call:
    return Call(InitProducerIdRequest(**{"transactional_id": None, "transaction_timeout_ms": 60_000, **fields}))


CASES = [
    Case("valid request", (init(),)),
    Case("two requests", (init(), init())),
    Case("huge transaction timeout", (init(transaction_timeout_ms=2**31 - 1),)),
    Case("zero transaction timeout", (init(transaction_timeout_ms=0),), versions=(0, 5)),
    Case("negative transaction timeout", (init(transaction_timeout_ms=-1),), versions=(0, 5)),
    Case("producer id and epoch", (init(producer_id=1000, producer_epoch=3),), versions=(3, 4, 5)),
    Case("producer id without an epoch", (init(producer_id=1000),), versions=(3, 4, 5)),
    Case("producer epoch without an id", (init(producer_epoch=3),), versions=(3, 4, 5)),
    Case("largest producer epoch", (init(producer_id=1000, producer_epoch=32767),), versions=(3, 5)),
    Case("empty transactional id", (init(transactional_id=""),)),
]
