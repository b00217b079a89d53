"""What a command says when it cannot do what it was asked: one line about what is wrong, and one about what to do."""

from collections.abc import Iterable


class Failure(Exception):
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
