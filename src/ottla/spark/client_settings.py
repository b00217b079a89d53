"""Client configs and the group for progress, from the options of a read."""

from typing import Any

from ottla.client.admin_core import ADMIN_OPTIONS
from ottla.client.consumer_config import consumer_config
from ottla.client.errors import ConfigError
from ottla.spark.options import KAFKA_PREFIX, OptionError, Options

REJECTED = {
    "auto.offset.reset": "use startingOffsets",
    "enable.auto.commit": "Spark stores offsets in the checkpoint; use groupId to commit them to a group",
    "interceptor.classes": "not supported, since records are read as columns",
    "key.deserializer": "keys are read as bytes; decode them in Spark or with keyFormat",
    "value.deserializer": "values are read as bytes; decode them in Spark or with valueFormat",
}
"""Configs that Spark's connector rejects too, and what to use instead."""

DEFAULTS = {
    "fetch.max.bytes": str(8 << 20),
    "max.partition.fetch.bytes": str(8 << 20),
    "allow.auto.create.topics": "false",
}
"""A task reads one partition. Responses of a few megabytes decode fastest, and several fit into any executor."""


def consumer_settings(options: Options) -> dict[str, Any]:
    """Return the `kafka.` options as consumer configs. Raises OptionError if one is invalid."""
    given: dict[str, Any] = dict(options.kafka)
    for name, instead in REJECTED.items():
        if name in given:
            raise OptionError(f"Option {KAFKA_PREFIX}{name} cannot be set: {instead}.")
    level = options["isolationLevel"]
    if level is not None:
        if given.get("isolation.level", level) != level:
            raise OptionError("Options isolationLevel and kafka.isolation.level conflict; set one of them.")
        given["isolation.level"] = level
    given.pop("group.id", None)  # a task reads planned ranges, without joining a group
    if options.is_given("groupIdPrefix"):
        given.setdefault("client.id", options["groupIdPrefix"])
    settings = DEFAULTS | given
    try:
        consumer_config(settings, {})
    except ConfigError as error:
        raise OptionError(f"Invalid client config in the options with prefix {KAFKA_PREFIX!r}: {error}") from None
    return settings


def admin_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the consumer settings that planning needs."""
    known = {option.name for option in ADMIN_OPTIONS}
    return {name: value for name, value in settings.items() if name in known}


def progress_group(options: Options) -> str | None:
    """Return the group that progress is committed to: `groupId`, or `kafka.group.id` as in Spark's connector."""
    ours, theirs = options["groupId"], options.kafka.get("group.id")
    if ours and theirs and ours != theirs:
        raise OptionError("Options groupId and kafka.group.id conflict; set one of them.")
    return ours or theirs or None
