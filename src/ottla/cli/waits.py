"""Messages about waits: one line on stderr when an outage begins, and one when it is over."""

import threading
from typing import TYPE_CHECKING

from ottla.cli.output import print_note

if TYPE_CHECKING:
    from ottla.client.consumer import Consumer
    from ottla.client.errors import ClientError
    from ottla.client.producer import Producer


class OutageNotes:
    """Prints the outages of a client. `take_deleted` returns the topics deleted since the last call."""

    def __init__(self, client: "Producer | Consumer", *, waits_for_topics: bool = True) -> None:
        self._waits_for_topics = waits_for_topics
        self._lock = threading.Lock()
        self._deleted: dict[str, None] = {}
        self._errors: dict[str, ClientError] = {}
        client.watch_outages(self._on_change)

    def _on_change(self, subject: str, error: "ClientError | None") -> None:
        from ottla.client.errors import UnknownTopicOrPartitionError

        if error is None:
            print_note(f"ottla: {subject} is back")
            with self._lock:
                self._errors.pop(subject, None)
            return
        is_deleted = isinstance(error, UnknownTopicOrPartitionError)
        if self._waits_for_topics or not is_deleted:
            text = error.message.rstrip(".").replace("Topic", "topic", 1)
            print_note(f"ottla: {text}; {'waiting for it to be created again' if is_deleted else 'retrying'}")
        with self._lock:
            self._errors[subject] = error
            if is_deleted:
                self._deleted[subject] = None

    def take_deleted(self) -> list[str]:
        with self._lock:
            deleted, self._deleted = list(self._deleted), {}
        return deleted

    @property
    def latest(self) -> "ClientError | None":
        """The error of the outage that began last, if it is not over."""
        with self._lock:
            return next(reversed(self._errors.values()), None)
