"""What a config is: its name, type, default, what is allowed, and who may change it while a node runs."""

from enum import IntEnum
from typing import NamedTuple

ConfigValue = bool | int | float | str | tuple[str, ...] | None


class ConfigType(IntEnum):
    """The numbers are those that DescribeConfigs answers."""

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
    """Where a value comes from; the numbers are those that DescribeConfigs and CreateTopics answer."""

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
    """One config. `allowed` is kept in the tables' notation and read by `values.parse`; a tuple, since there are hundreds at start."""

    name: str
    type: ConfigType
    importance: str
    update: str
    """`static` (the file alone), `broker` or `cluster` (dynamic, for one broker or for all), `topic`, `group`, `client`."""
    allowed: str
    default: str | None
    required: bool
    internal: bool
    """Understood, but shown by DescribeConfigs only where it is set."""

    @property
    def sensitive(self) -> bool:
        return self.type is ConfigType.PASSWORD

    @property
    def dynamic(self) -> bool:
        return self.update != "static"


class InvalidConfig(ValueError):
    """A config that cannot be taken: its name, the value as it was given, and what would be allowed."""

    def __init__(self, name: str, value: str | None, why: str) -> None:
        super().__init__(name, value, why)
        self.name = name
        self.value = value
        self.why = why

    def __str__(self) -> str:
        return f"{self.name}: {self.why}" if self.value is None else f"{self.name} = {self.value!r}: {self.why}"


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
    """Definitions by name, from tables of one config a line:

    `name type importance update allowed default [internal]`, where
    - `allowed` is `*` (anything), `0..`, `1..9` (a range), `a|b` (one of), `~a|b` (one of, in any case), `+` (not empty), `[]` (a list),
      `[+]` (a list that is not empty), `[a|b]` and `[+a|b]` (a list of these), or the name of a special rule;
    - `default` is `-` where the config must be given, `null` where it has no value unless given, `""` where it is empty.
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
