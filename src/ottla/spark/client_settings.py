"""What the options of a read mean for the client: its configs, and the group whose progress is told."""

from typing import Any

from ottla.client.admin_core import ADMIN_OPTIONS
from ottla.client.consumer_config import consumer_config
from ottla.client.errors import ConfigError
from ottla.spark.options import KAFKA_PREFIX, OptionError, Options

REJECTED = {
    "auto.offset.reset": "where to begin is said by startingOffsets",
    "enable.auto.commit": "Spark keeps its own offsets; groupId tells a group of them",
    "interceptor.classes": "records reach Spark as columns",
    "key.deserializer": "keys reach Spark as bytes; make something of them there, or with keyFormat",
    "value.deserializer": "values reach Spark as bytes; make something of them there, or with valueFormat",
}
"""Configs that Spark's connector refuses too, and what to use."""

DEFAULTS = {
    "fetch.max.bytes": str(8 << 20),
    "max.partition.fetch.bytes": str(8 << 20),
    "allow.auto.create.topics": "false",
}
"""A task reads one partition: responses of some megabytes are decoded at the best rate, and a few of them fit into any executor."""


def consumer_settings(options: Options) -> dict[str, Any]:
    """The `kafka.` options as configs of a consumer, checked; OptionError names the one that is wrong."""
    given: dict[str, Any] = dict(options.kafka)
    for name, instead in REJECTED.items():
        if name in given:
            raise OptionError(f"Option {KAFKA_PREFIX}{name} cannot be set: {instead}.")
    level = options["isolationLevel"]
    if level is not None:
        if given.get("isolation.level", level) != level:
            raise OptionError(
                "Options isolationLevel and kafka.isolation.level say different things: give one of them."
            )
        given["isolation.level"] = level
    given.pop("group.id", None)  # a task reads what the driver planned: it is no member of a group
    if options.is_given("groupIdPrefix"):
        given.setdefault("client.id", options["groupIdPrefix"])
    settings = DEFAULTS | given
    try:
        consumer_config(settings, {})
    except ConfigError as error:
        raise OptionError(f"The options that begin with {KAFKA_PREFIX!r} are configs of the client: {error}") from None
    return settings


def admin_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Those of a consumer's settings that planning needs."""
    known = {option.name for option in ADMIN_OPTIONS}
    return {name: value for name, value in settings.items() if name in known}


def progress_group(options: Options) -> str | None:
    """The group that hears of the progress: `groupId`, or the name that Spark's connector has for it."""
    ours, theirs = options["groupId"], options.kafka.get("group.id")
    if ours and theirs and ours != theirs:
        raise OptionError("Options groupId and kafka.group.id name different groups: give one of them.")
    return ours or theirs or None
