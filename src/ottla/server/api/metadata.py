"""Metadata (key 3), versions 0–13: the brokers, and the partitions of some or all topics with their leaders.

Where the client and `auto.create.topics.enable` allow it, a topic that is missing is created; as in Kafka the answer does not wait
for it, and the client asks again. Each topic's bytes are kept per version until the image changes it, and so are those of all topics: a
client with a thousand topics asks for all of them, and often.
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
NULL_IS_ALL_FROM = 1
IDS_FROM = 12
TOPIC_OPERATIONS = 3576
"""Read, write, create, delete, alter, describe and the config operations: what everybody may do without an authorizer."""
CLUSTER_OPERATIONS = 8096
_i32 = Struct(">i").pack

Answer = bytes | MetadataResponse


def handle(
    broker: Broker, context: RequestContext, request: MetadataRequest, version: int
) -> Answer | SlicedWork[Answer]:
    """Returned as bytes: the body is put together from the topics' own bytes."""
    image, wanted = broker.image, request.topics
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
    form = broker.metadata_bytes.form(version, with_operations=request.include_topic_authorized_operations)
    if wanted is None or (version < NULL_IS_ALL_FROM and not wanted):
        everything = form.all_of(image.topics_by_id)
        if everything is not None:
            return _join(envelope, len(image.topics_by_id), [everything], version)
        return _all(broker, form, envelope, request, version)
    if len(wanted) > ITEMS_PER_PIECE:
        return _many(broker, form, envelope, request, wanted, version)
    by_id = _with_ids(wanted)
    if error := _fault(version, has_ids=bool(by_id), has_null_name=_has_null_name(wanted)):
        return _refused(wanted, error)
    topics = _asked_for(broker, form, request, by_id or wanted, version)
    return _join(envelope, len(topics), list(topics.values()), version)


def _many(
    broker: Broker,
    form: EncodedTopics,
    envelope: MetadataResponse,
    request: MetadataRequest,
    wanted: list[MetadataRequestTopic],
    version: int,
) -> SlicedWork[Answer]:
    """Return the topics that are named, each of which takes 3 µs."""
    by_id: list[MetadataRequestTopic] = []
    has_null_name = False
    for some in in_pieces(wanted, 10 * ITEMS_PER_PIECE):  # each takes 0.1 µs
        by_id += _with_ids(some)
        has_null_name = has_null_name or _has_null_name(some)
        yield
    if error := _fault(version, has_ids=bool(by_id), has_null_name=has_null_name):
        return _refused(wanted, error)
    topics: dict[bytes | str, bytes] = {}
    for some in in_pieces(by_id or wanted, 2 * ITEMS_PER_PIECE):
        topics |= _asked_for(broker, form, request, some, version)
        yield
    joined = _join(envelope, len(topics), list(topics.values()), version)
    broker.scheduler.free_in_slices(topics)
    return joined


def _all(
    broker: Broker, form: EncodedTopics, envelope: MetadataResponse, request: MetadataRequest, version: int
) -> SlicedWork[Answer]:
    """All topics. Those that have changed are encoded again: ten thousand partitions take 17 ms."""
    image = broker.image
    topics = image.topics_by_id
    for topic in list(form.missing(topics)):
        _topic(form, image, topic, request, version)
        yield
    parts = [_topic(form, image, topic, request, version) for topic in topics.values()]
    everything = b"".join(parts)
    form.keep_all(topics, everything)
    return _join(envelope, len(parts), [everything], version)


def _with_ids(wanted: Sequence[MetadataRequestTopic]) -> list[MetadataRequestTopic]:
    """Where there are any, names beside them are not looked at."""
    return [want for want in wanted if want.topic_id != ZERO_UUID]


def _has_null_name(wanted: Sequence[MetadataRequestTopic]) -> bool:
    return any(want.name is None for want in wanted)


def _refused(wanted: list[MetadataRequestTopic], error: ErrorCode) -> MetadataResponse:
    refused = [MetadataResponseTopic(error_code=error, name=want.name or "", topic_id=want.topic_id) for want in wanted]
    return MetadataResponse(topics=refused, error_code=error)


def _fault(version: int, *, has_ids: bool, has_null_name: bool) -> ErrorCode:
    """Why the whole request is refused, if it is: ids have a place from version 10 on, but a meaning only from 12 on."""
    if version < IDS_FROM:
        return ErrorCode.INVALID_REQUEST if has_ids or has_null_name else ErrorCode.NONE
    return ErrorCode.UNKNOWN_SERVER_ERROR if has_null_name and not has_ids else ErrorCode.NONE


def _asked_for(
    broker: Broker, form: EncodedTopics, request: MetadataRequest, wanted: Sequence[MetadataRequestTopic], version: int
) -> dict[bytes | str, bytes]:
    """The bytes of each by its name, or by its id where there is none."""
    encoded: dict[bytes | str, bytes] = {}
    missing: list[str] = []
    image = broker.image
    for want in wanted:
        if want.topic_id != ZERO_UUID:
            topic = image.topics_by_id.get(Uuid(want.topic_id))
            if topic is None:
                encoded[want.topic_id] = _failed(version, ErrorCode.UNKNOWN_TOPIC_ID, None, Uuid(want.topic_id))
        else:
            assert want.name is not None  # else the whole request was refused
            topic = image.topics_by_name.get(want.name)
            if topic is None:
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                if topic_name_error(want.name) is not None:
                    error = ErrorCode.INVALID_TOPIC_EXCEPTION
                elif want.name not in encoded:
                    missing.append(want.name)
                encoded[want.name] = _failed(version, error, want.name)
        if topic is not None:
            encoded[topic.name] = _topic(form, image, topic, request, version)
    if missing and request.allow_auto_topic_creation and broker.settings.is_auto_create_enabled:
        broker.auto_create_topics(missing)
    return encoded


def _failed(version: int, error: ErrorCode, name: str | None, topic_id: Uuid = ZERO_UUID) -> bytes:
    return part_encoder(MetadataResponse, MetadataResponseTopic, version)(
        MetadataResponseTopic(error_code=error, name=name, topic_id=topic_id, is_internal=name in INTERNAL_TOPICS)
    )


def _topic(
    form: EncodedTopics, image: ClusterImage, topic: TopicImage, request: MetadataRequest, version: int
) -> bytes:
    """The bytes of one topic, made once for each image of it: a node that loses a directory has its topics changed, too."""
    kept = form.get(topic)
    if kept is not None:
        return kept
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
    form.keep(topic, encoded, image.topics_by_id)
    return encoded


def _join(envelope: MetadataResponse, topic_count: int, topics: list[bytes], version: int) -> bytes:
    """The envelope was encoded with an empty list of topics: put the real one in its place."""
    body = encode(envelope, version)
    behind = (4 if 8 <= version <= 10 else 0) + (2 if version >= 13 else 0) + (1 if version >= FLEXIBLE_FROM else 0)
    count = unsigned_varint(topic_count + 1) if version >= FLEXIBLE_FROM else _i32(topic_count)
    end_of_list = len(body) - behind
    start_of_list = end_of_list - (1 if version >= FLEXIBLE_FROM else 4)
    return b"".join([body[:start_of_list], count, *topics, body[end_of_list:]])
