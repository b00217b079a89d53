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


def ask(*requests: Message) -> tuple[Call, ...]:
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
    requested = [ComponentData(entity_type=kind, match_type=how, match=what) for kind, how, what in components]
    return DescribeClientQuotasRequest(components=requested, strict=strict)


def users(*names: str) -> DescribeUserScramCredentialsRequest:
    return DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in names])


CASES = [
    Case("all acls", ask(acls())),
    Case("acls of a topic", ask(acls(resource_type_filter=2, resource_name_filter="t", pattern_type_filter=3))),
    Case("acls by an unknown filter", ask(acls(resource_type_filter=0), acls(operation=0), acls(permission_type=0))),
    Case(
        "acls by an impossible filter",
        ask(acls(resource_type_filter=99), acls(operation=99), acls(pattern_type_filter=99)),
    ),
    Case("acls by a negative filter", ask(acls(resource_type_filter=-1))),
    Case("create an acl", ask(creating(rule()))),
    Case("create two acls", ask(creating(rule(), rule(operation=4)))),
    Case("create no acl", ask(creating())),
    Case(
        "create an impossible acl",
        ask(
            creating(rule(resource_type=0)),
            creating(rule(operation=99)),
            creating(rule(principal="x")),
            creating(rule(resource_name="")),
        ),
    ),
    Case("delete acls", ask(DeleteAclsRequest(filters=[acl_filter()]))),
    Case("delete acls by two filters", ask(DeleteAclsRequest(filters=[acl_filter(), acl_filter(operation=3)]))),
    Case("delete acls by no filter", ask(DeleteAclsRequest(filters=[]))),
    Case(
        "delete acls by an unknown filter",
        ask(
            DeleteAclsRequest(filters=[acl_filter(operation=0)]),
            DeleteAclsRequest(filters=[acl_filter(resource_type_filter=99)]),
        ),
    ),
    Case("a handshake", ask(SaslHandshakeRequest(mechanism="PLAIN"))),
    Case(
        "a handshake for an unknown mechanism",
        ask(SaslHandshakeRequest(mechanism="NO"), SaslHandshakeRequest(mechanism="")),
    ),
    Case("two handshakes", ask(SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeRequest(mechanism="PLAIN"))),
    Case("authenticate", ask(SaslAuthenticateRequest(auth_bytes=b"\0user\0word"))),
    Case("authenticate with nothing", ask(SaslAuthenticateRequest(auth_bytes=b""))),
    Case(
        "a handshake, then authenticate",
        (Call(SaslHandshakeRequest(mechanism="PLAIN"), 1), Call(SaslAuthenticateRequest(auth_bytes=b"\0user\0word"))),
        versions=(0, 1, 2),
    ),
    Case("create a token", ask(CreateDelegationTokenRequest(max_lifetime_ms=-1))),
    Case(
        "create a token for others",
        ask(
            CreateDelegationTokenRequest(
                renewers=[CreatableRenewers(principal_type="User", principal_name="x")], max_lifetime_ms=1000
            )
        ),
    ),
    Case(
        "create a token for an owner",
        ask(CreateDelegationTokenRequest(owner_principal_type="User", owner_principal_name="x", max_lifetime_ms=1000)),
        versions=(3,),
    ),
    Case(
        "create a token for no user",
        ask(
            CreateDelegationTokenRequest(
                renewers=[CreatableRenewers(principal_type="Group", principal_name="x")], max_lifetime_ms=1000
            )
        ),
    ),
    Case("renew a token", ask(RenewDelegationTokenRequest(hmac=b"12345", renew_period_ms=1000))),
    Case("renew no token", ask(RenewDelegationTokenRequest(hmac=b"", renew_period_ms=-1))),
    Case("expire a token", ask(ExpireDelegationTokenRequest(hmac=b"12345", expiry_time_period_ms=-1))),
    Case("expire no token", ask(ExpireDelegationTokenRequest(hmac=b"", expiry_time_period_ms=1))),
    Case("describe all tokens", ask(DescribeDelegationTokenRequest(owners=None))),
    Case("describe no tokens", ask(DescribeDelegationTokenRequest(owners=[]))),
    Case(
        "describe the tokens of an owner",
        ask(
            DescribeDelegationTokenRequest(
                owners=[DescribeDelegationTokenOwner(principal_type="User", principal_name="x")]
            )
        ),
    ),
    Case("credentials of all", ask(DescribeUserScramCredentialsRequest(users=None))),
    Case("credentials of no list", ask(users())),
    Case("credentials of an unknown user", ask(users("nobody-here"))),
    Case("credentials of two unknown users", ask(users("nobody-here", "nor-here"))),
    Case("credentials of one user twice", ask(users("nobody-here", "nobody-here"))),
    Case("credentials of a user without a name", ask(users(""))),
    Case("all quotas", ask(quotas())),
    Case("quotas, strictly of nothing", ask(quotas(strict=True))),
    Case("quotas of a user", ask(quotas(("user", 0, "x")), quotas(("user", 0, "x"), strict=True))),
    Case("quotas of the default user", ask(quotas(("user", 1, None)))),
    Case("quotas of any user", ask(quotas(("user", 2, None)))),
    Case("quotas of a client", ask(quotas(("client-id", 0, "x")), quotas(("client-id", 2, None)))),
    Case("quotas of a user and a client", ask(quotas(("user", 0, "x"), ("client-id", 0, "y")))),
    Case("quotas of an address", ask(quotas(("ip", 0, "127.0.0.1")), quotas(("ip", 1, None)))),
    Case("quotas of an address and a user", ask(quotas(("ip", 0, "127.0.0.1"), ("user", 0, "x")))),
    Case("quotas of an unknown type", ask(quotas(("nothing", 0, "x")), quotas(("", 2, None)))),
    Case("quotas of one type twice", ask(quotas(("user", 0, "x"), ("user", 0, "y")))),
    Case("quotas by an unknown match", ask(quotas(("user", 3, "x")), quotas(("user", -1, None)))),
    Case("quotas by a name that is null", ask(quotas(("user", 0, None)))),
    Case("quotas by a name that is not wanted", ask(quotas(("user", 1, "x")), quotas(("user", 2, "x")))),
]
