"""ACLs, SASL, delegation tokens and SCRAM credentials, on a broker without an authorizer or authentication."""

from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from ottla.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.wire.messages.describe_acls import DescribeAclsRequest
from ottla.wire.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from ottla.wire.messages.describe_delegation_token import DescribeDelegationTokenOwner, DescribeDelegationTokenRequest
from ottla.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from ottla.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from ottla.wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest
from ottla.wire.schema import Message
from tests.compat.catalog.case import Call, Case

ANY = 1
ALL_ACLS = {
    "resource_name_filter": None,
    "principal_filter": None,
    "host_filter": None,
    "operation": ANY,
    "permission_type": ANY,
}
RULE = {
    "resource_type": 2,
    "resource_name": "$a",
    "principal": "User:x",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}


def calls(*requests: Message) -> tuple[Call, ...]:
    return tuple(Call(request) for request in requests)


def acls(**fields: object) -> DescribeAclsRequest:
    return DescribeAclsRequest(**{"resource_type_filter": ANY, "pattern_type_filter": ANY, **ALL_ACLS, **fields})


def rule(**fields: object) -> AclCreation:
    return AclCreation(**{**RULE, **fields})


def creating(*rules: AclCreation) -> CreateAclsRequest:
    return CreateAclsRequest(creations=list(rules))


def acl_filter(**fields: object) -> DeleteAclsFilter:
    return DeleteAclsFilter(**{"resource_type_filter": ANY, "pattern_type_filter": ANY, **ALL_ACLS, **fields})


def quotas(*components: tuple[str, int, str | None], strict: bool = False) -> DescribeClientQuotasRequest:
    requested = [
        ComponentData(entity_type=kind, match_type=match_type, match=match) for kind, match_type, match in components
    ]
    return DescribeClientQuotasRequest(components=requested, strict=strict)


def users(*names: str) -> DescribeUserScramCredentialsRequest:
    return DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in names])


CASES = [
    Case("all acls", calls(acls())),
    Case("acls of a topic", calls(acls(resource_type_filter=2, resource_name_filter="t", pattern_type_filter=3))),
    Case(
        "acls with an UNKNOWN filter", calls(acls(resource_type_filter=0), acls(operation=0), acls(permission_type=0))
    ),
    Case(
        "acls with an invalid filter",
        calls(acls(resource_type_filter=99), acls(operation=99), acls(pattern_type_filter=99)),
    ),
    Case("acls with a negative filter", calls(acls(resource_type_filter=-1))),
    Case("create an acl", calls(creating(rule()))),
    Case("create two acls", calls(creating(rule(), rule(operation=4)))),
    Case("create acls, empty request", calls(creating())),
    Case(
        "create an invalid acl",
        calls(
            creating(rule(resource_type=0)),
            creating(rule(operation=99)),
            creating(rule(principal="x")),
            creating(rule(resource_name="")),
        ),
    ),
    Case("delete acls", calls(DeleteAclsRequest(filters=[acl_filter()]))),
    Case("delete acls by two filters", calls(DeleteAclsRequest(filters=[acl_filter(), acl_filter(operation=3)]))),
    Case("delete acls without filters", calls(DeleteAclsRequest(filters=[]))),
    Case(
        "delete acls with an invalid filter",
        calls(
            DeleteAclsRequest(filters=[acl_filter(operation=0)]),
            DeleteAclsRequest(filters=[acl_filter(resource_type_filter=99)]),
        ),
    ),
    Case("sasl handshake", calls(SaslHandshakeRequest(mechanism="PLAIN"))),
    Case(
        "sasl handshake, unknown mechanism",
        calls(SaslHandshakeRequest(mechanism="NO"), SaslHandshakeRequest(mechanism="")),
    ),
    Case(
        "two sasl handshakes", calls(SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeRequest(mechanism="PLAIN"))
    ),
    Case("sasl authenticate", calls(SaslAuthenticateRequest(auth_bytes=b"\0user\0word"))),
    Case("sasl authenticate, no bytes", calls(SaslAuthenticateRequest(auth_bytes=b""))),
    Case(
        "sasl handshake, then authenticate",
        (Call(SaslHandshakeRequest(mechanism="PLAIN"), 1), Call(SaslAuthenticateRequest(auth_bytes=b"\0user\0word"))),
        versions=(0, 1, 2),
    ),
    Case("create a token", calls(CreateDelegationTokenRequest(max_lifetime_ms=-1))),
    Case(
        "create a token with a renewer",
        calls(
            CreateDelegationTokenRequest(
                renewers=[CreatableRenewers(principal_type="User", principal_name="x")], max_lifetime_ms=1000
            )
        ),
    ),
    Case(
        "create a token for an owner",
        calls(
            CreateDelegationTokenRequest(owner_principal_type="User", owner_principal_name="x", max_lifetime_ms=1000)
        ),
        versions=(3,),
    ),
    Case(
        "create a token, renewer is not a user",
        calls(
            CreateDelegationTokenRequest(
                renewers=[CreatableRenewers(principal_type="Group", principal_name="x")], max_lifetime_ms=1000
            )
        ),
    ),
    Case("renew a token", calls(RenewDelegationTokenRequest(hmac=b"12345", renew_period_ms=1000))),
    Case("renew a token, empty hmac", calls(RenewDelegationTokenRequest(hmac=b"", renew_period_ms=-1))),
    Case("expire a token", calls(ExpireDelegationTokenRequest(hmac=b"12345", expiry_time_period_ms=-1))),
    Case("expire a token, empty hmac", calls(ExpireDelegationTokenRequest(hmac=b"", expiry_time_period_ms=1))),
    Case("describe all tokens", calls(DescribeDelegationTokenRequest(owners=None))),
    Case("describe no tokens", calls(DescribeDelegationTokenRequest(owners=[]))),
    Case(
        "describe the tokens of an owner",
        calls(
            DescribeDelegationTokenRequest(
                owners=[DescribeDelegationTokenOwner(principal_type="User", principal_name="x")]
            )
        ),
    ),
    Case("all credentials", calls(DescribeUserScramCredentialsRequest(users=None))),
    Case("credentials, no users", calls(users())),
    Case("credentials of an unknown user", calls(users("nobody-here"))),
    Case("credentials of two unknown users", calls(users("nobody-here", "nor-here"))),
    Case("credentials, same user twice", calls(users("nobody-here", "nobody-here"))),
    Case("credentials of a user with an empty name", calls(users(""))),
    Case("all quotas", calls(quotas())),
    Case("quotas, strict without components", calls(quotas(strict=True))),
    Case("quotas of a user", calls(quotas(("user", 0, "x")), quotas(("user", 0, "x"), strict=True))),
    Case("quotas of the default user", calls(quotas(("user", 1, None)))),
    Case("quotas of any user", calls(quotas(("user", 2, None)))),
    Case("quotas of a client", calls(quotas(("client-id", 0, "x")), quotas(("client-id", 2, None)))),
    Case("quotas of a user and a client", calls(quotas(("user", 0, "x"), ("client-id", 0, "y")))),
    Case("quotas of an address", calls(quotas(("ip", 0, "127.0.0.1")), quotas(("ip", 1, None)))),
    Case("quotas of an address and a user", calls(quotas(("ip", 0, "127.0.0.1"), ("user", 0, "x")))),
    Case("quotas of an unknown entity type", calls(quotas(("nothing", 0, "x")), quotas(("", 2, None)))),
    Case("quotas, same entity type twice", calls(quotas(("user", 0, "x"), ("user", 0, "y")))),
    Case("quotas with an unknown match type", calls(quotas(("user", 3, "x")), quotas(("user", -1, None)))),
    Case("quotas with a null name", calls(quotas(("user", 0, None)))),
    Case("quotas with a name where none is allowed", calls(quotas(("user", 1, "x")), quotas(("user", 2, "x")))),
]
