"""Metadata (key 3), versions 0–13: the brokers, and some or all topics with the leaders of their partitions.

If the client and `auto.create.topics.enable` allow it, an unknown topic is created; as in Kafka the response does not
wait for that, and the client retries. The encoded form of each topic, and of all topics together, is cached per
version until the image changes: clients with a thousand topics request all of them, and often.
"""

from collections.abc import Sequence
from struct import Struct

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.base.ids import ZERO_UUID, Uuid
from ottla.metadata.image import NO_LEADER, ClusterImage, TopicImage
from ottla.metadata.topic_names import INTERNAL_TOPICS, topic_name_error
from ottla.runtime.broker import Broker
from ottla.runtime.encoded_topics import EncodedTopics
from ottla.runtime.slice_scheduler import ITEMS_PER_PIECE, in_pieces
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.wire.schema import SlicedWork, encode, part_encoder
from ottla.wire.varint import unsigned_varint

REQUEST = MetadataRequest
FLEXIBLE_FROM = 9
NULL_IS_ALL_MIN_VERSION = 1
TOPIC_IDS_MIN_VERSION = 12
TOPIC_OPERATIONS = 3576
"""Read, write, create, delete, alter, describe and the config operations: without an authorizer every client has all
of them."""
CLUSTER_OPERATIONS = 8096
_i32 = Struct(">i").pack

Response = bytes | MetadataResponse


def handle(
    broker: Broker, context: RequestContext, request: MetadataRequest, version: int
) -> Response | SlicedWork[Response]:
    """Return the response in bytes, put together from encoded topics."""
    image, requested = broker.image, request.topics
    envelope = MetadataResponse(
        brokers=[
            MetadataResponseBroker(endpoint.node_id, endpoint.host, endpoint.port, endpoint.rack)
            for endpoint in broker.endpoints(context.listener)
        ],
        cluster_id=image.cluster_id,
        controller_id=broker.settings.node_id,
    )
    if request.include_cluster_authorized_operations:
        envelope.cluster_authorized_operations = CLUSTER_OPERATIONS
    cache = broker.encoded_topics.for_version(version, with_operations=request.include_topic_authorized_operations)
    if requested is None or (version < NULL_IS_ALL_MIN_VERSION and not requested):
        everything = cache.get_all(image.topics_by_id)
        if everything is not None:
            return _join(envelope, len(image.topics_by_id), [everything], version)
        return _all(broker, cache, envelope, request, version)
    if len(requested) > ITEMS_PER_PIECE:
        return _many(broker, cache, envelope, request, requested, version)
    by_id = _with_ids(requested)
    if error := _request_error(version, has_ids=bool(by_id), has_null_name=_has_null_name(requested)):
        return _rejected(requested, error)
    topics = _encoded_topics(broker, cache, request, by_id or requested, version)
    return _join(envelope, len(topics), list(topics.values()), version)


def _many(
    broker: Broker,
    cache: EncodedTopics,
    envelope: MetadataResponse,
    request: MetadataRequest,
    requested: list[MetadataRequestTopic],
    version: int,
) -> SlicedWork[Response]:
    """Return the topics that are named, each of which takes 3 µs."""
    by_id: list[MetadataRequestTopic] = []
    has_null_name = False
    for some in in_pieces(requested, 10 * ITEMS_PER_PIECE):  # each takes 0.1 µs
        by_id += _with_ids(some)
        has_null_name = has_null_name or _has_null_name(some)
        yield
    if error := _request_error(version, has_ids=bool(by_id), has_null_name=has_null_name):
        return _rejected(requested, error)
    topics: dict[bytes | str, bytes] = {}
    for some in in_pieces(by_id or requested, 2 * ITEMS_PER_PIECE):
        topics |= _encoded_topics(broker, cache, request, some, version)
        yield
    joined = _join(envelope, len(topics), list(topics.values()), version)
    broker.scheduler.free_in_slices(topics)
    return joined


def _all(
    broker: Broker, cache: EncodedTopics, envelope: MetadataResponse, request: MetadataRequest, version: int
) -> SlicedWork[Response]:
    """Return all topics. Topics that have changed are encoded again: ten thousand partitions take 17 ms."""
    image = broker.image
    topics = image.topics_by_id
    for topic in list(cache.missing(topics)):
        _topic(cache, image, topic, request, version)
        yield
    parts = [_topic(cache, image, topic, request, version) for topic in topics.values()]
    everything = b"".join(parts)
    cache.put_all(topics, everything)
    return _join(envelope, len(parts), [everything], version)


def _with_ids(requested: Sequence[MetadataRequestTopic]) -> list[MetadataRequestTopic]:
    """Return the topics that have an id. If there are any, names are ignored."""
    return [topic_request for topic_request in requested if topic_request.topic_id != ZERO_UUID]


def _has_null_name(requested: Sequence[MetadataRequestTopic]) -> bool:
    return any(topic_request.name is None for topic_request in requested)


def _rejected(requested: list[MetadataRequestTopic], error: ErrorCode) -> MetadataResponse:
    topics = [
        MetadataResponseTopic(error_code=error, name=topic_request.name or "", topic_id=topic_request.topic_id)
        for topic_request in requested
    ]
    return MetadataResponse(topics=topics, error_code=error)


def _request_error(version: int, *, has_ids: bool, has_null_name: bool) -> ErrorCode:
    """Return the error of the complete request, if any: topic ids are fields from version 10 on, but supported from 12
    on only."""
    if version < TOPIC_IDS_MIN_VERSION:
        return ErrorCode.INVALID_REQUEST if has_ids or has_null_name else ErrorCode.NONE
    return ErrorCode.UNKNOWN_SERVER_ERROR if has_null_name and not has_ids else ErrorCode.NONE


def _encoded_topics(
    broker: Broker,
    cache: EncodedTopics,
    request: MetadataRequest,
    requested: Sequence[MetadataRequestTopic],
    version: int,
) -> dict[bytes | str, bytes]:
    """Return the encoded topics by name, or by id if the name is unknown."""
    encoded: dict[bytes | str, bytes] = {}
    missing: list[str] = []
    image = broker.image
    for topic_request in requested:
        if topic_request.topic_id != ZERO_UUID:
            topic = image.topics_by_id.get(Uuid(topic_request.topic_id))
            if topic is None:
                encoded[topic_request.topic_id] = _failed(
                    version, ErrorCode.UNKNOWN_TOPIC_ID, None, Uuid(topic_request.topic_id)
                )
        else:
            assert topic_request.name is not None  # otherwise the complete request was rejected
            topic = image.topics_by_name.get(topic_request.name)
            if topic is None:
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                if topic_name_error(topic_request.name) is not None:
                    error = ErrorCode.INVALID_TOPIC_EXCEPTION
                elif topic_request.name not in encoded:
                    missing.append(topic_request.name)
                encoded[topic_request.name] = _failed(version, error, topic_request.name)
        if topic is not None:
            encoded[topic.name] = _topic(cache, image, topic, request, version)
    if missing and request.allow_auto_topic_creation and broker.settings.is_auto_create_enabled:
        broker.auto_create_topics(missing)
    return encoded


def _failed(version: int, error: ErrorCode, name: str | None, topic_id: Uuid = ZERO_UUID) -> bytes:
    return part_encoder(MetadataResponse, MetadataResponseTopic, version)(
        MetadataResponseTopic(error_code=error, name=name, topic_id=topic_id, is_internal=name in INTERNAL_TOPICS)
    )


def _topic(
    cache: EncodedTopics, image: ClusterImage, topic: TopicImage, request: MetadataRequest, version: int
) -> bytes:
    """Return an encoded topic, which is cached per image. The image of a topic also changes when a log directory
    fails."""
    cached = cache.get(topic)
    if cached is not None:
        return cached
    message = MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[
            MetadataResponsePartition(
                error_code=ErrorCode.NONE if partition.leader != NO_LEADER else ErrorCode.LEADER_NOT_AVAILABLE,
                partition_index=index,
                leader_id=partition.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(partition.replicas),
                isr_nodes=list(partition.isr),
                offline_replicas=image.offline_replicas(partition),
            )
            for index, partition in topic.partitions.items()
        ],
    )
    if request.include_topic_authorized_operations:
        message.topic_authorized_operations = TOPIC_OPERATIONS
    encoded = part_encoder(MetadataResponse, MetadataResponseTopic, version)(message)
    cache.put(topic, encoded, image.topics_by_id)
    return encoded


def _join(envelope: MetadataResponse, topic_count: int, topics: list[bytes], version: int) -> bytes:
    """Encode the envelope with an empty list of topics, and replace that by the encoded topics."""
    body = encode(envelope, version)
    after = (4 if 8 <= version <= 10 else 0) + (2 if version >= 13 else 0) + (1 if version >= FLEXIBLE_FROM else 0)
    count = unsigned_varint(topic_count + 1) if version >= FLEXIBLE_FROM else _i32(topic_count)
    end_of_list = len(body) - after
    start_of_list = end_of_list - (1 if version >= FLEXIBLE_FROM else 4)
    return b"".join([body[:start_of_list], count, *topics, body[end_of_list:]])
