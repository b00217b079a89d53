"""Errors of commands: what failed, and what to do about it; and checks that topics and groups exist."""

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.client import Admin
    from ottla.client.admin_results import TopicDescription


LINE_LENGTH_MAX = 600
"""Longer lines are truncated: they repeat a value that someone passed by mistake."""


class CliError(Exception):
    """Printed as `ottla: message` with the advice below it. The exit code is 1."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice


def print_error(message: str, *advice: str) -> None:
    """Print an error, and below it what to do about it, to stderr: a line each, without control characters."""
    for index, line in enumerate((message, *filter(None, advice))):
        shown = line if len(line) <= LINE_LENGTH_MAX else f"{line[: LINE_LENGTH_MAX - 3]}..."
        if not shown.isprintable():
            shown = "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in shown)
        print(f"{'       ' if index else 'ottla: '}{shown}", file=sys.stderr)


def is_text(argument: str) -> bool:
    """Return whether an argument of the command line is valid UTF-8. Python replaces other bytes by surrogates."""
    return argument.isascii() or not any("\udc80" <= character <= "\udcff" for character in argument)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most similar to `name`, if any is similar enough."""
    from difflib import get_close_matches

    found = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return found[0] if found else None


def require_topics(admin: "Admin", names: Iterable[str]) -> dict[str, "TopicDescription"]:
    """Return the topics' descriptions. Raises `CliError` for a missing topic, suggesting the most similar name."""
    from ottla.client.errors import PartialFailureError, UnknownTopicOrPartitionError

    unique = list(dict.fromkeys(names))
    try:
        return admin.describe_topics(unique)
    except UnknownTopicOrPartitionError:
        raise unknown_topic_error(admin, unique[0]) from None
    except PartialFailureError as error:
        for name, reason in error.errors.items():
            if isinstance(reason, UnknownTopicOrPartitionError):
                raise unknown_topic_error(admin, name) from None
        raise


def unknown_topic_error(admin: "Admin", name: str) -> CliError:
    known = admin.list_topics(include_internal=True)
    meant = nearest(name, known)
    if meant is not None:
        return CliError(f"topic {name!r} does not exist", f"Did you mean {meant}? `ottla topic list` shows all topics.")
    return CliError(
        f"topic {name!r} does not exist",
        f"Create it with `ottla topic create {name}`, or see `ottla topic list`.",
    )


def require_groups(admin: "Admin", names: Iterable[str]) -> list[str]:
    """Return the names without duplicates, or all groups for none. Raises `CliError` for a missing group."""
    known = admin.list_groups()
    unique = list(dict.fromkeys(names))
    for name in unique:
        if name not in known:
            meant = nearest(name, known)
            advice = f"Did you mean {meant}? " if meant else ""
            raise CliError(f"group {name!r} does not exist", f"{advice}`ottla group list` shows all groups.")
    return unique or list(known)
