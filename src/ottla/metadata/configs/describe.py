"""Config entries for DescribeConfigs and CreateTopics: values in Kafka's format, sources and synonyms."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from ottla.metadata.configs.catalog import (
    BROKER_CONFIGS,
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    GROUP_SYNONYMS,
    TOPIC_CONFIGS,
    TOPIC_SYNONYMS,
    broker_definition,
    broker_synonyms,
)
from ottla.metadata.configs.definition import ConfigSource, ConfigType, Definition
from ottla.metadata.configs.effective import BrokerLayers, effective_topic_config
from ottla.metadata.configs.values import default_value, parse, value_text


class Synonym(NamedTuple):
    """One possible source of a value. In a list, the first is effective."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource
    is_sensitive: bool
    read_only: bool
    synonyms: tuple[Synonym, ...]
    type: ConfigType
    documentation: str | None

    @property
    def is_default(self) -> bool:
        return self.source is ConfigSource.DEFAULT


def describe_topic(
    overrides: Mapping[str, str],
    broker: BrokerLayers,
    names: Collection[str] | None = None,
    *,
    documentation: bool = False,
) -> list[ConfigEntry]:
    """Return all configs of a topic, or those in `names`. Unknown names are omitted."""
    effective = effective_topic_config(overrides, broker.merged())
    entries = []
    for name in _select(
        names, (name for name, known in TOPIC_CONFIGS.items() if not known.internal or name in overrides)
    ):
        definition = TOPIC_CONFIGS[name]
        value = value_text(effective[name])
        synonyms: tuple[Synonym, ...] = ()
        if name in TOPIC_SYNONYMS:
            # As in Kafka, only the first synonym is looked up: a value set in hours is shown with source DEFAULT.
            first = TOPIC_SYNONYMS[name][0][0]
            synonyms = _synonym_values(first, broker, sensitive=False)
        if name in overrides:
            synonyms = (Synonym(name, value, ConfigSource.TOPIC), *synonyms)
        entries.append(_entry(definition, value, synonyms, documentation=documentation))
    return entries


def describe_broker(
    broker: BrokerLayers, names: Collection[str] | None = None, *, documentation: bool = False
) -> list[ConfigEntry]:
    """Return all configs of one broker. Unknown configs are included without their values."""
    merged = broker.merged()
    listed = [name for name, known in BROKER_CONFIGS.items() if not known.internal or name in merged]
    entries = []
    for name in _select(names, [*listed, *(name for name in merged if name not in BROKER_CONFIGS)]):
        definition = broker_definition(name)
        sensitive = definition is None or definition.sensitive
        value = None
        if definition is not None and not sensitive:
            text = merged.get(name)
            # As in Kafka, listener configs are returned as given; only configs known by their full name are parsed.
            typed = default_value(definition) if text is None else parse(definition, text)
            value = value_text(typed) if name in BROKER_CONFIGS else text
        entries.append(
            _broker_entry(name, definition, value, _synonym_values(name, broker, sensitive=sensitive), documentation)
        )
    return entries


def describe_cluster(
    broker: BrokerLayers, names: Collection[str] | None = None, *, documentation: bool = False
) -> list[ConfigEntry]:
    """Return the cluster-wide dynamic broker configs."""
    entries = []
    for name in _select(names, broker.cluster):
        definition = broker_definition(name)
        sensitive = definition is None or definition.sensitive
        value = None if sensitive else broker.cluster[name]
        synonyms = _synonym_values(name, BrokerLayers({}, broker.cluster), sensitive=sensitive, defaults=False)
        entries.append(_broker_entry(name, definition, value, synonyms, documentation))
    return entries


def describe_group(
    overrides: Mapping[str, str],
    broker: BrokerLayers,
    names: Collection[str] | None = None,
    *,
    documentation: bool = False,
) -> list[ConfigEntry]:
    """Return all configs of a group, which need not exist."""
    merged = broker.merged()
    entries = []
    for name in _select(names, GROUP_CONFIGS):
        definition = GROUP_CONFIGS[name]
        synonym = GROUP_SYNONYMS.get(name)
        if synonym is None:
            synonyms: tuple[Synonym, ...] = (Synonym(name, definition.default, ConfigSource.DEFAULT),)
        else:
            synonyms = _synonym_values(synonym, broker, sensitive=False)
        text = overrides.get(
            name, definition.default if synonym is None else merged.get(synonym, BROKER_CONFIGS[synonym].default)
        )
        value = None if text is None else value_text(parse(definition, text))
        if name in overrides:
            synonyms = (Synonym(name, value, ConfigSource.GROUP), *synonyms)
        entries.append(_entry(definition, value, synonyms, documentation=documentation))
    return entries


def describe_client_metrics(
    overrides: Mapping[str, str], names: Collection[str] | None = None, *, documentation: bool = False
) -> list[ConfigEntry]:
    """Return all configs of a client-metrics subscription, which need not exist."""
    entries = []
    for name in _select(names, CLIENT_METRICS_CONFIGS):
        definition = CLIENT_METRICS_CONFIGS[name]
        text = overrides.get(name, definition.default)
        value = None if text is None else value_text(parse(definition, text))
        synonyms = (Synonym(name, value, ConfigSource.CLIENT_METRICS),) if name in overrides else ()
        entries.append(_entry(definition, value, synonyms, documentation=documentation))
    return entries


def created_topic_configs(overrides: Mapping[str, str], broker: BrokerLayers) -> list[ConfigEntry]:
    """Return entries for CreateTopics: values as given, and sources looked up through all synonyms."""
    entries = []
    for name in sorted(name for name, known in TOPIC_CONFIGS.items() if not known.internal or name in overrides):
        definition = TOPIC_CONFIGS[name]
        value, source = _created_value(definition, overrides, broker)
        entries.append(ConfigEntry(name, value, source, definition.sensitive, False, (), definition.type, None))
    return entries


def _created_value(
    definition: Definition, overrides: Mapping[str, str], broker: BrokerLayers
) -> tuple[str | None, ConfigSource]:
    if definition.name in overrides:
        return overrides[definition.name], ConfigSource.TOPIC
    for layer, source in (
        (broker.own, ConfigSource.DYNAMIC_BROKER),
        (broker.cluster, ConfigSource.DYNAMIC_CLUSTER),
        (broker.static, ConfigSource.STATIC_BROKER),
    ):
        for synonym, unit in TOPIC_SYNONYMS.get(definition.name, ()):
            if synonym in layer:
                text = layer[synonym]
                return (text if unit == 1 else str(int(text) * unit)), source
    return definition.default, ConfigSource.DEFAULT


def _select(names: Collection[str] | None, known: Iterable[str]) -> list[str]:
    """Return the requested known names, sorted; all if `names` is empty."""
    if not names:
        return sorted(known)
    requested = frozenset(names)
    return sorted(name for name in known if name in requested)


def _synonym_values(name: str, broker: BrokerLayers, *, sensitive: bool, defaults: bool = True) -> tuple[Synonym, ...]:
    """Return all values of a config's synonyms in order of precedence, from the first with the config's own name on."""
    layers: tuple[tuple[Mapping[str, str], ConfigSource], ...] = (
        (broker.own, ConfigSource.DYNAMIC_BROKER),
        (broker.cluster, ConfigSource.DYNAMIC_CLUSTER),
        (broker.static, ConfigSource.STATIC_BROKER),
    )
    names = broker_synonyms(name)
    found = [
        Synonym(synonym, None if sensitive else layer[synonym], source)
        for layer, source in layers
        for synonym in names
        if synonym in layer
    ]
    if defaults:
        for synonym in names:
            definition = BROKER_CONFIGS.get(synonym)
            if definition is not None and definition.default is not None:
                found.append(Synonym(synonym, None if sensitive else definition.default, ConfigSource.DEFAULT))
    for position, synonym_value in enumerate(found):
        if synonym_value.name == name:
            return tuple(found[position:])
    return ()


def _entry(
    definition: Definition, value: str | None, synonyms: tuple[Synonym, ...], *, documentation: bool
) -> ConfigEntry:
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
    text = _documentation(definition) if documentation else None
    return ConfigEntry(definition.name, value, source, definition.sensitive, False, synonyms, definition.type, text)


def _broker_entry(
    name: str, definition: Definition | None, value: str | None, synonyms: tuple[Synonym, ...], documentation: bool
) -> ConfigEntry:
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
    read_only = name not in BROKER_CONFIGS or not BROKER_CONFIGS[name].dynamic
    text = _documentation(definition) if documentation else None
    config_type = ConfigType.UNKNOWN if definition is None else definition.type
    sensitive = definition is None or definition.sensitive
    return ConfigEntry(name, value, source, sensitive, read_only, synonyms, config_type, text)


def _documentation(definition: Definition | None) -> str | None:
    if definition is None:
        return None
    from ottla.metadata.configs.documentation import (
        config_documentation,  # loaded on demand
    )

    return config_documentation(definition)
