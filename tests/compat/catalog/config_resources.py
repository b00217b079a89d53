"""ListConfigResources."""

from typing import Any

from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.list_config_resources import ListConfigResourcesRequest
from tests.compat.catalog.case import Call, Case, NewTopic

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


def of(*kinds: int, until: Any = None) -> Call:
    return Call(ListConfigResourcesRequest(resource_types=list(kinds)), None, until)


def configured(kind: int, name: str, config: str, value: str | None) -> Call:
    entry = AlterableConfig(name=config, config_operation=0 if value is not None else 1, value=value)
    return Call(
        IncrementalAlterConfigsRequest(
            resources=[AlterConfigsResource(resource_type=kind, resource_name=name, configs=[entry])]
        ),
        1,
    )


def names(name: str) -> Any:
    return lambda response: any(resource.resource_name.endswith(name) for resource in response.config_resources)


CASES = [
    Case("brokers", (of(BROKER),), versions=(1,)),
    Case("loggers", (of(BROKER_LOGGER),), versions=(1,)),
    Case("brokers and loggers", (of(BROKER, BROKER_LOGGER),), versions=(1,)),
    Case("same type twice", (of(BROKER, BROKER),), versions=(1,)),
    Case("unknown type", (of(3), of(0), of(99), of(-1)), versions=(1,)),
    Case("known and unknown type", (of(BROKER, 3),), versions=(1,)),
    Case("topics", (of(TOPIC),), (NewTopic("a"), NewTopic("b", 1, {"retention.ms": "5"})), versions=(1,)),
    Case("all types", (of(),), (NewTopic("a"),), versions=(1,)),
    Case(
        "groups",
        (
            configured(GROUP, "$g", "consumer.session.timeout.ms", "50000"),
            of(GROUP, until=names("-g")),
            configured(GROUP, "$g", "consumer.session.timeout.ms", None),
        ),
        versions=(1,),
    ),
    Case(
        "client metrics",
        (
            configured(CLIENT_METRICS, "$m", "interval.ms", "60000"),
            Call(ListConfigResourcesRequest(), 0, names("-m")),
            of(CLIENT_METRICS),
            configured(CLIENT_METRICS, "$m", "interval.ms", None),
        ),
        versions=(1,),
    ),
]
