"""Which names a topic may have: they become directories, and parts of metric names."""

from ottla.base.errors import ApiError, ErrorCode

NAME_CHARACTERS_MAX = 249
OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
INTERNAL_TOPICS = frozenset((OFFSETS_TOPIC, TRANSACTIONS_TOPIC, "__share_group_state"))
_LEGAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def topic_name_error(name: str) -> str | None:
    """What is wrong with a name, in words for its user; None for a legal one."""
    if not name:
        why = "it is empty"
    elif name in (".", ".."):
        why = "it would name a directory that is not its own"
    elif len(name) > NAME_CHARACTERS_MAX:
        why = f"it has {len(name)} characters, and {NAME_CHARACTERS_MAX} are allowed"
    elif not _LEGAL.issuperset(name):
        why = "only ASCII letters, digits, '.', '_' and '-' are allowed"
    else:
        return None
    return f"{name!r} cannot be the name of a topic: {why}"


def check_topic_name(name: str) -> None:
    """ApiError unless the name can be a directory of its own."""
    fault = topic_name_error(name)
    if fault is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)


def collision_key(name: str) -> str | None:
    """Names that differ in '.' and '_' alone become the same metric name; None where a name has neither."""
    return name.replace(".", "_") if "." in name or "_" in name else None
