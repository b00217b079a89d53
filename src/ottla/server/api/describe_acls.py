"""DescribeAcls (key 29), versions 1–3: without an authorizer there are no access rules.

A filter that is unknown by its own word (0) is no filter: Kafka closes the connection, and so does this.
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
    """The types, patterns, operations and permissions of access rules."""
    if UNKNOWN in codes:
        raise MalformedMessage("an access rule, or a filter for them, with an element that is unknown")
