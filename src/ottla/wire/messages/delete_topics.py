"""DeleteTopics: delete topics by name or id."""

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.wire.schema import Message, array, i16, i32, string, uuid


class DeleteTopicState(Message):
    name: str | None = string("6+", nullable="6+", default=None)
    topic_id: Uuid = uuid("6+", default=ZERO_UUID)


class DeleteTopicsRequest(Message):
    API_KEY = 20
    MIN_VERSION = 1
    MAX_VERSION = 6
    FLEXIBLE_FROM = 4

    topics: list[DeleteTopicState] = array(DeleteTopicState, "6+", default=())
    topic_names: list[str] = array(string, "0-5", default=(), ignorable=True)
    timeout_ms: int = i32("0+", default=0)


class DeletableTopicResult(Message):
    name: str | None = string("0+", nullable="6+", default="")
    topic_id: Uuid = uuid("6+", default=ZERO_UUID, ignorable=True)
    error_code: int = i16("0+", default=0)
    error_message: str | None = string("5+", nullable="5+", default=None, ignorable=True)


class DeleteTopicsResponse(Message):
    API_KEY = 20
    MIN_VERSION = 1
    MAX_VERSION = 6
    FLEXIBLE_FROM = 4

    throttle_time_ms: int = i32("1+", default=0, ignorable=True)
    responses: list[DeletableTopicResult] = array(DeletableTopicResult, "0+", default=())
