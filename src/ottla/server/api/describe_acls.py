"""DescribeAcls (key 29), versions 1–3: rejected, as there is no authorizer, and so no ACLs.

As in Kafka a filter with an element of type UNKNOWN (0) closes the connection.
"""

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.runtime.broker import Broker
from ottla.wire.errors import MalformedMessage
from ottla.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

REQUEST = DescribeAclsRequest
UNKNOWN = 0
NO_AUTHORIZER = "no authorizer is configured on this broker"


def handle(broker: Broker, context: RequestContext, request: DescribeAclsRequest, version: int) -> DescribeAclsResponse:
    check_known(request.resource_type_filter, request.pattern_type_filter, request.operation, request.permission_type)
    return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)


def check_known(*codes: int) -> None:
    """Raise `MalformedMessage` if a resource type, pattern type, operation or permission is UNKNOWN."""
    if UNKNOWN in codes:
        raise MalformedMessage("ACL or ACL filter with an element of type UNKNOWN (0)")
