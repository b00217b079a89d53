"""Producer ids are handed to brokers in blocks, so that a new producer costs no write to the metadata log."""

from ottla.base.decision import Decision
from ottla.base.errors import ErrorCode
from ottla.controller.brokers import check_broker_epoch
from ottla.controller.requests import AllocateProducerIds, ProducerIdBlock, RequestRejected
from ottla.metadata.image import ClusterImage
from ottla.wire.records.metadata import ProducerIdsRecord

PRODUCER_ID_BLOCK_SIZE = 1000
PRODUCER_ID_MAX = 2**63 - 1


def allocate_producer_ids(image: ClusterImage, request: AllocateProducerIds) -> Decision:
    """The next block, or why there is none."""
    refused = check_broker_epoch(image, request.broker_id, request.broker_epoch)
    if refused is not None:
        return Decision(response=refused)
    first = image.next_producer_id
    if first > PRODUCER_ID_MAX - PRODUCER_ID_BLOCK_SIZE:
        return Decision(
            response=RequestRejected(ErrorCode.UNKNOWN_SERVER_ERROR, "all producer ids have been given away")
        )
    record = ProducerIdsRecord(request.broker_id, request.broker_epoch, first + PRODUCER_ID_BLOCK_SIZE)
    return Decision((record,), ProducerIdBlock(first, PRODUCER_ID_BLOCK_SIZE))
