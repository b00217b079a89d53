"""DeleteAcls (key 31), versions 1–3: rejected, as there is no authorizer, and so no ACLs."""

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.runtime.broker import Broker
from ottla.server.api.describe_acls import NO_AUTHORIZER, check_known
from ottla.wire.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse

REQUEST = DeleteAclsRequest


def handle(broker: Broker, context: RequestContext, request: DeleteAclsRequest, version: int) -> DeleteAclsResponse:
    for acl_filter in request.filters:
        check_known(
            acl_filter.resource_type_filter,
            acl_filter.pattern_type_filter,
            acl_filter.operation,
            acl_filter.permission_type,
        )
    return DeleteAclsResponse(
        filter_results=[DeleteAclsFilterResult(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER) for _ in request.filters]
    )
