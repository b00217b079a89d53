"""The catalog matches Kafka 4.3: definitions, and accepted and rejected values."""

import json
import math
import pathlib
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.metadata.configs import (
    BROKER_CONFIGS,
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    TOPIC_CONFIGS,
    ConfigValue,
    Definition,
    InvalidConfig,
    broker_value,
    effective_topic_config,
    merged_broker_config,
    parse,
    validate_broker_config,
    validate_topic_config,
    validate_topic_configs,
    value_text,
)

RECORDED = json.loads((pathlib.Path(__file__).parents[2] / "data" / "config_definitions.json").read_text())
CATALOGUE = {
    "topic": TOPIC_CONFIGS,
    "broker": BROKER_CONFIGS,
    "group": GROUP_CONFIGS,
    "client-metrics": CLIENT_METRICS_CONFIGS,
}
DYNAMIC_ONLY = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)
SPECIAL = {
    "[1,...,9] or -1": "gzip-level",
    "[partitionId]:[brokerId],[partitionId]:[brokerId],...": "throttled-replicas",
    "non-empty list": ("voters", "servers"),
    "non-empty string": "+",
    "non-null string": "*",
    "[latest, earliest, by_duration:PnDTnHnMn.nS]": "offset-reset",
}


def allowed(validator: str | None, definition: Definition) -> bool:
    """Whether our notation matches the text of Kafka's validator."""
    if validator is None:
        return definition.allowed == "*"
    if validator in SPECIAL:
        return definition.allowed in SPECIAL[validator]
    if bounds := re.fullmatch(r"\[(-?[\d.]+?),\.\.\.(?:,(-?[\d.]+))?\]", validator):
        return definition.allowed == f"{bounds[1]}..{bounds[2] or ''}"
    names = re.findall(r"\w+", validator.removeprefix("(case insensitive)"))
    return re.findall(r"\w+", definition.allowed) == names


def test_catalog_matches_kafka() -> None:
    """Names, types, defaults, ranges, importance and dynamic updates match Kafka's definitions."""
    seen: dict[str, list[str]] = {section: [] for section in CATALOGUE}
    for section, name, kind, has_default, default, validator, importance, internal, mode in RECORDED:
        definition = CATALOGUE[section][name]
        seen[section].append(name)
        assert definition.type.name.lower() == kind, name
        assert definition.required is (not has_default), name
        assert allowed(validator, definition), (name, validator, definition.allowed)
        assert definition.importance == importance, name
        if name not in DYNAMIC_ONLY:
            assert (definition.default, definition.internal) == (default, internal), name
        if section == "broker":
            assert (
                definition.update == {"cluster-wide": "cluster", "per-broker": "broker", "read-only": "static"}[mode]
            ), name
    kafkas = {
        section: sorted(name for name in definitions if not name.startswith("ottla."))
        for section, definitions in CATALOGUE.items()
    }
    assert kafkas == {k: sorted(v) for k, v in seen.items()}


def test_defaults_are_valid_and_format_unchanged() -> None:
    for definitions in CATALOGUE.values():
        for definition in definitions.values():
            if definition.default is not None:
                assert value_text(parse(definition, definition.default)) == definition.default


VALID: list[tuple[str, str, ConfigValue]] = [
    ("retention.ms", " 5 ", 5),
    ("retention.ms", "+5", 5),
    ("retention.ms", "٣", 3),
    ("retention.bytes", "-100", -100),
    ("preallocate", "TRUE", True),
    ("preallocate", " true ", True),
    ("min.cleanable.dirty.ratio", ".5", 0.5),
    ("min.cleanable.dirty.ratio", "1f", 1.0),
    ("min.cleanable.dirty.ratio", "0x1p-1", 0.5),
    ("min.cleanable.dirty.ratio", "-0.0", 0.0),
    ("min.cleanable.dirty.ratio", "1e-400", 0.0),
    ("cleanup.policy", "", ()),
    ("cleanup.policy", "compact,compact", ("compact",)),
    ("cleanup.policy", "delete , compact", ("delete", "compact")),
    ("compression.type", " gzip ", "gzip"),
    ("compression.gzip.level", "-1", -1),
    ("leader.replication.throttled.replicas", " * ", ("*",)),
    ("leader.replication.throttled.replicas", "0:1, 1:2", ("0:1", "1:2")),
    ("leader.replication.throttled.replicas", ",", ("",)),
    ("internal.segment.bytes", "-100", -100),
    ("local.retention.ms", "999999999999", 999999999999),
]
INVALID = [
    ("retention.ms", None),
    ("retention.ms", ""),
    ("retention.ms", "-5"),
    ("retention.ms", "1_0"),
    ("retention.ms", "5.0"),
    ("retention.ms", "9223372036854775808"),
    ("retention.ms", "9" * 10_000),
    ("preallocate", None),
    ("preallocate", "yes"),
    ("preallocate", ""),
    ("min.cleanable.dirty.ratio", "1.1"),
    ("min.cleanable.dirty.ratio", "Infinity"),
    ("min.cleanable.dirty.ratio", "inf"),
    ("min.cleanable.dirty.ratio", ""),
    ("cleanup.policy", ",delete"),
    ("cleanup.policy", "Delete"),
    ("cleanup.policy", "none"),
    ("compression.type", "none"),
    ("compression.type", "GZIP"),
    ("compression.type", ""),
    ("compression.gzip.level", "0"),
    ("compression.gzip.level", "10"),
    ("message.timestamp.type", "createtime"),
    ("leader.replication.throttled.replicas", "none"),
    ("leader.replication.throttled.replicas", "0-1"),
    ("leader.replication.throttled.replicas", "*,0:1"),
    ("segment.bytes", "100"),
    ("segment.bytes", "2147483648"),
    ("max.message.bytes", "-1"),
    ("message.timestamp.before.max.ms", "-1"),
    ("message.format.version", "3.0"),
    ("", ""),
]


@pytest.mark.parametrize(("name", "text", "value"), VALID)
def test_valid_topic_config(name: str, text: str, value: ConfigValue) -> None:
    validate_topic_config(name, text)
    assert parse(TOPIC_CONFIGS[name], text) == value


def test_nan_is_accepted() -> None:
    value = parse(TOPIC_CONFIGS["min.cleanable.dirty.ratio"], "NaN")
    assert isinstance(value, float)
    assert math.isnan(value)
    assert value_text(value) == "NaN"


@pytest.mark.parametrize(("name", "text"), INVALID)
def test_invalid_topic_config(name: str, text: str | None) -> None:
    with pytest.raises(InvalidConfig) as raised:
        validate_topic_config(name, text)
    assert raised.value.name == name


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("retention.msec", "1", "retention.msec: unknown topic config; did you mean retention.ms?"),
        ("zzzzzzzzz", "1", "zzzzzzzzz: unknown topic config"),
        ("x" * 5000, "1", "x" * 5000 + ": unknown topic config"),
        ("retention.ms", "x", "retention.ms = 'x': must be a 64-bit integer, at least -1"),
        ("retention.ms", "-2", "retention.ms = '-2': must be at least -1"),
        ("retention.ms", None, "retention.ms: needs a value"),
        ("compression.lz4.level", "0", "compression.lz4.level = '0': must be from 1 to 17"),
        ("compression.gzip.level", "x", "compression.gzip.level = 'x': must be -1 or from 1 to 9"),
        (
            "cleanup.policy",
            "delete,compress",
            "cleanup.policy = 'delete,compress': 'compress' is not one of compact, delete",
        ),
        ("message.timestamp.type", "Now", "message.timestamp.type = 'Now': must be one of CreateTime, LogAppendTime"),
        ("preallocate", "yes", "preallocate = 'yes': must be true or false"),
    ],
)
def test_topic_config_error_message(name: str, text: str | None, message: str) -> None:
    with pytest.raises(InvalidConfig) as raised:
        validate_topic_config(name, text)
    assert str(raised.value) == message


def test_conflicting_topic_configs() -> None:
    validate_topic_configs({"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "5"}, {})
    with pytest.raises(InvalidConfig, match=re.escape("at most max.compaction.lag.ms, which is 5")):
        validate_topic_configs({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"}, {})
    with pytest.raises(InvalidConfig, match=re.escape("at most max.compaction.lag.ms, which is 7")):
        validate_topic_configs({"min.compaction.lag.ms": "10"}, {"log.cleaner.max.compaction.lag.ms": "7"})
    with pytest.raises(InvalidConfig, match=re.escape("needs brokers with remote.log.storage.system.enable")):
        validate_topic_configs({"remote.storage.enable": "true"}, {})


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("controller.quorum.voters", "1@host", "must be a list of id@host:port, such as 1@localhost:9093"),
        ("controller.quorum.bootstrap.servers", "host", "must be a list of host:port, such as localhost:9093"),
        ("listener.name.inside.max.connections", "x", "must be a 32-bit integer, at least 0"),
        ("listener.name.inside.max.connection", "1", "unknown broker config"),
        ("process.roles", "", "must not be empty"),
        (
            "group.consumer.migration.policy",
            "never",
            "must be one of DISABLED, DOWNGRADE, UPGRADE, BIDIRECTIONAL (ignoring case)",
        ),
        ("remote.log.storage.manager.impl.prefix", "", "must not be empty"),
        ("num.partition", "1", "unknown broker config; did you mean num.partitions?"),
    ],
)
def test_invalid_broker_config(name: str, text: str, message: str) -> None:
    with pytest.raises(InvalidConfig, match=re.escape(message)):
        validate_broker_config(name, text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("controller.quorum.voters", "1@localhost:9093,2@[::1]:9093"),
        ("controller.quorum.bootstrap.servers", "localhost:9093"),
        ("listener.name.inside.plain.sasl.jaas.config", "anything"),
        ("group.consumer.migration.policy", "Upgrade"),
        ("ssl.keystore.location", "/a"),
    ],
)
def test_valid_broker_config(name: str, text: str) -> None:
    validate_broker_config(name, text)


def test_error_message_hides_sensitive_value() -> None:
    error = InvalidConfig("ssl.key.password", None, "must not be empty")
    assert str(error) == "ssl.key.password: must not be empty"


@pytest.mark.parametrize("text", ["latest", "EARLIEST", "by_duration:PT1H", "by_duration:P1DT2H"])
def test_valid_share_offset_reset(text: str) -> None:
    assert parse(GROUP_CONFIGS["share.auto.offset.reset"], text) == text


@pytest.mark.parametrize("text", ["none", "", "by_duration:", "by_duration:P", "by_duration:-PT1H"])
def test_invalid_share_offset_reset(text: str) -> None:
    with pytest.raises(InvalidConfig):
        parse(GROUP_CONFIGS["share.auto.offset.reset"], text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.001, "0.001"), (0.00099, "9.9E-4"), (1e-5, "1.0E-5"), (0.5, "0.5"), (1.0, "1.0"), (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12345678.0, "1.2345678E7"), (-12345678.5, "-1.23456785E7"), (1e16, "1.0E16"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (2147483647.0, "2.147483647E9"), (0.0, "0.0"), (-0.0, "-0.0"), (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (True, "true"), (False, "false"), (12, "12"), ((), ""), (("a", "b"), "a,b"), (None, None), ("x", "x"),
    ],
)  # fmt: skip
def test_values_format_like_kafka(value: ConfigValue, text: str | None) -> None:
    assert value_text(value) == text


@given(st.floats(allow_nan=False))
def test_formatted_double_parses_to_same_value(value: float) -> None:
    text = value_text(value)
    assert text is not None
    assert parse(BROKER_CONFIGS["log.cleaner.io.max.bytes.per.second"], text) == value


@given(st.text(max_size=30), st.sampled_from(sorted(TOPIC_CONFIGS)))
def test_any_text_is_accepted_or_rejected(text: str, name: str) -> None:
    try:
        value = parse(TOPIC_CONFIGS[name], text)
    except InvalidConfig:
        return
    again = value_text(value)
    assert again is not None
    assert value_text(parse(TOPIC_CONFIGS[name], again)) == again


EFFECTIVE: list[tuple[dict[str, str], dict[str, str], str, ConfigValue]] = [
    ({}, {}, "retention.ms", 604800000),
    ({}, {"log.retention.hours": "24"}, "retention.ms", 86400000),
    ({}, {"log.retention.hours": "24", "log.retention.minutes": "5"}, "retention.ms", 300000),
    ({}, {"log.retention.hours": "24", "log.retention.minutes": "5", "log.retention.ms": "7"}, "retention.ms", 7),
    ({}, {"log.retention.hours": "-3"}, "retention.ms", -1),
    ({"retention.ms": "9"}, {"log.retention.ms": "7"}, "retention.ms", 9),
    ({}, {"log.roll.hours": "48"}, "segment.ms", 172800000),
    ({}, {"log.flush.scheduler.interval.ms": "5000"}, "flush.ms", 5000),
    ({}, {"log.flush.scheduler.interval.ms": "5000", "log.flush.interval.ms": "6"}, "flush.ms", 6),
    ({}, {"log.preallocate": "true"}, "preallocate", True),
    ({}, {"log.cleanup.policy": "compact, delete"}, "cleanup.policy", ("compact", "delete")),
    ({}, {"message.max.bytes": "5"}, "max.message.bytes", 5),
    ({}, {}, "internal.segment.bytes", None),
]


@pytest.mark.parametrize(("overrides", "broker", "name", "value"), EFFECTIVE)
def test_effective_value(overrides: dict[str, str], broker: dict[str, str], name: str, value: ConfigValue) -> None:
    effective = effective_topic_config(overrides, broker)
    assert effective[name] == value
    assert list(effective) == list(TOPIC_CONFIGS)


def test_dynamic_config_replaces_its_synonyms() -> None:
    static = {"log.retention.hours": "24", "num.partitions": "3"}
    merged = merged_broker_config(static, {"log.retention.ms": "5"}, {"log.cleaner.threads": "2"})
    assert merged == {"num.partitions": "3", "log.retention.ms": "5", "log.cleaner.threads": "2"}
    assert (broker_value("num.partitions", merged), broker_value("log.retention.hours", merged)) == (3, 168)


def test_catalog_imports_no_documentation() -> None:
    """Importing the catalog loads neither documentation nor difflib, which keeps startup fast."""
    program = (
        "import sys, ottla.metadata.configs; print([m for m in sys.modules if 'documentation' in m or m == 'difflib'])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"
