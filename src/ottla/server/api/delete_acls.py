"""DeleteAcls (key 31), versions 1–3: without an authorizer there are no access rules to delete."""

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.runtime.broker import Broker
from ottla.server.api.describe_acls import NO_AUTHORIZER, check_known
from ottla.wire.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse

REQUEST = DeleteAclsRequest


def handle(broker: Broker, context: RequestContext, request: DeleteAclsRequest, version: int) -> DeleteAclsResponse:
    for wanted in request.filters:
        check_known(wanted.resource_type_filter, wanted.pattern_type_filter, wanted.operation, wanted.permission_type)
    return DeleteAclsResponse(
        filter_results=[DeleteAclsFilterResult(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER) for _ in request.filters]
    )
