"""DeleteTopics (key 20), versions 1–6: delete topics by name, from version 6 on also by id. Files are removed in the
background."""

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.runtime.broker import Broker
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

REQUEST = DeleteTopicsRequest
DELETION_DISABLED_MIN_VERSION = 3
"""The first version whose clients know TOPIC_DELETION_DISABLED."""


async def handle(
    broker: Broker, context: RequestContext, request: DeleteTopicsRequest, version: int
) -> DeleteTopicsResponse:
    response: DeleteTopicsResponse = await broker.controller.submit(request)
    if version < DELETION_DISABLED_MIN_VERSION:
        for result in response.responses:
            if result.error_code == ErrorCode.TOPIC_DELETION_DISABLED:
                result.error_code = ErrorCode.INVALID_REQUEST
    return response
