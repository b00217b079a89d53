"""ConsumerGroupHeartbeat (key 68), versions 0–1: rejected, as by a Kafka cluster whose group.version is 0.

Clients report UNSUPPORTED_VERSION in this response as fatal. If the API were missing from ApiVersions, librdkafka would
wait forever. Skipped: consumer groups of KIP-848; see docs/SKIPPED.md.
"""

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.runtime.broker import Broker
from ottla.runtime.unsupported_features import CONSUMER_PROTOCOL
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse

REQUEST = ConsumerGroupHeartbeatRequest


def handle(
    broker: Broker, context: RequestContext, request: ConsumerGroupHeartbeatRequest, version: int
) -> ConsumerGroupHeartbeatResponse:
    broker.unsupported_features.report(context, CONSUMER_PROTOCOL)
    return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
