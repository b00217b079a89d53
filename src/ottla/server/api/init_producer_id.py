"""InitProducerId (key 22), versions 0–5: allocate an id for an idempotent producer.

Skipped: a transactional id gets UNSUPPORTED_VERSION, which no client retries; see docs/SKIPPED.md.
"""

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.runtime.broker import Broker
from ottla.runtime.unsupported_features import TRANSACTIONS
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

REQUEST = InitProducerIdRequest
NONE = -1


async def handle(
    broker: Broker, context: RequestContext, request: InitProducerIdRequest, version: int
) -> InitProducerIdResponse:
    if (request.producer_id == NONE) != (request.producer_epoch == NONE) or request.transactional_id == "":
        return _rejected(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        broker.unsupported_features.report(context, TRANSACTIONS)
        return _rejected(ErrorCode.UNSUPPORTED_VERSION)
    return InitProducerIdResponse(producer_id=await broker.producer_ids.next_id(), producer_epoch=0)


def _rejected(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_id=NONE, producer_epoch=NONE)
