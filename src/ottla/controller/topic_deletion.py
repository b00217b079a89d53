"""Topics go: DeleteTopics, by name or by id."""

from collections import Counter
from typing import Any

from ottla.base.decision import Decision
from ottla.base.errors import ApiError, ErrorCode
from ottla.base.ids import ZERO_UUID, Uuid
from ottla.controller.settings import ControllerSettings, check_record_count
from ottla.metadata.image import ClusterImage
from ottla.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from ottla.wire.records.metadata import RemoveTopicRecord


def delete_topics(image: ClusterImage, request: DeleteTopicsRequest, settings: ControllerSettings) -> Decision:
    """What is given twice is not deleted. Versions before 3 know no TOPIC_DELETION_DISABLED: whoever answers them says INVALID_REQUEST."""
    if not settings.delete_topic_enable:
        return _refuse_all(request, ApiError(ErrorCode.TOPIC_DELETION_DISABLED))
    names, ids, results = _sort_out(request)
    doomed: dict[Uuid, str] = {}
    for topic_id, count in ids.items():
        known = image.topics_by_id.get(topic_id)
        if count > 1:
            results.append(_refused(None, topic_id, "the topic id is given more than once in this request"))
        elif known is None:
            results.append(DeletableTopicResult(None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID, "no topic has this id"))
        else:
            doomed[topic_id] = known.name
    for name, count in names.items():
        known = image.topics_by_name.get(name)
        if count > 1:
            results.append(_refused(name, ZERO_UUID, "the topic is named more than once in this request"))
        elif known is None:
            results.append(
                DeletableTopicResult(name, ZERO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no topic has this name")
            )
        elif known.topic_id in ids:
            doomed.pop(known.topic_id, None)
            results.append(_refused(name, known.topic_id, "the topic is given by its id as well in this request"))
        else:
            doomed[known.topic_id] = name
    records: list[Any] = [RemoveTopicRecord(topic_id) for topic_id in doomed]
    try:
        check_record_count(records)
    except ApiError as error:
        return _refuse_all(request, error)
    results += [DeletableTopicResult(name, topic_id, ErrorCode.NONE) for topic_id, name in doomed.items()]
    return Decision(tuple(records), DeleteTopicsResponse(0, results))


def _sort_out(request: DeleteTopicsRequest) -> tuple[Counter[str], Counter[Uuid], list[DeletableTopicResult]]:
    """How often each name and each id is given; topics that are given by both or by neither are refused at once."""
    names = Counter(request.topic_names)
    ids: Counter[Uuid] = Counter()
    refused = []
    for topic in request.topics:
        if topic.name is not None and topic.topic_id != ZERO_UUID:
            refused.append(_refused(topic.name, topic.topic_id, "give the topic's name or its id, not both"))
        elif topic.name is not None:
            names[topic.name] += 1
        elif topic.topic_id != ZERO_UUID:
            ids[topic.topic_id] += 1
        else:
            refused.append(_refused(None, ZERO_UUID, "neither a name nor an id says which topic to delete"))
    return names, ids, refused


def _refused(name: str | None, topic_id: Uuid, why: str) -> DeletableTopicResult:
    return DeletableTopicResult(name, topic_id, ErrorCode.INVALID_REQUEST, why)


def _refuse_all(request: DeleteTopicsRequest, error: ApiError) -> Decision:
    """Each topic as it was given, the same one as often as it was."""
    results = [DeletableTopicResult(name, ZERO_UUID, error.code, error.message) for name in request.topic_names]
    results += [DeletableTopicResult(topic.name, topic.topic_id, error.code, error.message) for topic in request.topics]
    return Decision(response=DeleteTopicsResponse(0, results))
