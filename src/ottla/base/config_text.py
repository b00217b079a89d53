"""Config values as programs write them, and as the protocol sends them: as text."""

ConfigScalar = str | int | float | bool


def config_text(name: str, value: ConfigScalar) -> str:
    """Return a config value as text: `True` as "true", 3 as "3". Raises TypeError for other types."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    raise TypeError(f"{name}: a config value must be a string, a number or a boolean, got {value!r}")


def optional_config_text(name: str, value: ConfigScalar | None) -> str | None:
    """Like `config_text`; None stays None."""
    return None if value is None else config_text(name, value)
