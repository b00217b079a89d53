"""DescribeConfigs of topics and of the broker."""

from collections.abc import Sequence

from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tests.compat.catalog.case import Call, Case, NewTopic

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
OWN = (NewTopic("a", 1, {"retention.ms": "1000000", "cleanup.policy": "compact"}),)


def of(
    kind: int, name: str, keys: Sequence[str] | None = None, *, synonyms: bool = False, documented: bool = False
) -> Call:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None if keys is None else list(keys)
    )
    return Call(
        DescribeConfigsRequest(resources=[resource], include_synonyms=synonyms, include_documentation=documented)
    )


def of_both(*names: str) -> Call:
    resources = [
        DescribeConfigsResource(resource_type=TOPIC, resource_name=name, configuration_keys=["retention.ms"])
        for name in names
    ]
    return Call(DescribeConfigsRequest(resources=resources))


FEW = ["retention.ms", "cleanup.policy", "segment.bytes"]
OF_BROKER = [
    "num.partitions",
    "log.retention.hours",
    "message.max.bytes",
    "auto.create.topics.enable",
    "ssl.keystore.password",
    "log.cleaner.threads",
    "socket.request.max.bytes",
    "log.segment.bytes",
    "compression.type",
    "log.flush.interval.ms",
    "num.io.threads",
    "log.retention.ms",
]

CASES = [
    Case("all topic configs", (of(TOPIC, "$a"),), OWN),
    Case("all topic configs with synonyms", (of(TOPIC, "$a", synonyms=True),), OWN),
    Case("some topic configs", (of(TOPIC, "$a", FEW, synonyms=True),), OWN),
    Case("some topic configs with documentation", (of(TOPIC, "$a", FEW, documented=True),), OWN, versions=(3, 4)),
    Case("no topic configs", (of(TOPIC, "$a", []),), OWN),
    Case("unknown topic config", (of(TOPIC, "$a", ["no.such.config", "retention.ms"]),), OWN),
    Case("unknown topic", (of(TOPIC, "$no"),)),
    Case("invalid topic name", (of(TOPIC, "a/b"),)),
    Case("empty topic name", (of(TOPIC, ""),)),
    Case("two topics, one unknown", (of_both("$a", "$no"),), OWN),
    Case("same topic twice", (of_both("$a", "$a"),), OWN),
    Case("empty request", (Call(DescribeConfigsRequest()),)),
    Case("some broker configs", (of(BROKER, "1", OF_BROKER, synonyms=True),)),
    Case("some broker configs without synonyms", (of(BROKER, "1", OF_BROKER),)),
    Case("unknown broker config", (of(BROKER, "1", ["no.such.config"]),), versions=(1, 4)),
    Case("cluster-wide broker configs", (of(BROKER, ""),), versions=(1, 2, 3, 4)),
    Case("unknown broker", (of(BROKER, "77"),), versions=(1, 4)),
    Case("broker id not a number", (of(BROKER, "one"),), versions=(1, 4)),
    Case("loggers of an unknown broker", (of(BROKER_LOGGER, "77"),), versions=(1, 4)),
    Case("loggers without a broker id", (of(BROKER_LOGGER, ""),), versions=(1, 4)),
    Case("unknown type", (of(0, "$a"), of(3, "$a"), of(99, "$a")), OWN, versions=(1, 4)),
]
