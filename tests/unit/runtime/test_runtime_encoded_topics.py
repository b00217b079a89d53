"""The cache of encoded topics: one per image of a topic, for existing topics, in few versions."""

from ottla.base.ids import Uuid
from ottla.metadata.image import TopicImage
from ottla.runtime.encoded_topics import VERSIONS_MAX, EncodedTopicCache, EncodedTopics


def topic(number: int) -> TopicImage:
    return TopicImage(f"topic-{number}", Uuid(number.to_bytes(16, "big")), {})


def topics(*numbers: int) -> dict[Uuid, TopicImage]:
    return {one.topic_id: one for one in map(topic, numbers)}


def test_encoded_topic_is_that_of_its_image() -> None:
    encoded, existing = EncodedTopics(), topics(1)
    one = existing[topic(1).topic_id]
    encoded.put(one, b"one", existing)
    assert encoded.get(one) == b"one"
    changed = topic(1)
    assert encoded.get(changed) is None
    encoded.put(changed, b"changed", existing)
    assert (encoded.get(one), encoded.get(changed)) == (None, b"changed")


def test_deleted_topics_are_removed() -> None:
    """A client that keeps creating and deleting topics does not fill the memory."""
    encoded = EncodedTopics()
    for number in range(100):
        existing = topics(0, number)
        for one in existing.values():
            encoded.put(one, b"x", existing)
    assert len(encoded._bytes) <= 3


def test_all_topics_are_cached_until_one_changes() -> None:
    encoded, existing = EncodedTopics(), topics(1, 2)
    assert [one.name for one in encoded.missing(existing)] == ["topic-1", "topic-2"]
    for one in existing.values():
        encoded.put(one, one.name.encode(), existing)
    assert (list(encoded.missing(existing)), encoded.get_all(existing)) == ([], None)
    encoded.put_all(existing, b"topic-1topic-2")
    assert encoded.get_all(existing) == b"topic-1topic-2"
    assert encoded.get_all(dict(existing)) is None


def test_few_versions_are_cached() -> None:
    cache = EncodedTopicCache()
    first = cache.for_version(0, with_operations=False)
    for version in range(1, VERSIONS_MAX):
        cache.for_version(version, with_operations=False)
    assert cache.for_version(0, with_operations=False) is first
    for version in range(1, VERSIONS_MAX + 1):
        cache.for_version(version, with_operations=True)
    assert cache.for_version(0, with_operations=False) is not first
