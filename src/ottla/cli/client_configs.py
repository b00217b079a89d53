"""Client configs from files and profiles, and checks of their names and values."""

import os
from collections.abc import Mapping
from pathlib import Path

from ottla.cli.errors import CliError, nearest

_JAVA_ONLY = ("key.serializer", "value.serializer", "key.deserializer", "value.deserializer", "interceptor.classes")
_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
NAME_LENGTH_MAX = 100
_SUFFIX = ".properties"


def read_configs(path: Path) -> dict[str, str]:
    """Read a properties file. Drops serializers and interceptors, which name Java classes."""
    from ottla.node.properties import PropertiesError, decode_properties, read_properties

    try:
        read = {key: value for key, value, _ in read_properties(decode_properties(path.read_bytes()))}
    except PropertiesError as error:
        raise CliError(f"{path}: {error}") from error
    return known_configs(read, str(path))


def known_configs(configs: Mapping[str, str], source: str) -> dict[str, str]:
    """Return the configs that a client of ours knows. Rejects unknown names, but accepts those of Java's clients."""
    from ottla.client.admin_core import ADMIN_OPTIONS
    from ottla.client.config import IGNORED_CONFIGS, SECURITY_PREFIXES
    from ottla.client.consumer_config import CONSUMER_OPTIONS
    from ottla.client.producer_config import PRODUCER_OPTIONS

    known = {option.name for option in (*ADMIN_OPTIONS, *PRODUCER_OPTIONS, *CONSUMER_OPTIONS)}
    for name in configs:
        if name.startswith(SECURITY_PREFIXES):
            raise CliError(f"{source}: {name}: TLS and SASL are not supported yet; only PLAINTEXT connections are")
        if name not in known and name not in IGNORED_CONFIGS:
            meant = nearest(name, known)
            raise CliError(f"{source}: unknown client config {name!r}", f"Did you mean {meant}?" if meant else "")
    return {name: value for name, value in configs.items() if name in known and name not in _JAVA_ONLY}


def check_values(configs: Mapping[str, str]) -> None:
    """Raise `ConfigError` for a value that a client would reject."""
    from ottla.client.admin_core import ADMIN_OPTIONS
    from ottla.client.config import parse, parse_addresses
    from ottla.client.consumer_config import CONSUMER_OPTIONS
    from ottla.client.producer_config import PRODUCER_OPTIONS

    for options in (ADMIN_OPTIONS, PRODUCER_OPTIONS, CONSUMER_OPTIONS):
        names = {option.name for option in options}
        own = {name: value for name, value in configs.items() if name in names}
        parsed = parse({"bootstrap.servers": "127.0.0.1:9092", **own}, {}, options, kind="A client")
        parse_addresses(parsed["bootstrap.servers"])


def profiles_directory() -> Path:
    """Return the directory of profiles: one properties file for each."""
    given = os.environ.get("XDG_CONFIG_HOME")
    return (Path(given) if given else Path.home() / ".config") / "ottla" / "profiles"


def profile_path(name: str) -> Path:
    if not 0 < len(name) <= NAME_LENGTH_MAX or not set(name) <= _NAME_CHARACTERS or name.startswith("."):
        shown = name if len(name) <= NAME_LENGTH_MAX else f"{name[:NAME_LENGTH_MAX]}..."
        raise CliError(
            f"{shown!r} is not a name of a profile: use at most {NAME_LENGTH_MAX} letters, digits, '.', '_' and '-'"
        )
    return profiles_directory() / f"{name}{_SUFFIX}"


def profile_names() -> list[str]:
    return sorted(path.name.removesuffix(_SUFFIX) for path in profiles_directory().glob(f"*{_SUFFIX}"))


def read_profile(name: str) -> dict[str, str]:
    """Return the configs of a profile. Raises `CliError` for an unknown name."""
    require_profile(name)
    return read_configs(profile_path(name))


def require_profile(name: str) -> None:
    if not profile_path(name).exists():
        meant = nearest(name, profile_names())
        advice = f"Did you mean {meant}?" if meant else "`ottla profile list` shows all profiles."
        raise CliError(f"profile {name!r} does not exist", advice)


def write_profile(name: str, configs: Mapping[str, str]) -> None:
    """Replace the file of a profile as a whole; only its owner may read it."""
    path = profile_path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    text = "".join(f"{key}={_escape(value)}\n" for key, value in sorted(configs.items()))
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _escape(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return f"\\{escaped}" if escaped.startswith((" ", "\f")) else escaped
