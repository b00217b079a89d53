"""DescribeCluster (key 60), versions 0–2: the brokers, the controller and the cluster id."""

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.runtime.broker import Broker
from ottla.server.api.metadata import CLUSTER_OPERATIONS
from ottla.wire.messages.describe_cluster import DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse

REQUEST = DescribeClusterRequest
BROKERS = 1
CONTROLLERS = 2


def handle(
    broker: Broker, context: RequestContext, request: DescribeClusterRequest, version: int
) -> DescribeClusterResponse:
    if request.endpoint_type == CONTROLLERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="controllers can be described on a controller listener only",
        )
    if request.endpoint_type != BROKERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"unsupported endpoint type {request.endpoint_type}; use 1 (broker) or 2 (controller)",
        )
    response = DescribeClusterResponse(
        cluster_id=broker.image.cluster_id,
        controller_id=broker.settings.node_id,
        brokers=[
            DescribeClusterBroker(endpoint.node_id, endpoint.host, endpoint.port, endpoint.rack, endpoint.fenced)
            for endpoint in broker.endpoints(context.listener, include_fenced=request.include_fenced_brokers)
        ],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response
