"""Which names a topic may have: they become directories, and parts of metric names."""

from ottla.base.errors import ApiError, ErrorCode

TOPIC_NAME_LENGTH_MAX = 249
_ALLOWED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def check_topic_name(name: str) -> None:
    """ApiError unless the name can be a directory of its own."""
    if not name:
        why = "it is empty"
    elif name in (".", ".."):
        why = "it would name a directory that is not its own"
    elif len(name) > TOPIC_NAME_LENGTH_MAX:
        why = f"it has {len(name)} characters, and {TOPIC_NAME_LENGTH_MAX} are allowed"
    elif not _ALLOWED.issuperset(name):
        why = "only ASCII letters, digits, '.', '_' and '-' are allowed"
    else:
        return
    raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name!r} cannot be the name of a topic: {why}")


def collision_key(name: str) -> str | None:
    """Names that differ in '.' and '_' alone become the same metric name; None where a name has neither."""
    return name.replace(".", "_") if "." in name or "_" in name else None
