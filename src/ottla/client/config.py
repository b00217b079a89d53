"""Configs with Kafka's names and defaults: `linger.ms` in a mapping, `linger_ms` as a keyword.

Unknown names are rejected with the closest known name. Kafka configs without an effect here are accepted and ignored,
except for TLS and SASL configs, which are rejected.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ottla.client.errors import ConfigError

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1


class Option(NamedTuple):
    """A config: parser, default and allowed values."""

    name: str
    read: Callable[[str, Any], Any]
    default: Any
    least: float = -LONG_MAX
    most: float = LONG_MAX
    choices: tuple[str, ...] = ()


def read_int(name: str, value: Any) -> int:
    """Parse an integer, also from text."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ConfigError(f"{name} must be a whole number, not {value!r}.")
    try:
        return int(value)
    except ValueError:
        raise ConfigError(f"{name} must be a whole number, not {value!r}.") from None


def read_duration(name: str, value: Any) -> float:
    """Parse milliseconds, which may have a fraction."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ConfigError(f"{name} must be a number of milliseconds, not {value!r}.")
    try:
        return float(value)
    except ValueError:
        raise ConfigError(f"{name} must be a number of milliseconds, not {value!r}.") from None


def read_bool(name: str, value: Any) -> bool:
    text = str(value).strip().lower()
    if text not in ("true", "false"):
        raise ConfigError(f"{name} must be true or false, not {value!r}.")
    return text == "true"


def read_text(name: str, value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ConfigError(f"{name} must be text, not {value!r}.")
    return value


def read_list(name: str, value: Any) -> tuple[str, ...]:
    """Parse comma-separated text or a sequence of texts."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if isinstance(value, Sequence) and all(isinstance(part, str) for part in value):
        return tuple(value)
    raise ConfigError(f"{name} must be a list of texts, not {value!r}.")


def read_any(name: str, value: Any) -> Any:
    """Accept any object; it is checked where it is used."""
    return value


COMMON_OPTIONS: tuple[Option, ...] = (
    Option("bootstrap.servers", read_list, ()),
    Option("client.id", read_text, "ottla"),
    Option(
        "client.dns.lookup",
        read_text,
        "use_all_dns_ips",
        choices=("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
    ),
    Option("request.timeout.ms", read_duration, 30_000, 0),
    Option("connections.max.idle.ms", read_duration, 540_000),
    Option("metadata.max.age.ms", read_duration, 300_000, 0),
    Option("metadata.recovery.strategy", read_text, "rebootstrap", choices=("none", "rebootstrap")),
    Option("reconnect.backoff.ms", read_duration, 50, 0),
    Option("reconnect.backoff.max.ms", read_duration, 1_000, 0),
    Option("retry.backoff.ms", read_duration, 100, 0),
    Option("retry.backoff.max.ms", read_duration, 1_000, 0),
    Option("socket.connection.setup.timeout.ms", read_duration, 10_000, 0),
    Option("socket.connection.setup.timeout.max.ms", read_duration, 30_000, 0),
    Option("security.protocol", read_text, "PLAINTEXT", choices=("PLAINTEXT",)),
)
"""Configs of every client."""

IGNORED_CONFIGS: tuple[str, ...] = (
    "auto.include.jmx.reporter", "enable.metrics.push", "metric.reporters", "metrics.num.samples",
    "metrics.recording.level", "metrics.sample.window.ms", "metadata.recovery.rebootstrap.trigger.ms",
    "receive.buffer.bytes", "send.buffer.bytes", "security.providers", "config.providers", )  # fmt: skip
"""Configs of Kafka's clients that are accepted and ignored."""

SECURITY_PREFIXES = ("sasl.", "ssl.")


class Config(Mapping[str, Any]):
    """Values by name, as in `config["linger.ms"]`, with defaults for those not given."""

    __slots__ = ("_given", "_values")

    def __init__(self, values: dict[str, Any], given: frozenset[str]) -> None:
        self._values = values
        self._given = given

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def is_given(self, name: str) -> bool:
        """Return whether the user gave a value, even if it equals the default."""
        return name in self._given


def parse(
    mapping: Mapping[str, Any] | None, keywords: Mapping[str, Any], options: Sequence[Option], *, kind: str
) -> Config:
    """Parse dotted names of the mapping and underscored keywords. `kind` names the client in errors."""
    known = {option.name: option for option in options}
    given: dict[str, Any] = {}
    for source, is_keyword in ((mapping or {}, False), (keywords, True)):
        for raw, value in source.items():
            name = raw.replace("_", ".") if is_keyword else raw
            if name in given:
                raise ConfigError(f"{name} was given twice.")
            _check_name(name, raw, known, kind)
            given[name] = value
    values: dict[str, Any] = {}
    for option in options:
        values[option.name] = _read(option, given[option.name]) if option.name in given else option.default
    if not values.get("bootstrap.servers"):
        raise ConfigError(
            f"{kind} needs bootstrap.servers, the addresses of one or more brokers, such as '127.0.0.1:9092'."
        )
    parse_addresses(values["bootstrap.servers"])
    return Config(values, frozenset(given))


def _check_name(name: str, raw: str, known: Mapping[str, Option], kind: str) -> None:
    if name in known or name in IGNORED_CONFIGS:
        return
    if name.startswith(SECURITY_PREFIXES):
        raise ConfigError(f"{name}: this client supports only PLAINTEXT, without TLS or SASL.")
    from difflib import get_close_matches

    nearest = get_close_matches(name, list(known), n=1, cutoff=0.5)
    hint = f" Did you mean {nearest[0].replace('.', '_') if '_' in raw else nearest[0]}?" if nearest else ""
    raise ConfigError(f"{kind} has no config {raw!r}.{hint}")


def _read(option: Option, value: Any) -> Any:
    read = option.read(option.name, value)
    if isinstance(read, int | float) and not isinstance(read, bool) and not option.least <= read <= option.most:
        bounds = (
            f"at least {option.least:g}" if option.most == LONG_MAX else f"from {option.least:g} to {option.most:g}"
        )
        raise ConfigError(f"{option.name} must be {bounds}, not {value!r}.")
    if option.choices and read not in option.choices:
        raise ConfigError(f"{option.name} must be one of {', '.join(option.choices)}, not {value!r}.")
    return read


def parse_addresses(servers: Sequence[str]) -> list[tuple[str, int]]:
    """Parse "host:port" texts; IPv6 addresses are in brackets."""
    found = []
    for text in servers:
        host, colon, port = text.rpartition(":")
        host = host.rpartition("://")[2].strip("[]")
        if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise ConfigError(f"bootstrap.servers: {text!r} is not host:port, for example '127.0.0.1:9092'.")
        found.append((host, int(port)))
    return found
