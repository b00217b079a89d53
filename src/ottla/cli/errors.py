"""What a command says when it cannot do what it was asked: one line about what is wrong, and one about what to do."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.client import Admin
    from ottla.client.admin_results import TopicDescription


class CliError(Exception):
    """Shown as `ottla: message`, and the advice below it. The exit code is 1."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was perhaps meant."""
    from difflib import get_close_matches

    found = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return found[0] if found else None


def require_topics(admin: "Admin", names: Iterable[str]) -> dict[str, "TopicDescription"]:
    """The topics, or CliError with the nearest name of the first that is missing."""
    from ottla.client.admin_results import PartialFailureError
    from ottla.client.errors import UnknownTopicOrPartitionError

    wanted = list(dict.fromkeys(names))
    try:
        return admin.describe_topics(wanted)
    except UnknownTopicOrPartitionError:
        raise unknown_topic_error(admin, wanted[0]) from None
    except PartialFailureError as error:
        for name, reason in error.errors.items():
            if isinstance(reason, UnknownTopicOrPartitionError):
                raise unknown_topic_error(admin, name) from None
        raise


def unknown_topic_error(admin: "Admin", name: str) -> CliError:
    known = admin.list_topics(include_internal=True)
    meant = nearest(name, known)
    if meant is not None:
        return CliError(f"there is no topic {name!r}", f"Did you mean {meant}? `ottla topic list` shows all there are.")
    return CliError(
        f"there is no topic {name!r}",
        f"Make it with `ottla topic create {name}`; `ottla topic list` shows those there are.",
    )


def require_groups(admin: "Admin", names: Iterable[str]) -> list[str]:
    """The groups that are named, or all where none is; CliError with the nearest name where one is missing."""
    known = admin.list_groups()
    wanted = list(dict.fromkeys(names))
    for name in wanted:
        if name not in known:
            meant = nearest(name, known)
            advice = f"Did you mean {meant}? " if meant else ""
            raise CliError(f"there is no group {name!r}", f"{advice}`ottla group list` shows all there are.")
    return wanted or list(known)
