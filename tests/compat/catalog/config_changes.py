"""AlterConfigs and IncrementalAlterConfigs of topics, brokers, groups and client metrics, and what is described
afterwards.
"""

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
        incremental_alter_configs.AlterableConfig(name=key, config_operation=what, value=value)
        for key, what, value in changes
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
    Case("replace by none", (replace(replaced({})), described(retention_ms="604800000")), OWN),
    Case(
        "replace, only checked", (replace(replaced({"segment.bytes": "2000000"}), validate_only=True), described()), OWN
    ),
    Case("replace by a wrong value", (replace(replaced({"segment.bytes": "many"})), described()), OWN),
    Case("replace by a value out of range", (replace(replaced({"segment.bytes": "-1"})), described()), OWN),
    Case("replace an unknown one", (replace(replaced({"no.such.config": "1"})), described()), OWN),
    Case("replace by null", (replace(replaced({"segment.bytes": None})), described()), OWN),
    Case("replace of an unknown topic", (replace(replaced({"segment.bytes": "2000000"}, name="$no")),)),
    Case("replace of an invalid name", (replace(replaced({"segment.bytes": "2000000"}, name="a/b")),)),
    Case("replace of an empty name", (replace(replaced({"segment.bytes": "2000000"}, name="")),)),
    Case("replace of nothing", (replace(),)),
    Case(
        "replace of two topics, one of them unknown",
        (replace(replaced({"segment.bytes": "2000000"}), replaced({}, name="$no")), described(segment_bytes="2000000")),
        OWN,
    ),
    Case(
        "replace of an unknown type",
        (replace(replaced({}, kind=3)), replace(replaced({}, kind=0)), replace(replaced({}, kind=99))),
    ),
    Case("replace of a logger", (replace(replaced({"a": "INFO"}, kind=BROKER_LOGGER, name="1")),)),
    Case("replace of a broker that is no number", (replace(replaced({}, kind=BROKER, name="one")),)),
    Case("replace of an unknown broker", (replace(replaced({}, kind=BROKER, name="77")),)),
    Case(
        "replace of a broker, only checked",
        (replace(replaced({"log.cleaner.threads": "2"}, kind=BROKER, name="1"), validate_only=True),),
    ),
    Case(
        "replace of a broker's fixed config, only checked",
        (replace(replaced({"num.partitions.x": "2", "broker.id": "2"}, kind=BROKER, name="1"), validate_only=True),),
    ),
    Case(
        "replace of a group",
        (
            replace(replaced({"consumer.session.timeout.ms": "50000"}, kind=GROUP, name="$g")),
            described(["consumer.session.timeout.ms"], GROUP, "$g", consumer_session_timeout_ms="50000"),
            replace(replaced({}, kind=GROUP, name="$g")),
        ),
    ),
    Case(
        "replace of client metrics",
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
        "set, only checked", (change(changed(("segment.bytes", SET, "2000000")), validate_only=True), described()), OWN
    ),
    Case("set as it is", (change(changed(("retention.ms", SET, "1000000"))), described()), OWN),
    Case("delete one", (change(changed(("retention.ms", DELETE, None))), described(retention_ms="604800000")), OWN),
    Case(
        "delete one, with a value",
        (change(changed(("retention.ms", DELETE, "x"))), described(retention_ms="604800000")),
        OWN,
    ),
    Case("delete one that is not set", (change(changed(("segment.bytes", DELETE, None))), described()), OWN),
    Case("delete an unknown one", (change(changed(("no.such.config", DELETE, None))), described()), OWN),
    Case(
        "append",
        (change(changed(("cleanup.policy", APPEND, "delete"))), described(cleanup_policy="compact,delete")),
        OWN,
    ),
    Case("append what is there", (change(changed(("cleanup.policy", APPEND, "compact"))), described()), OWN),
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
    Case("subtract what is not there", (change(changed(("cleanup.policy", SUBTRACT, "delete"))), described()), OWN),
    Case("subtract all", (change(changed(("cleanup.policy", SUBTRACT, "compact"))),), OWN),
    Case("append to what is no list", (change(changed(("retention.ms", APPEND, "1"))), described()), OWN),
    Case("append null", (change(changed(("cleanup.policy", APPEND, None))), described()), OWN),
    Case("set null", (change(changed(("segment.bytes", SET, None))), described()), OWN),
    Case("set an empty value", (change(changed(("segment.bytes", SET, ""))), described()), OWN),
    Case("set a wrong value", (change(changed(("segment.bytes", SET, "many"))), described()), OWN),
    Case("set an unknown one", (change(changed(("no.such.config", SET, "1"))), described()), OWN),
    Case(
        "set one right and one wrong",
        (change(changed(("segment.bytes", SET, "2000000"), ("retention.ms", SET, "x"))), described()),
        OWN,
    ),
    Case(
        "set one twice",
        (change(changed(("segment.bytes", SET, "2000000"), ("segment.bytes", SET, "3000000"))), described()),
        OWN,
    ),
    Case(
        "an unknown operation",
        (change(changed(("segment.bytes", 4, "2000000"))), change(changed(("segment.bytes", -1, "2"))), described()),
        OWN,
    ),
    Case("change nothing", (change(),)),
    Case("change nothing of a topic", (change(changed()), described()), OWN),
    Case("change an unknown topic", (change(changed(("segment.bytes", SET, "2000000"), name="$no")),)),
    Case("change an invalid name", (change(changed(("segment.bytes", SET, "2000000"), name="a/b")),)),
    Case("change an empty name", (change(changed(("segment.bytes", SET, "2000000"), name="")),)),
    Case(
        "change a topic twice",
        (change(changed(("segment.bytes", SET, "2000000")), changed(("retention.ms", SET, "1"))), described()),
        OWN,
    ),
    Case(
        "change two topics, one of them unknown",
        (
            change(changed(("segment.bytes", SET, "2000000")), changed(("retention.ms", SET, "1"), name="$no")),
            described(segment_bytes="2000000"),
        ),
        OWN,
    ),
    Case("change an unknown type", (change(changed(kind=3)), change(changed(kind=0)), change(changed(kind=99)))),
    Case(
        "change a broker",
        (
            change(changed(("log.message.timestamp.before.max.ms", SET, "777777777777"), kind=BROKER, name="1")),
            described(
                ["log.message.timestamp.before.max.ms"], BROKER, "1", log_message_timestamp_before_max_ms="777777777777"
            ),
            change(changed(("log.message.timestamp.before.max.ms", DELETE, None), kind=BROKER, name="1")),
        ),
    ),
    Case(
        "change all brokers",
        (
            change(changed(("log.message.timestamp.before.max.ms", SET, "777777777777"), kind=BROKER, name="")),
            described(
                ["log.message.timestamp.before.max.ms"], BROKER, "", log_message_timestamp_before_max_ms="777777777777"
            ),
            change(changed(("log.message.timestamp.before.max.ms", DELETE, None), kind=BROKER, name="")),
        ),
    ),
    Case("change an unknown broker", (change(changed(("log.cleaner.threads", SET, "2"), kind=BROKER, name="77")),)),
    Case(
        "change a broker that is no number",
        (change(changed(("log.cleaner.threads", SET, "2"), kind=BROKER, name="one")),),
    ),
    Case(
        "change a broker's fixed config",
        (
            change(changed(("broker.id", SET, "2"), kind=BROKER, name="1")),
            change(changed(("process.roles", SET, "broker"), kind=BROKER, name="1")),
        ),
    ),
    Case(
        "change a broker to a wrong value",
        (
            change(changed(("log.cleaner.threads", SET, "x"), kind=BROKER, name="1")),
            change(changed(("log.cleaner.threads", SET, "0"), kind=BROKER, name="1")),
            change(changed(("log.cleaner.threads", SET, "9"), kind=BROKER, name="1")),
        ),
    ),
    Case(
        "set one broker's for all",
        (change(changed(("listener.name.x.ssl.keystore.type", SET, "JKS"), kind=BROKER, name="")),),
    ),
    Case(
        "append to a broker's list, only checked",
        (change(changed(("log.cleanup.policy", APPEND, "compact"), kind=BROKER, name="1"), validate_only=True),),
    ),
    Case("change a logger of another broker", (change(changed(("root", SET, "INFO"), kind=BROKER_LOGGER, name="77")),)),
    Case("change a logger of no broker", (change(changed(("root", SET, "INFO"), kind=BROKER_LOGGER, name="")),)),
    Case("change an unknown logger", (change(changed(("no.such.logger", SET, "INFO"), kind=BROKER_LOGGER, name="1")),)),
    Case(
        "change a group",
        (
            change(changed(("consumer.session.timeout.ms", SET, "50000"), kind=GROUP, name="$g")),
            described(["consumer.session.timeout.ms"], GROUP, "$g", consumer_session_timeout_ms="50000"),
            change(changed(("consumer.session.timeout.ms", DELETE, None), kind=GROUP, name="$g")),
        ),
    ),
    Case(
        "change a group wrongly",
        (
            change(changed(("consumer.session.timeout.ms", SET, "1"), kind=GROUP, name="$g")),
            change(changed(("no.such.config", SET, "1"), kind=GROUP, name="$g")),
            change(changed(("consumer.session.timeout.ms", SET, "50000"), kind=GROUP, name="")),
        ),
    ),
    Case(
        "change client metrics wrongly",
        (
            change(changed(("interval.ms", SET, "1"), kind=CLIENT_METRICS, name="$m")),
            change(changed(("no.such.config", SET, "1"), kind=CLIENT_METRICS, name="$m")),
            change(changed(("match", SET, "no=1"), kind=CLIENT_METRICS, name="$m")),
            change(changed(("interval.ms", SET, "60000"), kind=CLIENT_METRICS, name="")),
        ),
    ),
]

CASES = REPLACING + CHANGING
