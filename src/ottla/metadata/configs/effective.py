"""Which value counts: a topic's own, else what the brokers are given, else the default."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ottla.metadata.configs.catalog import (
    BROKER_CONFIGS,
    TOPIC_CONFIGS,
    TOPIC_SYNONYMS,
    broker_synonyms,
    validate_topic_config,
)
from ottla.metadata.configs.definition import ConfigValue, InvalidConfig
from ottla.metadata.configs.values import default_value, parse

TypedConfig = dict[str, ConfigValue]


@dataclass(frozen=True, slots=True)
class BrokerLayers:
    """The texts that one broker was given: in its file, for all brokers, and for itself alone."""

    static: Mapping[str, str]
    cluster: Mapping[str, str] = field(default_factory=dict)
    own: Mapping[str, str] = field(default_factory=dict)

    def merged(self) -> dict[str, str]:
        return merged_broker_config(self.static, self.cluster, self.own)


def effective_topic_config(overrides: Mapping[str, str], broker: Mapping[str, str]) -> TypedConfig:
    """A topic's typed configs by name. `broker` holds a broker's set configs, the dynamic ones over those of its file."""
    effective: TypedConfig = {}
    for name, definition in TOPIC_CONFIGS.items():
        text = overrides.get(name)
        if text is not None:
            effective[name] = parse(definition, text)
            continue
        inherited = _inherited(name, broker) if name in TOPIC_SYNONYMS else None
        effective[name] = default_value(definition) if inherited is None else inherited
    return effective


def validate_topic_configs(overrides: Mapping[str, str | None], broker: Mapping[str, str]) -> None:
    """InvalidConfig unless a topic may have all of these together."""
    given: dict[str, str] = {}
    for name, value in overrides.items():
        validate_topic_config(name, value)
        assert value is not None
        given[name] = value
    if given.keys() & {"min.compaction.lag.ms", "max.compaction.lag.ms", "remote.storage.enable"}:
        _check_combination(given, broker)


def broker_value(name: str, broker: Mapping[str, str]) -> ConfigValue:
    """One broker config's typed value, or its default where it is not set."""
    definition = BROKER_CONFIGS[name]
    text = broker.get(name)
    return default_value(definition) if text is None else parse(definition, text)


def merged_broker_config(
    static: Mapping[str, str], cluster: Mapping[str, str], own: Mapping[str, str]
) -> dict[str, str]:
    """A broker's set configs: its own dynamic ones over the cluster's over those of its file.

    A dynamic config replaces all names it is a synonym of, as in Kafka, so that a file's `log.retention.hours` does not outlive it.
    """
    merged = dict(static)
    for layer in (cluster, own):
        for name, text in layer.items():
            for synonym in broker_synonyms(name):
                merged.pop(synonym, None)
            merged[name] = text
    return merged


def _inherited(name: str, broker: Mapping[str, str]) -> ConfigValue:
    for synonym, unit in TOPIC_SYNONYMS[name]:
        text = broker.get(synonym)
        if text is None:
            continue
        value = parse(BROKER_CONFIGS[synonym], text)
        if isinstance(value, int) and not isinstance(value, bool):
            # A broker takes any negative number for "keep forever", a topic only -1.
            return -1 if name == "retention.ms" and value < 0 else value * unit
        return value
    return None


def _check_combination(given: Mapping[str, str], broker: Mapping[str, str]) -> None:
    effective = effective_topic_config(given, broker)
    shortest, longest = effective["min.compaction.lag.ms"], effective["max.compaction.lag.ms"]
    assert isinstance(shortest, int)
    assert isinstance(longest, int)
    if shortest > longest:
        raise InvalidConfig(
            "min.compaction.lag.ms", str(shortest), f"must be at most max.compaction.lag.ms, which is {longest}"
        )
    if effective["remote.storage.enable"] and not broker_value("remote.log.storage.system.enable", broker):
        text = given["remote.storage.enable"]
        raise InvalidConfig("remote.storage.enable", text, "needs brokers with remote.log.storage.system.enable")
