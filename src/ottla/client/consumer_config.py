"""The consumer's configs: Kafka's names and defaults."""

from collections.abc import Mapping
from typing import Any

from ottla.client.config import (
    COMMON_OPTIONS,
    INT_MAX,
    Config,
    Option,
    parse,
    read_any,
    read_bool,
    read_duration,
    read_int,
    read_text,
)
from ottla.client.errors import ConfigError

EARLIEST, LATEST = -2, -1
"""ListOffsets timestamps that stand for the beginning and the end of a log."""

CONSUMER_OPTIONS: tuple[Option, ...] = (
    *COMMON_OPTIONS,
    Option("allow.auto.create.topics", read_bool, True),
    Option("auto.commit.interval.ms", read_duration, 5_000, 0),
    Option("auto.offset.reset", read_text, "latest"),
    Option("check.crcs", read_bool, True),
    Option("client.rack", read_text, ""),
    Option("default.api.timeout.ms", read_duration, 60_000, 0),
    Option("enable.auto.commit", read_bool, True),
    Option("exclude.internal.topics", read_bool, True),
    Option("fetch.max.bytes", read_int, 50 << 20, 0, INT_MAX),
    Option("fetch.max.wait.ms", read_int, 500, 0, INT_MAX),
    Option("fetch.min.bytes", read_int, 1, 0, INT_MAX),
    Option("group.id", read_text, None),
    Option("group.instance.id", read_text, None),
    Option("group.protocol", read_text, "classic", choices=("classic",)),
    Option("heartbeat.interval.ms", read_duration, 3_000, 1),
    Option("interceptor.classes", read_any, ()),
    Option("isolation.level", read_text, "read_uncommitted", choices=("read_uncommitted", "read_committed")),
    Option("key.deserializer", read_any, None),
    Option("max.partition.fetch.bytes", read_int, 1 << 20, 0, INT_MAX),
    Option("max.poll.interval.ms", read_int, 300_000, 1, INT_MAX),
    Option("max.poll.records", read_int, 500, 1, INT_MAX),
    Option("partition.assignment.strategy", read_any, ("range", "cooperative-sticky")),
    Option("session.timeout.ms", read_int, 45_000, 1, INT_MAX),
    Option("value.deserializer", read_any, None),
)


def consumer_config(mapping: Mapping[str, Any] | None, keywords: Mapping[str, Any]) -> Config:
    """Parse and check the configs. Raises ConfigError."""
    config = parse(mapping, keywords, CONSUMER_OPTIONS, kind="Consumer")
    reset_policy(config["auto.offset.reset"])
    for name in ("key.deserializer", "value.deserializer"):
        if config[name] is not None and not callable(config[name]):
            raise ConfigError(f"{name} must be callable with the bytes of a key or value, not {config[name]!r}.")
    if config["heartbeat.interval.ms"] >= config["session.timeout.ms"]:
        raise ConfigError("heartbeat.interval.ms must be less than session.timeout.ms.")
    if config["group.instance.id"] == "":
        raise ConfigError("group.instance.id must not be empty.")
    return config


class ResetPolicy:
    """Start position without an offset: beginning, end, a duration ago, or none."""

    __slots__ = ("ago_ms", "timestamp")

    def __init__(self, timestamp: int | None = None, ago_ms: int | None = None) -> None:
        self.timestamp = timestamp
        self.ago_ms = ago_ms

    def at(self, now_ms: int) -> int | None:
        """Return the timestamp for ListOffsets, or None if the policy is `none`."""
        return self.timestamp if self.ago_ms is None else now_ms - self.ago_ms


def reset_policy(text: str) -> ResetPolicy:
    """Parse `earliest`, `latest`, `none` or `by_duration:` with an ISO 8601 duration, such as `by_duration:PT1H30M`."""
    match text.lower():
        case "earliest":
            return ResetPolicy(EARLIEST)
        case "latest":
            return ResetPolicy(LATEST)
        case "none":
            return ResetPolicy()
    kind, _, duration = text.partition(":")
    if kind.lower() == "by_duration":
        ago_ms = _duration_ms(duration)
        if ago_ms is not None:
            return ResetPolicy(ago_ms=ago_ms)
    raise ConfigError(f"auto.offset.reset must be earliest, latest, none or by_duration:PnDTnHnMn.nS, not {text!r}.")


def _duration_ms(text: str) -> int | None:
    import re

    number = r"(\d+(?:\.\d+)?)"
    found = re.fullmatch(rf"P(?=.)(?:{number}D)?(?:T(?=.)(?:{number}H)?(?:{number}M)?(?:{number}S)?)?", text.upper())
    if found is None:
        return None
    scale = (86_400_000, 3_600_000, 60_000, 1_000)
    return int(sum(float(part) * unit for part, unit in zip(found.groups(), scale, strict=True) if part))
