"""Effective values: a topic's own, otherwise the brokers', otherwise the default."""

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
    """Config values of one broker: from its file, cluster-wide dynamic, and its own dynamic ones."""

    static: Mapping[str, str]
    cluster: Mapping[str, str] = field(default_factory=dict)
    own: Mapping[str, str] = field(default_factory=dict)

    def merged(self) -> dict[str, str]:
        return merged_broker_config(self.static, self.cluster, self.own)


def effective_topic_config(overrides: Mapping[str, str], broker: Mapping[str, str]) -> TypedConfig:
    """Return a topic's typed configs by name. `broker` has the merged layers of a broker."""
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
    """Raise InvalidConfig unless a topic may have these values together."""
    given: dict[str, str] = {}
    for name, value in overrides.items():
        validate_topic_config(name, value)
        assert value is not None
        given[name] = value
    if given.keys() & {"min.compaction.lag.ms", "max.compaction.lag.ms", "remote.storage.enable"}:
        _check_combination(given, broker)


def broker_value(name: str, broker: Mapping[str, str]) -> ConfigValue:
    """Return a broker config's typed value, or its default."""
    definition = BROKER_CONFIGS[name]
    text = broker.get(name)
    return default_value(definition) if text is None else parse(definition, text)


def merged_broker_config(
    static: Mapping[str, str], cluster: Mapping[str, str], own: Mapping[str, str]
) -> dict[str, str]:
    """Merge a broker's layers: its own dynamic configs override cluster-wide ones, which override its file.

    As in Kafka, a dynamic config also replaces its synonyms: `log.retention.ms` overrides the file's
    `log.retention.hours`.
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
            # Brokers accept any negative value for unlimited, topics only -1.
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
