"""Which names a topic may have: they become directory names and metric names."""

NAME_CHARACTERS_MAX = 249
INTERNAL_TOPICS = frozenset(("__consumer_offsets", "__transaction_state", "__share_group_state"))
_LEGAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def topic_name_fault(name: str) -> str | None:
    """What is wrong with a name, in words for its user; None for a legal one."""
    if not name:
        return "a topic needs a name"
    if name in (".", ".."):
        return f"{name!r} cannot name a topic: it is a directory's own name"
    if len(name) > NAME_CHARACTERS_MAX:
        return f"the name has {len(name)} characters, and {NAME_CHARACTERS_MAX} is the most"
    if not _LEGAL.issuperset(name):
        return f"{name!r} has characters that a topic's name cannot have: take ASCII letters, digits, '.', '_' and '-'"
    return None


def collision_key(name: str) -> str:
    """Names that differ in '.' and '_' only become the same metric name."""
    return name.replace(".", "_")
