"""DescribeConfigs (key 32), versions 1–4: values, where each comes from, its synonyms, and on request (from 3 on) a sentence about it.

Topics, brokers, the cluster's defaults (a broker without a name), groups and client-metrics subscriptions. An empty list of names asks for
all, as none does; unknown names are left out. A success has an empty error message, not a null one. Skipped: broker loggers.
"""

from ottla.base.context import RequestContext
from ottla.base.errors import ApiError
from ottla.runtime.broker import Broker
from ottla.runtime.configs import describe_configs
from ottla.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

REQUEST = DescribeConfigsRequest


def handle(broker: Broker, context: RequestContext, request: DescribeConfigsRequest, version: int) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(results=[_described(broker, request, resource) for resource in request.resources])


def _described(broker: Broker, request: DescribeConfigsRequest, resource: DescribeConfigsResource) -> DescribeConfigsResult:
    result = DescribeConfigsResult(resource_type=resource.resource_type, resource_name=resource.resource_name)
    try:
        entries = describe_configs(
            broker, resource.resource_type, resource.resource_name, resource.configuration_keys, documentation=request.include_documentation
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
            synonyms=[DescribeConfigsSynonym(*synonym) for synonym in entry.synonyms] if request.include_synonyms else [],
            config_type=entry.type,
            documentation=entry.documentation,
        )
        for entry in entries
    ]
    return result
