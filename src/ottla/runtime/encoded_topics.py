"""Topics as answers tell them, in bytes: made once for each image of a topic, and for all topics together once for each image of those."""

from collections.abc import Iterator, Mapping

from ottla.base.ids import Uuid
from ottla.metadata.image import TopicImage

FORMS_MAX = 4
"""Clients of one cluster speak few versions; one that asks for all of them in turn gets no more memory for it."""

Topics = Mapping[Uuid, TopicImage]


class EncodedTopics:
    """One version's way to tell of topics. An image's mappings are never changed in place, and the same mapping means the same topics."""

    __slots__ = ("_all", "_all_of", "_bytes")

    def __init__(self) -> None:
        self._bytes: dict[Uuid, tuple[TopicImage, bytes]] = {}
        self._all = b""
        self._all_of: Topics | None = None

    def get(self, topic: TopicImage) -> bytes | None:
        kept = self._bytes.get(topic.topic_id)
        return kept[1] if kept is not None and kept[0] is topic else None

    def keep(self, topic: TopicImage, encoded: bytes, topics: Topics) -> None:
        """`topics` are those there are: what is kept of others is forgotten."""
        if len(self._bytes) > len(topics):
            self._bytes = {topic_id: kept for topic_id, kept in self._bytes.items() if topic_id in topics}
        self._bytes[topic.topic_id] = topic, encoded

    def missing(self, topics: Topics) -> Iterator[TopicImage]:
        """Those whose bytes are still to be made."""
        return (topic for topic in topics.values() if self.get(topic) is None)

    def all_of(self, topics: Topics) -> bytes | None:
        """The bytes of all topics one after another, if nothing has changed since `keep_all`."""
        return self._all if self._all_of is topics else None

    def keep_all(self, topics: Topics, encoded: bytes) -> None:
        self._all, self._all_of = encoded, topics


class EncodedTopicCache:
    """The forms that were asked for last."""

    __slots__ = ("_forms",)

    def __init__(self) -> None:
        self._forms: dict[tuple[int, bool], EncodedTopics] = {}

    def form(self, version: int, *, with_operations: bool) -> EncodedTopics:
        key = (version, with_operations)
        form = self._forms.pop(key, None)
        if form is None:
            form = EncodedTopics()
            if len(self._forms) >= FORMS_MAX:
                del self._forms[next(iter(self._forms))]
        self._forms[key] = form
        return form
