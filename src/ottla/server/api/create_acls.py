"""CreateAcls (key 30), versions 1–3: without an authorizer nobody would look at access rules, so none are taken."""

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.runtime.broker import Broker
from ottla.server.api.describe_acls import NO_AUTHORIZER, check_known
from ottla.wire.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse

REQUEST = CreateAclsRequest


def handle(broker: Broker, context: RequestContext, request: CreateAclsRequest, version: int) -> CreateAclsResponse:
    for wanted in request.creations:
        check_known(wanted.resource_type, wanted.resource_pattern_type, wanted.operation, wanted.permission_type)
    return CreateAclsResponse(
        results=[AclCreationResult(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER) for _ in request.creations]
    )
