"""AlterConfigs and IncrementalAlterConfigs of topics, brokers, groups and client metrics, then DescribeConfigs."""

from collections.abc import Mapping, Sequence
from typing import Any

from ottla.wire.messages import alter_configs, incremental_alter_configs
from ottla.wire.messages.alter_configs import AlterConfigsRequest
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from tests.compat.catalog.case import Call, Case, NewTopic

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
OWN = (NewTopic("a", 1, {"retention.ms": "1000000", "cleanup.policy": "compact"}),)
Change = tuple[str, int, str | None]


def replaced(
    configs: Mapping[str, str | None], kind: int = TOPIC, name: str = "$a"
) -> alter_configs.AlterConfigsResource:
    entries = [alter_configs.AlterableConfig(name=key, value=value) for key, value in configs.items()]
    return alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name, configs=entries)


def changed(*changes: Change, kind: int = TOPIC, name: str = "$a") -> incremental_alter_configs.AlterConfigsResource:
    entries = [
        incremental_alter_configs.AlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    return incremental_alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name, configs=entries)


def replace(*resources: Any, validate_only: bool = False) -> Call:
    return Call(AlterConfigsRequest(resources=list(resources), validate_only=validate_only))


def change(*resources: Any, validate_only: bool = False) -> Call:
    return Call(IncrementalAlterConfigsRequest(resources=list(resources), validate_only=validate_only))


def described(
    keys: Sequence[str] = ("retention.ms", "cleanup.policy", "segment.bytes"),
    kind: int = TOPIC,
    name: str = "$a",
    **expected: str | None,
) -> Call:
    """Describe the configs, repeating until the expected values appear."""
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=list(keys))
    expected_values = {key.replace("_", "."): value for key, value in expected.items()}

    def is_applied(response: Any) -> bool:
        found = {entry.name: entry.value for entry in response.results[0].configs}
        return all(found.get(key) == value for key, value in expected_values.items())

    return Call(DescribeConfigsRequest(resources=[resource], include_synonyms=True), 4, is_applied)


REPLACING = [
    Case("replace one", (replace(replaced({"segment.bytes": "2000000"})), described(segment_bytes="2000000")), OWN),
    Case("replace with no configs", (replace(replaced({})), described(retention_ms="604800000")), OWN),
    Case(
        "replace, validate only",
        (replace(replaced({"segment.bytes": "2000000"}), validate_only=True), described()),
        OWN,
    ),
    Case("replace, invalid value", (replace(replaced({"segment.bytes": "many"})), described()), OWN),
    Case("replace, value out of range", (replace(replaced({"segment.bytes": "-1"})), described()), OWN),
    Case("replace, unknown config", (replace(replaced({"no.such.config": "1"})), described()), OWN),
    Case("replace, null value", (replace(replaced({"segment.bytes": None})), described()), OWN),
    Case("replace, unknown topic", (replace(replaced({"segment.bytes": "2000000"}, name="$no")),)),
    Case("replace, invalid topic name", (replace(replaced({"segment.bytes": "2000000"}, name="a/b")),)),
    Case("replace, empty topic name", (replace(replaced({"segment.bytes": "2000000"}, name="")),)),
    Case("replace, empty request", (replace(),)),
    Case(
        "replace, two topics, one unknown",
        (replace(replaced({"segment.bytes": "2000000"}), replaced({}, name="$no")), described(segment_bytes="2000000")),
        OWN,
    ),
    Case(
        "replace, unknown resource type",
        (replace(replaced({}, kind=3)), replace(replaced({}, kind=0)), replace(replaced({}, kind=99))),
    ),
    Case("replace, broker logger", (replace(replaced({"a": "INFO"}, kind=BROKER_LOGGER, name="1")),)),
    Case("replace, broker id not a number", (replace(replaced({}, kind=BROKER, name="one")),)),
    Case("replace, unknown broker", (replace(replaced({}, kind=BROKER, name="77")),)),
    Case(
        "replace, broker config, validate only",
        (replace(replaced({"log.cleaner.threads": "2"}, kind=BROKER, name="1"), validate_only=True),),
    ),
    Case(
        "replace, read-only broker config, validate only",
        (replace(replaced({"num.partitions.x": "2", "broker.id": "2"}, kind=BROKER, name="1"), validate_only=True),),
    ),
    Case(
        "replace, group config",
        (
            replace(replaced({"consumer.session.timeout.ms": "50000"}, kind=GROUP, name="$g")),
            described(["consumer.session.timeout.ms"], GROUP, "$g", consumer_session_timeout_ms="50000"),
            replace(replaced({}, kind=GROUP, name="$g")),
        ),
    ),
    Case(
        "replace, client metrics config",
        (
            replace(replaced({"interval.ms": "60000"}, kind=CLIENT_METRICS, name="$m")),
            described(["interval.ms", "metrics"], CLIENT_METRICS, "$m", interval_ms="60000"),
            replace(replaced({}, kind=CLIENT_METRICS, name="$m")),
        ),
    ),
]

CHANGING = [
    Case("set one", (change(changed(("segment.bytes", SET, "2000000"))), described(segment_bytes="2000000")), OWN),
    Case(
        "set two",
        (change(changed(("segment.bytes", SET, "2000000"), ("retention.ms", SET, "-1"))), described(retention_ms="-1")),
        OWN,
    ),
    Case(
        "set, validate only", (change(changed(("segment.bytes", SET, "2000000")), validate_only=True), described()), OWN
    ),
    Case("set to the current value", (change(changed(("retention.ms", SET, "1000000"))), described()), OWN),
    Case("delete one", (change(changed(("retention.ms", DELETE, None))), described(retention_ms="604800000")), OWN),
    Case(
        "delete one, with a value",
        (change(changed(("retention.ms", DELETE, "x"))), described(retention_ms="604800000")),
        OWN,
    ),
    Case("delete one that is not set", (change(changed(("segment.bytes", DELETE, None))), described()), OWN),
    Case("delete an unknown config", (change(changed(("no.such.config", DELETE, None))), described()), OWN),
    Case(
        "append",
        (change(changed(("cleanup.policy", APPEND, "delete"))), described(cleanup_policy="compact,delete")),
        OWN,
    ),
    Case(
        "append a value that is in the list", (change(changed(("cleanup.policy", APPEND, "compact"))), described()), OWN
    ),
    Case(
        "subtract",
        (
            change(changed(("cleanup.policy", APPEND, "delete"))),
            described(cleanup_policy="compact,delete"),
            change(changed(("cleanup.policy", SUBTRACT, "compact"))),
            described(cleanup_policy="delete"),
        ),
        OWN,
    ),
    Case(
        "subtract a value that is not in the list",
        (change(changed(("cleanup.policy", SUBTRACT, "delete"))), described()),
        OWN,
    ),
    Case("subtract all", (change(changed(("cleanup.policy", SUBTRACT, "compact"))),), OWN),
    Case("append to a config that is not a list", (change(changed(("retention.ms", APPEND, "1"))), described()), OWN),
    Case("append null", (change(changed(("cleanup.policy", APPEND, None))), described()), OWN),
    Case("set null", (change(changed(("segment.bytes", SET, None))), described()), OWN),
    Case("set an empty value", (change(changed(("segment.bytes", SET, ""))), described()), OWN),
    Case("set an invalid value", (change(changed(("segment.bytes", SET, "many"))), described()), OWN),
    Case("set an unknown config", (change(changed(("no.such.config", SET, "1"))), described()), OWN),
    Case(
        "set a valid and an invalid config",
        (change(changed(("segment.bytes", SET, "2000000"), ("retention.ms", SET, "x"))), described()),
        OWN,
    ),
    Case(
        "set the same config twice",
        (change(changed(("segment.bytes", SET, "2000000"), ("segment.bytes", SET, "3000000"))), described()),
        OWN,
    ),
    Case(
        "unknown operation",
        (change(changed(("segment.bytes", 4, "2000000"))), change(changed(("segment.bytes", -1, "2"))), described()),
        OWN,
    ),
    Case("change, empty request", (change(),)),
    Case("change, topic without changes", (change(changed()), described()), OWN),
    Case("change, unknown topic", (change(changed(("segment.bytes", SET, "2000000"), name="$no")),)),
    Case("change, invalid topic name", (change(changed(("segment.bytes", SET, "2000000"), name="a/b")),)),
    Case("change, empty topic name", (change(changed(("segment.bytes", SET, "2000000"), name="")),)),
    Case(
        "change, same topic twice",
        (change(changed(("segment.bytes", SET, "2000000")), changed(("retention.ms", SET, "1"))), described()),
        OWN,
    ),
    Case(
        "change, two topics, one unknown",
        (
            change(changed(("segment.bytes", SET, "2000000")), changed(("retention.ms", SET, "1"), name="$no")),
            described(segment_bytes="2000000"),
        ),
        OWN,
    ),
    Case("change, unknown resource type", (change(changed(kind=3)), change(changed(kind=0)), change(changed(kind=99)))),
    Case(
        "change, broker config",
        (
            change(changed(("log.message.timestamp.before.max.ms", SET, "777777777777"), kind=BROKER, name="1")),
            described(
                ["log.message.timestamp.before.max.ms"], BROKER, "1", log_message_timestamp_before_max_ms="777777777777"
            ),
            change(changed(("log.message.timestamp.before.max.ms", DELETE, None), kind=BROKER, name="1")),
        ),
    ),
    Case(
        "change, cluster-wide broker config",
        (
            change(changed(("log.message.timestamp.before.max.ms", SET, "777777777777"), kind=BROKER, name="")),
            described(
                ["log.message.timestamp.before.max.ms"], BROKER, "", log_message_timestamp_before_max_ms="777777777777"
            ),
            change(changed(("log.message.timestamp.before.max.ms", DELETE, None), kind=BROKER, name="")),
        ),
    ),
    Case("change, unknown broker", (change(changed(("log.cleaner.threads", SET, "2"), kind=BROKER, name="77")),)),
    Case(
        "change, broker id not a number",
        (change(changed(("log.cleaner.threads", SET, "2"), kind=BROKER, name="one")),),
    ),
    Case(
        "change, read-only broker config",
        (
            change(changed(("broker.id", SET, "2"), kind=BROKER, name="1")),
            change(changed(("process.roles", SET, "broker"), kind=BROKER, name="1")),
        ),
    ),
    Case(
        "change, broker config, invalid value",
        (
            change(changed(("log.cleaner.threads", SET, "x"), kind=BROKER, name="1")),
            change(changed(("log.cleaner.threads", SET, "0"), kind=BROKER, name="1")),
            change(changed(("log.cleaner.threads", SET, "9"), kind=BROKER, name="1")),
        ),
    ),
    Case(
        "per-broker config set cluster-wide",
        (change(changed(("listener.name.x.ssl.keystore.type", SET, "JKS"), kind=BROKER, name="")),),
    ),
    Case(
        "append to a broker config, validate only",
        (change(changed(("log.cleanup.policy", APPEND, "compact"), kind=BROKER, name="1"), validate_only=True),),
    ),
    Case(
        "change, logger of an unknown broker", (change(changed(("root", SET, "INFO"), kind=BROKER_LOGGER, name="77")),)
    ),
    Case("change, logger without a broker id", (change(changed(("root", SET, "INFO"), kind=BROKER_LOGGER, name="")),)),
    Case("change, unknown logger", (change(changed(("no.such.logger", SET, "INFO"), kind=BROKER_LOGGER, name="1")),)),
    Case(
        "change, group config",
        (
            change(changed(("consumer.session.timeout.ms", SET, "50000"), kind=GROUP, name="$g")),
            described(["consumer.session.timeout.ms"], GROUP, "$g", consumer_session_timeout_ms="50000"),
            change(changed(("consumer.session.timeout.ms", DELETE, None), kind=GROUP, name="$g")),
        ),
    ),
    Case(
        "change, group config, invalid",
        (
            change(changed(("consumer.session.timeout.ms", SET, "1"), kind=GROUP, name="$g")),
            change(changed(("no.such.config", SET, "1"), kind=GROUP, name="$g")),
            change(changed(("consumer.session.timeout.ms", SET, "50000"), kind=GROUP, name="")),
        ),
    ),
    Case(
        "change, client metrics config, invalid",
        (
            change(changed(("interval.ms", SET, "1"), kind=CLIENT_METRICS, name="$m")),
            change(changed(("no.such.config", SET, "1"), kind=CLIENT_METRICS, name="$m")),
            change(changed(("match", SET, "no=1"), kind=CLIENT_METRICS, name="$m")),
            change(changed(("interval.ms", SET, "60000"), kind=CLIENT_METRICS, name="")),
        ),
    ),
]

CASES = REPLACING + CHANGING
