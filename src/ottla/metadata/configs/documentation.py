"""One sentence about each config, loaded on demand."""

from functools import cache

from ottla.metadata.configs.catalog import GROUP_SYNONYMS, TOPIC_SYNONYMS
from ottla.metadata.configs.definition import Definition


def config_documentation(definition: Definition) -> str:
    """Return one sentence about what a config does."""
    return _documentation_table(definition.update)[definition.name]


@cache
def _documentation_table(update: str) -> dict[str, str]:
    """Return sentences by config name, for topics, groups, clients, or brokers (all other values of `update`)."""
    from ottla.metadata.configs import documentation_resources as resources

    match update:
        case "topic":
            return _parse(resources.TOPIC)
        case "group":
            return _parse(resources.GROUP)
        case "client":
            return _parse(resources.CLIENT_METRICS)
    return broker_documentation()


@cache
def broker_documentation() -> dict[str, str]:
    """Return sentences about broker configs. For defaults of topics and groups, use the topic's or group's sentence."""
    from ottla.metadata.configs import (
        definitions_ottla,
        documentation_broker,
        documentation_coordinators,
        documentation_resources,
        documentation_security,
    )

    sentences = {}
    topics = _parse(documentation_resources.TOPIC)
    for name, synonyms in TOPIC_SYNONYMS.items():
        sentences[synonyms[0][0]] = f"Default for topics without {name}: {topics[name]}"
        for synonym, _ in synonyms[1:]:
            sentences[synonym] = f"Like {synonyms[0][0]}, which takes precedence, in another unit."
    for name, text in _parse(documentation_resources.GROUP).items():
        if name in GROUP_SYNONYMS:
            sentences[GROUP_SYNONYMS[name]] = f"Default for groups without {name}: {text}"
    for module in (documentation_broker, documentation_coordinators, documentation_security, definitions_ottla):
        sentences |= _parse(module.TEXTS)
    return sentences


def _parse(texts: str) -> dict[str, str]:
    return dict(line.split(" ", 1) for line in texts.splitlines() if line)
