"""Definition of a config: name, type, default, allowed values, and whether it can be changed at runtime."""

from enum import IntEnum
from typing import NamedTuple

ConfigValue = bool | int | float | str | tuple[str, ...] | None


class ConfigType(IntEnum):
    """Config types, with the numbers of DescribeConfigs."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigSource(IntEnum):
    """Where a value comes from, with the numbers of DescribeConfigs and CreateTopics."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_CLUSTER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class Definition(NamedTuple):
    """One config. `allowed` is in the tables' notation, which `values.parse` interprets."""

    name: str
    type: ConfigType
    importance: str
    update: str
    """`static` (config file only), `broker` or `cluster` (dynamic, also cluster-wide), `topic`, `group`, `client`."""
    allowed: str
    default: str | None
    required: bool
    internal: bool
    """Internal configs are shown by DescribeConfigs only if they are set."""

    @property
    def sensitive(self) -> bool:
        return self.type is ConfigType.PASSWORD

    @property
    def dynamic(self) -> bool:
        return self.update != "static"


class InvalidConfig(ValueError):
    """A config value that is not allowed."""

    def __init__(self, name: str, value: str | None, reason: str) -> None:
        super().__init__(name, value, reason)
        self.name = name
        self.value = value
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}" if self.value is None else f"{self.name} = {self.value!r}: {self.reason}"


_TYPES = {
    "bool": ConfigType.BOOLEAN,
    "string": ConfigType.STRING,
    "int": ConfigType.INT,
    "short": ConfigType.SHORT,
    "long": ConfigType.LONG,
    "double": ConfigType.DOUBLE,
    "list": ConfigType.LIST,
    "class": ConfigType.CLASS,
    "password": ConfigType.PASSWORD,
}


def read_table(*tables: str) -> dict[str, Definition]:
    """Parse tables with one config per line: `name type importance update allowed default [internal]`.

    - `allowed` is `*` (anything), `0..` or `1..9` (a range), `a|b` (one of), `~a|b` (one of, ignoring case), `+` (not
      empty), `[]` (a list), `[+]` (a non-empty list), `[a|b]` or `[+a|b]` (a list of these), or the name of a rule.
    - `default` is `-` if the config is required, `null` if it has no value by default, `""` for the empty string.
    """
    definitions = {}
    for table in tables:
        for line in table.splitlines():
            if not line or line[0] == "#":
                continue
            name, type_name, importance, update, allowed, default, *internal = line.split()
            text = None if default in ("-", "null") else "" if default == '""' else default
            definitions[name] = Definition(
                name, _TYPES[type_name], importance, update, allowed, text, default == "-", bool(internal)
            )
    return definitions
