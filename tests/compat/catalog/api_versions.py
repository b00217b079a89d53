"""ApiVersions, including versions that the broker does not support."""

from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.metadata import MetadataRequest
from tests.compat.catalog.case import Call, Case, RawFrame
from tests.compat.raw import header_bytes

NAMED = ApiVersionsRequest(client_software_name="compat-test", client_software_version="1.0.0")
FLEXIBLE_BODY = b"\x0ccompat-test\x061.0.0\x00"


def named(name: str, version: str) -> Call:
    return Call(ApiVersionsRequest(client_software_name=name, client_software_version=version))


def of_version(version: int, body: bytes, *, flexible: bool = True) -> RawFrame:
    return RawFrame(header_bytes(18, version, flexible=flexible) + body, ApiVersionsRequest, 0)


CASES = [
    Case("valid request", (Call(NAMED),)),
    Case("twice on one connection", (Call(NAMED), Call(NAMED))),
    Case("empty software name", (named("", "1.0"),), versions=(3, 4)),
    Case("empty software version", (named("compat", ""),), versions=(3, 4)),
    Case("software name with a space", (named("com pat", "1.0"),), versions=(3, 4)),
    Case("software name with dots and dashes", (named("com.pat-1", "1.0-rc.2"),), versions=(3, 4)),
    Case("software name starts with a dash", (named("-compat", "1.0"),), versions=(3, 4)),
    Case("version one too new", (of_version(5, FLEXIBLE_BODY),), versions=(5,)),
    Case(
        "version far too new, connection stays open",
        (of_version(127, FLEXIBLE_BODY), Call(NAMED, 0)),
        versions=(127,),
    ),
    Case("version too new, invalid body", (of_version(9, b"\xff\xff\xff"),), versions=(9,)),
    Case("version too new, no body", (of_version(6, b"", flexible=False),), versions=(6,)),
    Case("negative version", (of_version(-1, b"", flexible=False),), versions=(-1,)),
    Case("trailing bytes", (RawFrame(header_bytes(18, 0) + b"more", ApiVersionsRequest, 0),), versions=(0,)),
    Case("no client id", (RawFrame(header_bytes(18, 0, client_id=None), ApiVersionsRequest, 0),), versions=(0,)),
    Case("empty client id", (RawFrame(header_bytes(18, 0, client_id=""), ApiVersionsRequest, 0),), versions=(0,)),
    Case("unknown api key", (RawFrame(header_bytes(999, 0), MetadataRequest, 0),), versions=(0,)),
    Case("negative api key", (RawFrame(header_bytes(-1, 0), MetadataRequest, 0),), versions=(0,)),
    Case("Metadata version too new", (RawFrame(header_bytes(3, 99), MetadataRequest, 0),), versions=(99,)),
    Case(
        "Produce version too old",
        (RawFrame(header_bytes(0, 2) + bytes(10), MetadataRequest, 0),),
        versions=(2,),
    ),
    Case(
        "Fetch version too old",
        (RawFrame(header_bytes(1, 3) + bytes(16), MetadataRequest, 0),),
        versions=(3,),
    ),
    Case(
        "unknown tag in the header",
        (RawFrame(header_bytes(18, 3) + b"\x01\x63\x02ab" + FLEXIBLE_BODY, ApiVersionsRequest, 3),),
        versions=(3,),
    ),
    Case(
        "unknown tag in the body",
        (RawFrame(header_bytes(18, 3, flexible=True) + FLEXIBLE_BODY[:-1] + b"\x01\x63\x02ab", ApiVersionsRequest, 3),),
        versions=(3,),
    ),
    Case(
        "truncated body",
        (RawFrame(header_bytes(18, 3, flexible=True) + FLEXIBLE_BODY[:5], ApiVersionsRequest, 3),),
        versions=(3,),
    ),
    Case("empty frame", (RawFrame(b"", ApiVersionsRequest, 0),), versions=(0,)),
    Case("truncated header", (RawFrame(header_bytes(18, 0)[:5], ApiVersionsRequest, 0),), versions=(0,)),
]
