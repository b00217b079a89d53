"""Constraints between broker configs. A node that violates one does not start, as in Kafka."""

from collections.abc import Mapping

from ottla.metadata.configs.catalog import TOPIC_SYNONYMS
from ottla.metadata.configs.definition import InvalidConfig
from ottla.metadata.configs.effective import broker_value, effective_topic_config

_GROUP_TYPES = ("consumer", "share", "streams")
_GROUP_INTERVALS = ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms")
_SHARE_LIMITS = ("delivery.count.limit", "record.lock.duration.ms", "partition.max.record.locks")
_DEDUPE_BYTES_PER_THREAD_MIN = 1 << 20


def _ordered_pairs() -> list[tuple[str, str]]:
    """Return pairs of configs where the first must be at most the second."""
    pairs = [
        ("replica.fetch.wait.max.ms", "replica.socket.timeout.ms"),
        ("replica.fetch.wait.max.ms", "replica.lag.time.max.ms"),
        ("group.streams.num.standby.replicas", "group.streams.max.standby.replicas"),
    ]
    limited = [(f"group.{group_type}", name) for group_type in _GROUP_TYPES for name in _GROUP_INTERVALS]
    limited += [("group.share", name) for name in _SHARE_LIMITS]
    for prefix, name in limited:
        least, value, most = f"{prefix}.min.{name}", f"{prefix}.{name}", f"{prefix}.max.{name}"
        pairs += [(least, most), (least, value), (value, most)]
    return pairs


def validate_broker_constraints(broker: Mapping[str, str]) -> None:
    """Raise InvalidConfig unless a broker may have these values together. Each value must be valid on its own."""
    if not broker:
        return
    for low, high in _ordered_pairs():
        _check_order(broker, low, high, is_equal_allowed=True)
    for group_type in _GROUP_TYPES:
        _check_order(
            broker,
            f"group.{group_type}.heartbeat.interval.ms",
            f"group.{group_type}.session.timeout.ms",
            is_equal_allowed=False,
        )
    if _number("connections.max.idle.ms", broker) > 0:
        _check_order(
            broker, "connection.failed.authentication.delay.ms", "connections.max.idle.ms", is_equal_allowed=False
        )
    if _number("queued.max.request.bytes", broker) > 0:
        _check_order(broker, "socket.request.max.bytes", "queued.max.request.bytes", is_equal_allowed=True)
    _check_durations(broker)
    _check_cleaner(broker)
    _check_cordoned(broker)


def _check_order(broker: Mapping[str, str], low: str, high: str, *, is_equal_allowed: bool) -> None:
    if low not in broker and high not in broker:
        return
    below, above = _number(low, broker), _number(high, broker)
    if below < above or (below == above and is_equal_allowed):
        return
    # Report the config that was set, not the one that has its default.
    if low in broker:
        raise InvalidConfig(
            low, broker[low], f"must be {'at most' if is_equal_allowed else 'below'} {high}, which is {above}"
        )
    raise InvalidConfig(
        high, broker[high], f"must be {'at least' if is_equal_allowed else 'above'} {low}, which is {below}"
    )


def _check_durations(broker: Mapping[str, str]) -> None:
    """Check durations that have several units, by the value that a topic would inherit."""
    effective = effective_topic_config({}, broker)
    for config, least, is_unlimited_allowed in (
        ("segment.ms", 1, False),
        ("segment.jitter.ms", 0, False),
        ("retention.ms", 1, True),
    ):
        given = next((name for name, _ in TOPIC_SYNONYMS[config] if name in broker), None)
        value = effective[config]
        assert isinstance(value, int)
        if given is not None and value < least and not (is_unlimited_allowed and value == -1):
            unlimited = ", or -1 for no limit" if is_unlimited_allowed else ""
            raise InvalidConfig(given, broker[given], f"must be at least {least}{unlimited}")


def _check_cleaner(broker: Mapping[str, str]) -> None:
    threads, size = _number("log.cleaner.threads", broker), _number("log.cleaner.dedupe.buffer.size", broker)
    if threads < 1:
        raise InvalidConfig("log.cleaner.threads", broker["log.cleaner.threads"], "must be at least 1")
    if size // threads <= _DEDUPE_BYTES_PER_THREAD_MIN:
        name = "log.cleaner.dedupe.buffer.size" if "log.cleaner.dedupe.buffer.size" in broker else "log.cleaner.threads"
        raise InvalidConfig(
            name, broker[name], f"leaves {size // threads} bytes per cleaner thread; more than 1 MB is required"
        )


def _check_cordoned(broker: Mapping[str, str]) -> None:
    cordoned = broker_value("cordoned.log.dirs", broker)
    if not isinstance(cordoned, tuple) or cordoned in ((), ("*",)):
        return
    text = broker["cordoned.log.dirs"]
    if "*" in cordoned:
        raise InvalidConfig("cordoned.log.dirs", text, "* cannot be combined with other directories")
    directories = broker_value("log.dirs", broker) or broker_value("log.dir", broker)
    assert isinstance(directories, tuple)
    unexpected = [path for path in cordoned if path not in directories]
    if unexpected:
        raise InvalidConfig(
            "cordoned.log.dirs", text, f"{unexpected[0]} is not one of the log directories {', '.join(directories)}"
        )


def _number(name: str, broker: Mapping[str, str]) -> int:
    value = broker_value(name, broker)
    assert isinstance(value, int), name
    return value
