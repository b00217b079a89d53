"""DescribeConfigs (key 32), versions 1–4: values, their sources and synonyms, and on request (from 3 on) documentation.

Topics, brokers, the cluster's defaults (a broker without a name), groups and client-metrics subscriptions. An empty
list of names requests all configs, as null does; unknown names are omitted. A success has an empty error message, not
a null one. Skipped: broker loggers.

Of many resources equal configs are encoded once: most topics have no configs of their own.
"""

from struct import Struct
from typing import Any

from ottla.base.decision import RequestContext
from ottla.base.errors import ApiError, ErrorCode
from ottla.metadata.image import ConfigResource, ResourceType
from ottla.runtime.broker import Broker
from ottla.runtime.configs import describe_configs
from ottla.server.error_counts import Encoded
from ottla.wire.errors import MalformedMessage
from ottla.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from ottla.wire.schema import SlicedWork, encode, part_encoder
from ottla.wire.varint import unsigned_varint

REQUEST = DescribeConfigsRequest
FLEXIBLE_FROM = 4
FEW_RESOURCES_MAX = 5
"""Up to this number of resources are encoded as messages; with more, equal configs are encoded once."""
THROTTLE_BYTES = 4
RESPONSE_BYTES_MAX = 64 << 20
"""A few bytes of a request, which may be repeated, return 50 kB of broker configs."""
_i32 = Struct(">i").pack


def handle(
    broker: Broker, context: RequestContext, request: DescribeConfigsRequest, version: int
) -> SlicedWork[DescribeConfigsResponse] | SlicedWork[Encoded]:
    if len(request.resources) <= FEW_RESOURCES_MAX:
        return _describe_few(broker, request)
    return _describe_many(broker, request, version)


def _describe_few(broker: Broker, request: DescribeConfigsRequest) -> SlicedWork[DescribeConfigsResponse]:
    response = DescribeConfigsResponse()
    for resource in request.resources:
        response.results.append(_described(broker, request, resource))
        yield
    return response


def _describe_many(broker: Broker, request: DescribeConfigsRequest, version: int) -> SlicedWork[Encoded]:
    """Return the bytes that the messages would have."""
    encoded: dict[Any, bytes] = {}
    parts: list[bytes] = []
    size = errors = 0
    for resource in request.resources:
        key = _key(broker, resource)
        configs = encoded.get(key)
        if configs is None:
            result = _described(broker, request, resource)
            if result.error_code == ErrorCode.NONE:
                configs = encoded[key] = _encoded_configs(result.configs, version)
            else:
                errors += 1
                parts.append(part_encoder(DescribeConfigsResponse, DescribeConfigsResult, version)(result))
        if configs is not None:
            parts += (_encoded_start(resource, version), configs)
            size += len(configs)
            if size > RESPONSE_BYTES_MAX:
                raise MalformedMessage(
                    f"DescribeConfigs request whose response exceeds the limit of {RESPONSE_BYTES_MAX} bytes"
                )
        yield
    start = encode(DescribeConfigsResponse(), version)[:THROTTLE_BYTES] + _count(len(request.resources), version)
    joined = b"".join([start, *parts, _no_tags(version)])
    broker.scheduler.free_in_slices(parts)
    return Encoded(joined, errors)


def _key(broker: Broker, resource: DescribeConfigsResource) -> tuple[Any, ...]:
    """Return a key that is equal for resources with equal configs, as most topics are."""
    kind, name, keys = resource.resource_type, resource.resource_name, resource.configuration_keys
    identity = name in broker.image.topics_by_name if kind == ResourceType.TOPIC else name
    set_configs = broker.image.configs.get(ConfigResource(kind, name), {})
    return kind, identity, tuple(set_configs.items()), None if keys is None else tuple(keys)


def _encoded_start(resource: DescribeConfigsResource, version: int) -> bytes:
    """Encode a result up to its configs."""
    result = DescribeConfigsResult(ErrorCode.NONE, "", resource.resource_type, resource.resource_name)
    encoded = part_encoder(DescribeConfigsResponse, DescribeConfigsResult, version)(result)
    return encoded[: -len(_count(0, version) + _no_tags(version))]


def _encoded_configs(configs: list[DescribeConfigsResourceResult], version: int) -> bytes:
    encode_one = part_encoder(DescribeConfigsResponse, DescribeConfigsResourceResult, version)
    return b"".join([_count(len(configs), version), *map(encode_one, configs), _no_tags(version)])


def _count(count: int, version: int) -> bytes:
    return unsigned_varint(count + 1) if version >= FLEXIBLE_FROM else _i32(count)


def _no_tags(version: int) -> bytes:
    return b"\0" if version >= FLEXIBLE_FROM else b""


def _described(
    broker: Broker, request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(resource_type=resource.resource_type, resource_name=resource.resource_name)
    try:
        entries = describe_configs(
            broker,
            resource.resource_type,
            resource.resource_name,
            resource.configuration_keys,
            documentation=request.include_documentation,
        )
    except ApiError as error:
        result.error_code = error.code
        result.error_message = error.message
        return result
    result.error_message = ""
    result.configs = [
        DescribeConfigsResourceResult(
            name=entry.name,
            value=entry.value,
            read_only=entry.read_only,
            config_source=entry.source,
            is_sensitive=entry.is_sensitive,
            synonyms=[DescribeConfigsSynonym(*synonym) for synonym in entry.synonyms]
            if request.include_synonyms
            else [],
            config_type=entry.type,
            documentation=entry.documentation,
        )
        for entry in entries
    ]
    return result
