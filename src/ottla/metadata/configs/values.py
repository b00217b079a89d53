"""Parsing and formatting of config values, as in Kafka."""

import re

from ottla.metadata.configs.definition import ConfigType, ConfigValue, Definition, InvalidConfig

_JAVA_WHITESPACE = "".join(map(chr, range(33)))
# Patterns are compiled on first use: compiling all of them would take longer than loading the rest of the catalog.
_COMMA = r"[ \t\n\v\f\r]*,[ \t\n\v\f\r]*"
_DECIMAL = r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?)[fFdD]?"
_HEXADECIMAL = r"[+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[fFdD]?"
_NOT_FINITE = ("NaN", "+NaN", "-NaN", "Infinity", "+Infinity", "-Infinity")
_THROTTLED_REPLICA = r"([0-9]+:[0-9]+)?"
_VOTER = r"([0-9]+)@(\[[0-9a-fA-F:.%]+\]|[^:\[\]@]*):([0-9]+)"
_SERVER = r"(\[[0-9a-fA-F:.%]+\]|[^:\[\]@]+):([0-9]+)"
_DURATION = r"[+]?P(?=[0-9T+])([+]?[0-9]+D)?(T(?=[0-9+])([+]?[0-9]+H)?([+]?[0-9]+M)?([+]?[0-9]+(\.[0-9]*)?S)?)?"
_BITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}
_TYPE_DESCRIPTIONS = {
    ConfigType.SHORT: "a 16-bit integer",
    ConfigType.INT: "a 32-bit integer",
    ConfigType.LONG: "a 64-bit integer",
}


def parse(definition: Definition, text: str) -> ConfigValue:
    """Return the typed value of a text. Raises InvalidConfig if it has the wrong type or is not allowed."""
    value = _typed(definition, text)
    error = _check_allowed(definition.allowed, value)
    if error is not None:
        raise InvalidConfig(definition.name, None if definition.sensitive else text, error)
    return value


def default_value(definition: Definition) -> ConfigValue:
    return None if definition.default is None else _typed(definition, definition.default)


def value_text(value: ConfigValue) -> str | None:
    """Format a typed value as Kafka does."""
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return _double_text(value)
        case tuple():
            return ",".join(value)


def split_list(text: str) -> tuple[str, ...]:
    """Split a list, without duplicates, in the order of first occurrence."""
    stripped = text.strip(_JAVA_WHITESPACE)
    return tuple(dict.fromkeys(re.split(_COMMA, stripped))) if stripped else ()


def describe_allowed(definition: Definition) -> str:
    """Describe the allowed values, for error messages and docs/CONFIGS.md."""
    return _describe(definition.allowed, definition.type)


def _typed(definition: Definition, text: str) -> ConfigValue:
    config_type = definition.type
    stripped = text.strip(_JAVA_WHITESPACE)
    match config_type:
        case ConfigType.BOOLEAN:
            lower = stripped.lower()
            if lower in ("true", "false"):
                return lower == "true"
            raise InvalidConfig(definition.name, text, "must be true or false")
        case ConfigType.INT | ConfigType.LONG | ConfigType.SHORT:
            # Numbers that do not fit the type are invalid. The length is checked first to bound the conversion.
            digits = stripped[1:] if stripped[:1] in ("+", "-") else stripped
            if len(digits) < 64 and digits.isdecimal():
                number = int(stripped)
                limit = 1 << (_BITS[config_type] - 1)
                if -limit <= number < limit:
                    return number
            raise InvalidConfig(definition.name, text, f"must be {_describe(definition.allowed, config_type)}")
        case ConfigType.DOUBLE:
            value = _double(stripped)
            if value is None:
                raise InvalidConfig(definition.name, text, f"must be {_describe(definition.allowed, config_type)}")
            return value
        case ConfigType.LIST:
            return split_list(text)
        case _:
            return stripped


def _double(text: str) -> float | None:
    """Parse like Java's `Double.valueOf`: f or d suffix, hexadecimal, case-sensitive NaN and Infinity."""
    if len(text) > 1024:
        return None
    if re.fullmatch(_DECIMAL, text):
        return float(text.rstrip("fFdD"))
    if re.fullmatch(_HEXADECIMAL, text):
        mantissa, exponent = re.split("[pP]", text)
        try:
            return float.fromhex(f"{mantissa}p{exponent.rstrip('fFdD')}")
        except OverflowError:
            return float("-inf" if text.startswith("-") else "inf")
    if text in _NOT_FINITE:
        return float(text)
    return None


def _double_text(value: float) -> str:
    """Format like Java's `Double.toString`: plain from 0.001 to ten million, otherwise with an exponent."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        plain = repr(value)
        return plain if "e" not in plain else f"{value:f}"
    mantissa, _, exponent = f"{value!r}".partition("e")
    if not exponent:
        digits = mantissa.lstrip("-").replace(".", "").lstrip("0").rstrip("0") or "0"
        power = len(mantissa.lstrip("-").partition(".")[0]) - 1
        if abs(value) < 1:
            power = -(len(mantissa.partition(".")[2]) - len(mantissa.partition(".")[2].lstrip("0")) + 1)
        sign = "-" if value < 0 else ""
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}"
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


def _check_allowed(allowed: str, value: ConfigValue) -> str | None:
    """Return the error for a value of the right type that is not allowed."""
    if allowed == "*":
        return None
    if allowed[0] == "[":
        assert isinstance(value, tuple)
        return _check_list(allowed[1:-1], value)
    special = _NAMED_RULES.get(allowed)
    if special is not None:
        rule, description = special
        return None if rule(value) else f"must be {description}"
    if isinstance(value, int | float):
        low, _, high = allowed.partition("..")
        return f"must be {_describe_range(low, high)}" if value < float(low) or (high and value > float(high)) else None
    assert isinstance(value, str)
    if allowed == "+":
        return None if value else "must not be empty"
    if allowed[0] == "~":
        fits = value.upper() in allowed[1:].upper().split("|")
    else:
        fits = value in allowed.split("|")
    return None if fits else f"must be {_describe(allowed, ConfigType.STRING)}"


def _check_list(allowed: str, value: tuple[str, ...]) -> str | None:
    if not value:
        return "must not be empty" if allowed[:1] == "+" else None
    if "" in value:
        return "must not have empty members"
    members = allowed.lstrip("+")
    if not members:
        return None
    known = members.split("|")
    unexpected = [member for member in value if member not in known]
    return f"{unexpected[0]!r} is not one of {', '.join(known)}" if unexpected else None


def _describe(allowed: str, config_type: ConfigType) -> str:
    if allowed in _NAMED_RULES:
        return _NAMED_RULES[allowed][1]
    if config_type is ConfigType.BOOLEAN:
        return "true or false"
    if config_type in (*_BITS, ConfigType.DOUBLE):
        type_name = _TYPE_DESCRIPTIONS.get(config_type, "a number")
        low, _, high = allowed.partition("..")
        return type_name if allowed == "*" else f"{type_name}, {_describe_range(low, high)}"
    if config_type is ConfigType.LIST:
        members = allowed[1:-1].lstrip("+").replace("|", ", ")
        return ("a list" if allowed[:2] != "[+" else "a non-empty list") + (f" of: {members}" if members else "")
    if allowed == "+":
        return "not empty"
    if allowed == "*":
        return "any text"
    return "one of " + allowed.lstrip("~").replace("|", ", ") + (" (ignoring case)" if allowed[0] == "~" else "")


def _describe_range(low: str, high: str) -> str:
    return f"from {low} to {high}" if high else f"at least {low}"


def _is_gzip_level(value: ConfigValue) -> bool:
    return isinstance(value, int) and (1 <= value <= 9 or value == -1)


def _are_throttled_replicas(value: ConfigValue) -> bool:
    return isinstance(value, tuple) and (
        value == ("*",) or all(re.fullmatch(_THROTTLED_REPLICA, member) for member in value)
    )


def _are_voters(value: ConfigValue) -> bool:
    return isinstance(value, tuple) and all(re.fullmatch(_VOTER, member) for member in value)


def _are_servers(value: ConfigValue) -> bool:
    return isinstance(value, tuple) and all(re.fullmatch(_SERVER, member) for member in value)


def _is_offset_reset(value: ConfigValue) -> bool:
    if not isinstance(value, str):
        return False
    lower = value.lower()
    if not lower.startswith("by_duration:"):
        return lower in ("earliest", "latest")
    return re.fullmatch(_DURATION, value[len("by_duration:") :], re.IGNORECASE) is not None


_NAMED_RULES = {
    "gzip-level": (_is_gzip_level, "-1 or from 1 to 9"),
    "throttled-replicas": (_are_throttled_replicas, "* or a list of partition:broker, such as 0:1,1:2"),
    "voters": (_are_voters, "a list of id@host:port, such as 1@localhost:9093"),
    "servers": (_are_servers, "a list of host:port, such as localhost:9093"),
    "offset-reset": (
        _is_offset_reset,
        "earliest, latest or by_duration: with an ISO-8601 duration such as by_duration:PT1H",
    ),
}
