"""Validation of topic names, which become directories and parts of metric names."""

from ottla.base.errors import ApiError, ErrorCode

NAME_CHARACTERS_MAX = 249
OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
INTERNAL_TOPICS = frozenset((OFFSETS_TOPIC, TRANSACTIONS_TOPIC, "__share_group_state"))
_LEGAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def topic_name_error(name: str) -> str | None:
    """Return an error message for an invalid name, None for a valid one."""
    if not name:
        reason = "it is empty"
    elif name in (".", ".."):
        reason = "'.' and '..' are reserved"
    elif len(name) > NAME_CHARACTERS_MAX:
        reason = f"it has {len(name)} characters; the limit is {NAME_CHARACTERS_MAX}"
    elif not _LEGAL.issuperset(name):
        reason = "only ASCII letters, digits, '.', '_' and '-' are allowed"
    else:
        return None
    return f"invalid topic name {name!r}: {reason}"


def check_topic_name(name: str) -> None:
    """Raise ApiError if the name is invalid."""
    error = topic_name_error(name)
    if error is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, error)


def collision_key(name: str) -> str | None:
    """Return the key that names share if they differ only in '.' and '_'; None if the name has neither."""
    return name.replace(".", "_") if "." in name or "_" in name else None
