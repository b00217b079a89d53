"""The bytes of topics that Metadata keeps: for the images they were made of, of the topics there are, in few versions."""

from ottla.base.ids import Uuid
from ottla.metadata.image import TopicImage
from ottla.runtime.encoded_topics import VERSIONS_MAX, EncodedTopicCache, EncodedTopics


def topic(number: int) -> TopicImage:
    return TopicImage(f"topic-{number}", Uuid(number.to_bytes(16, "big")), {})


def topics(*numbers: int) -> dict[Uuid, TopicImage]:
    return {one.topic_id: one for one in map(topic, numbers)}


def test_bytes_are_those_of_one_image_of_a_topic() -> None:
    form, there = EncodedTopics(), topics(1)
    one = there[topic(1).topic_id]
    form.put(one, b"one", there)
    assert form.get(one) == b"one"
    changed = topic(1)
    assert form.get(changed) is None
    form.put(changed, b"changed", there)
    assert (form.get(one), form.get(changed)) == (None, b"changed")


def test_topics_that_are_gone_are_forgotten() -> None:
    """A client that makes and deletes topics without end gets no memory for it."""
    form = EncodedTopics()
    for number in range(100):
        there = topics(0, number)
        for one in there.values():
            form.put(one, b"x", there)
    assert len(form._bytes) <= 3


def test_all_topics_are_kept_until_one_changes() -> None:
    form, there = EncodedTopics(), topics(1, 2)
    assert [one.name for one in form.missing(there)] == ["topic-1", "topic-2"]
    for one in there.values():
        form.put(one, one.name.encode(), there)
    assert (list(form.missing(there)), form.get_all(there)) == ([], None)
    form.put_all(there, b"topic-1topic-2")
    assert form.get_all(there) == b"topic-1topic-2"
    assert form.get_all(dict(there)) is None


def test_few_forms_are_kept() -> None:
    kept = EncodedTopicCache()
    first = kept.for_version(0, with_operations=False)
    for version in range(1, VERSIONS_MAX):
        kept.for_version(version, with_operations=False)
    assert kept.for_version(0, with_operations=False) is first
    for version in range(1, VERSIONS_MAX + 1):
        kept.for_version(version, with_operations=True)
    assert kept.for_version(0, with_operations=False) is not first
