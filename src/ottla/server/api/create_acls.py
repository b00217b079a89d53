"""CreateAcls (key 30), versions 1–3: rejected, as there is no authorizer that would apply ACLs."""

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.runtime.broker import Broker
from ottla.server.api.describe_acls import NO_AUTHORIZER, check_known
from ottla.wire.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse

REQUEST = CreateAclsRequest


def handle(broker: Broker, context: RequestContext, request: CreateAclsRequest, version: int) -> CreateAclsResponse:
    for creation in request.creations:
        check_known(
            creation.resource_type, creation.resource_pattern_type, creation.operation, creation.permission_type
        )
    return CreateAclsResponse(
        results=[AclCreationResult(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER) for _ in request.creations]
    )
