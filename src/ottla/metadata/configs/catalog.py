"""All configs of Kafka 4.3 by resource type, their synonyms, and suggestions for unknown names."""

from collections.abc import Iterable

from ottla.metadata.configs import (
    definitions_broker,
    definitions_coordinators,
    definitions_ottla,
    definitions_resources,
    definitions_security,
)
from ottla.metadata.configs.definition import Definition, InvalidConfig, read_table
from ottla.metadata.configs.values import parse

TOPIC_CONFIGS = read_table(definitions_resources.TOPIC)
GROUP_CONFIGS = read_table(definitions_resources.GROUP)
CLIENT_METRICS_CONFIGS = read_table(definitions_resources.CLIENT_METRICS)
BROKER_CONFIGS = read_table(
    definitions_broker.NODE,
    definitions_broker.METADATA_LOG,
    definitions_broker.NETWORK,
    definitions_broker.TOPICS,
    definitions_broker.LOG,
    definitions_broker.REPLICATION,
    definitions_coordinators.GROUPS,
    definitions_coordinators.SHARE_GROUPS,
    definitions_coordinators.STREAMS_GROUPS,
    definitions_coordinators.TRANSACTIONS,
    definitions_coordinators.TIERED_STORAGE,
    definitions_coordinators.QUOTAS,
    definitions_coordinators.METRICS,
    definitions_security.TLS,
    definitions_security.SASL,
    definitions_ottla.OTTLA,
)

TOPIC_SYNONYMS = definitions_resources.SYNONYMS
GROUP_SYNONYMS = {name: f"group.{name}" for name in GROUP_CONFIGS if f"group.{name}" in BROKER_CONFIGS}

_UNIT_VARIANTS = (
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
)
_BROKER_SYNONYMS = {name: names for names in _UNIT_VARIANTS for name in names} | {
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")
}
_LISTENER_PREFIX = "listener.name."
_PER_MECHANISM = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)
_SUGGESTION_NAME_LENGTH_MAX = 100


def broker_synonyms(name: str) -> tuple[str, ...]:
    """Return the names that may set this config, in order of precedence.

    Listener configs fall back to the general name.
    """
    if not name.startswith(_LISTENER_PREFIX):
        return _BROKER_SYNONYMS.get(name, (name,))
    base = name[len(_LISTENER_PREFIX) :].partition(".")[2]
    return name, next((config for config in _PER_MECHANISM if base.endswith(config)), base)


def broker_definition(name: str) -> Definition | None:
    """Return the definition of a broker config, including `listener.name.*` configs."""
    for synonym in broker_synonyms(name) if name not in BROKER_CONFIGS else (name,):
        found = BROKER_CONFIGS.get(synonym)
        if found is not None:
            return found
    return None


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the most similar known name."""
    if len(name) > _SUGGESTION_NAME_LENGTH_MAX:
        return None
    import difflib  # rarely needed, so not imported at startup

    found = difflib.get_close_matches(name, list(names), n=1, cutoff=0.6)
    return found[0] if found else None


def unknown_config_error(name: str, resource: str, definitions: dict[str, Definition]) -> InvalidConfig:
    suggestion = nearest(name, (known for known, definition in definitions.items() if not definition.internal))
    return InvalidConfig(
        name, None, f"unknown {resource} config" + (f"; did you mean {suggestion}?" if suggestion else "")
    )


def topic_definition(name: str) -> Definition:
    definition = TOPIC_CONFIGS.get(name)
    if definition is None:
        raise unknown_config_error(name, "topic", TOPIC_CONFIGS)
    return definition


def validate_topic_config(name: str, value: str | None) -> None:
    """Raise InvalidConfig unless a topic may have this value."""
    definition = topic_definition(name)
    if value is None:
        raise InvalidConfig(name, None, "needs a value")
    parse(definition, value)


def validate_broker_config(name: str, value: str) -> None:
    """Raise InvalidConfig unless a broker's config file may have this value."""
    definition = broker_definition(name)
    if definition is None:
        raise unknown_config_error(name, "broker", BROKER_CONFIGS)
    parse(definition, value)
