"""InitProducerId of idempotent producers."""

from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from tests.compat.catalog.case import Call, Case


def init(**fields: object) -> Call:
    return Call(InitProducerIdRequest(**{"transactional_id": None, "transaction_timeout_ms": 60_000, **fields}))


CASES = [
    Case("plain", (init(),)),
    Case("twice", (init(), init())),
    Case("an absurd timeout means nothing", (init(transaction_timeout_ms=2**31 - 1),)),
    Case("no timeout", (init(transaction_timeout_ms=0),), versions=(0, 5)),
    Case("a negative timeout", (init(transaction_timeout_ms=-1),), versions=(0, 5)),
    Case("with an id and an epoch", (init(producer_id=1000, producer_epoch=3),), versions=(3, 4, 5)),
    Case("with an id alone", (init(producer_id=1000),), versions=(3, 4, 5)),
    Case("with an epoch alone", (init(producer_epoch=3),), versions=(3, 4, 5)),
    Case("with the last epoch there is", (init(producer_id=1000, producer_epoch=32767),), versions=(3, 5)),
    Case("an empty transactional id", (init(transactional_id=""),)),
]
