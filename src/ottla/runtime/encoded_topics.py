"""Topics as Metadata responses contain them, encoded once per image of a topic, and all topics together once per
image."""

from collections.abc import Iterator, Mapping

from ottla.base.ids import Uuid
from ottla.metadata.image import TopicImage

VERSIONS_MAX = 4
"""Versions whose topics are cached. Clients of one cluster use few of them."""

Topics = Mapping[Uuid, TopicImage]


class EncodedTopics:
    """The encoded topics of one version. Images are never changed in place, so the same mapping means the same
    topics."""

    __slots__ = ("_all", "_all_of", "_bytes")

    def __init__(self) -> None:
        self._bytes: dict[Uuid, tuple[TopicImage, bytes]] = {}
        self._all = b""
        self._all_of: Topics | None = None

    def get(self, topic: TopicImage) -> bytes | None:
        cached = self._bytes.get(topic.topic_id)
        return cached[1] if cached is not None and cached[0] is topic else None

    def put(self, topic: TopicImage, encoded: bytes, topics: Topics) -> None:
        """`topics` are all that exist: encoded topics that do not are removed."""
        if len(self._bytes) > len(topics):
            self._bytes = {topic_id: cached for topic_id, cached in self._bytes.items() if topic_id in topics}
        self._bytes[topic.topic_id] = topic, encoded

    def missing(self, topics: Topics) -> Iterator[TopicImage]:
        """Return the topics that are not encoded yet."""
        return (topic for topic in topics.values() if self.get(topic) is None)

    def get_all(self, topics: Topics) -> bytes | None:
        """Return all encoded topics, joined, if nothing has changed since `put_all`."""
        return self._all if self._all_of is topics else None

    def put_all(self, topics: Topics, encoded: bytes) -> None:
        self._all, self._all_of = encoded, topics


class EncodedTopicCache:
    """The encoded topics of the versions that were requested last."""

    __slots__ = ("_versions",)

    def __init__(self) -> None:
        self._versions: dict[tuple[int, bool], EncodedTopics] = {}

    def for_version(self, version: int, *, with_operations: bool) -> EncodedTopics:
        key = (version, with_operations)
        topics = self._versions.pop(key, None)
        if topics is None:
            topics = EncodedTopics()
            if len(self._versions) >= VERSIONS_MAX:
                del self._versions[next(iter(self._versions))]
        self._versions[key] = topics
        return topics
