"""The producer's configs and the checks between them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ottla.client.config import (
    COMMON_OPTIONS,
    INT_MAX,
    LONG_MAX,
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
from ottla.client.partitioner import Partitioner, partitioner_named

IDEMPOTENT_IN_FLIGHT_MAX = 5
"""Number of batches per producer and partition that a broker can deduplicate."""
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_SNAPPY = CODECS.index("snappy")


def _read_acks(name: str, value: Any) -> int:
    numbers = {"all": -1, "-1": -1, "0": 0, "1": 1}
    if str(value) not in numbers:
        raise ConfigError(f"{name} must be 'all', 1 or 0, not {value!r}.")
    return numbers[str(value)]


PRODUCER_OPTIONS: tuple[Option, ...] = (
    *COMMON_OPTIONS,
    Option("acks", _read_acks, -1),
    Option("batch.size", read_int, 16_384, 0, INT_MAX),
    Option("buffer.memory", read_int, 33_554_432, 0),
    Option("compression.type", read_text, "none", choices=CODECS),
    Option("compression.gzip.level", read_int, -1, -1, 9),
    Option("compression.lz4.level", read_int, 9, 1, 17),
    Option("compression.zstd.level", read_int, 3, -131_072, 22),
    Option("delivery.timeout.ms", read_duration, 120_000, 0),
    Option("enable.idempotence", read_bool, True),
    Option("interceptor.classes", read_any, ()),
    Option("key.serializer", read_any, None),
    Option("linger.ms", read_duration, 5, 0),
    Option("max.block.ms", read_duration, 60_000, 0),
    Option("max.in.flight.requests.per.connection", read_int, 5, 1, INT_MAX),
    Option("max.request.size", read_int, 1_048_576, 0, INT_MAX),
    Option("metadata.max.idle.ms", read_duration, 300_000, 5_000),
    Option("partitioner.adaptive.partitioning.enable", read_bool, True),
    Option("partitioner.availability.timeout.ms", read_duration, 0, 0),
    Option("partitioner.class", read_any, None),
    Option("partitioner.ignore.keys", read_bool, False),
    Option("retries", read_int, INT_MAX, 0, INT_MAX),
    Option("transaction.timeout.ms", read_duration, 60_000),
    Option("transaction.two.phase.commit.enable", read_bool, False),
    Option("transactional.id", read_text, None),
    Option("value.serializer", read_any, None),
)


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """The producer's configs, parsed."""

    config: Config
    acks: int
    is_idempotent: bool
    in_flight_max: int
    retries_max: int
    linger_ms: float
    batch_size: int
    request_size_max: int
    buffer_memory: int
    delivery_timeout_ms: float
    request_timeout_ms: float
    block_ms_max: float
    codec: int
    compression_level: int | None
    partitioner: Partitioner | None
    ignores_keys: bool
    key_serializer: Callable[[Any], Any] | None
    value_serializer: Callable[[Any], Any] | None
    interceptors: tuple[Any, ...]


def producer_settings(mapping: Mapping[str, Any] | None, keywords: Mapping[str, Any]) -> ProducerSettings:
    """Parse and check the configs. Raises ConfigError."""
    config = parse(mapping, keywords, PRODUCER_OPTIONS, kind="The producer")
    if config["transactional.id"] is not None:
        raise ConfigError(
            "transactional.id: this client does not support transactions yet; the producer is idempotent without it."
        )
    codec = CODECS.index(config["compression.type"])
    name = CODECS[codec]
    level = config[f"compression.{name}.level"] if codec and codec != _SNAPPY else None
    for each in ("key.serializer", "value.serializer"):
        if config[each] is not None and not callable(config[each]):
            raise ConfigError(f"{each} must be a function from a value to bytes, not {config[each]!r}.")
    interceptors = config["interceptor.classes"]
    return ProducerSettings(
        config=config,
        acks=config["acks"],
        is_idempotent=_is_idempotent(config),
        in_flight_max=config["max.in.flight.requests.per.connection"],
        retries_max=config["retries"],
        linger_ms=config["linger.ms"],
        batch_size=max(1, config["batch.size"]),
        request_size_max=config["max.request.size"],
        buffer_memory=config["buffer.memory"],
        delivery_timeout_ms=_delivery_timeout(config),
        request_timeout_ms=config["request.timeout.ms"],
        block_ms_max=config["max.block.ms"],
        codec=codec,
        compression_level=level,
        partitioner=partitioner_named(config["partitioner.class"]),
        ignores_keys=config["partitioner.ignore.keys"],
        key_serializer=config["key.serializer"],
        value_serializer=config["value.serializer"],
        interceptors=tuple(interceptors) if isinstance(interceptors, list | tuple) else (interceptors,),
    )


def _is_idempotent(config: Config) -> bool:
    """Return whether the producer is idempotent: by default, unless it is disabled or a given config conflicts."""
    if not config["enable.idempotence"]:
        return False
    against = []
    if config["acks"] != -1:
        against.append("acks must be 'all'")
    if config["retries"] == 0:
        against.append("retries must be above 0")
    if config["max.in.flight.requests.per.connection"] > IDEMPOTENT_IN_FLIGHT_MAX:
        against.append(f"max.in.flight.requests.per.connection must be at most {IDEMPOTENT_IN_FLIGHT_MAX}")
    if against and config.is_given("enable.idempotence"):
        raise ConfigError(f"enable.idempotence is true, so {' and '.join(against)}.")
    return not against


def _delivery_timeout(config: Config) -> float:
    """Return delivery.timeout.ms, which must be at least linger.ms plus request.timeout.ms."""
    least: float = min(config["linger.ms"] + config["request.timeout.ms"], LONG_MAX)
    timeout: float = config["delivery.timeout.ms"]
    if timeout >= least:
        return timeout
    if config.is_given("delivery.timeout.ms"):
        raise ConfigError(
            f"delivery.timeout.ms must be at least linger.ms + request.timeout.ms, {least:g}, not {timeout:g}."
        )
    return least
