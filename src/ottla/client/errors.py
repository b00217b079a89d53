"""The client's exceptions. Each has Kafka's error code, whether a retry may help, and advice."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ottla.base.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.client.records import TopicPartition

_E = ErrorCode

RETRIABLE: frozenset[ErrorCode] = frozenset(
    (
        _E.CORRUPT_MESSAGE, _E.UNKNOWN_TOPIC_OR_PARTITION, _E.LEADER_NOT_AVAILABLE, _E.NOT_LEADER_OR_FOLLOWER,
        _E.REQUEST_TIMED_OUT, _E.REPLICA_NOT_AVAILABLE, _E.NETWORK_EXCEPTION, _E.COORDINATOR_LOAD_IN_PROGRESS,
        _E.COORDINATOR_NOT_AVAILABLE, _E.NOT_COORDINATOR, _E.NOT_ENOUGH_REPLICAS, _E.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        _E.NOT_CONTROLLER, _E.KAFKA_STORAGE_ERROR, _E.FETCH_SESSION_ID_NOT_FOUND, _E.INVALID_FETCH_SESSION_EPOCH,
        _E.LISTENER_NOT_FOUND, _E.FENCED_LEADER_EPOCH, _E.UNKNOWN_LEADER_EPOCH, _E.OFFSET_NOT_AVAILABLE,
        _E.PREFERRED_LEADER_NOT_AVAILABLE, _E.ELIGIBLE_LEADERS_NOT_AVAILABLE, _E.UNSTABLE_OFFSET_COMMIT,
        _E.THROTTLING_QUOTA_EXCEEDED, _E.CONCURRENT_TRANSACTIONS, _E.UNKNOWN_TOPIC_ID, _E.INCONSISTENT_TOPIC_ID,
        _E.FETCH_SESSION_TOPIC_ID_ERROR,
    )
)  # fmt: skip
"""Retriable errors: the same request may succeed later."""

STALE_METADATA: frozenset[ErrorCode] = frozenset(
    (
        _E.UNKNOWN_TOPIC_OR_PARTITION, _E.LEADER_NOT_AVAILABLE, _E.NOT_LEADER_OR_FOLLOWER, _E.REPLICA_NOT_AVAILABLE,
        _E.NETWORK_EXCEPTION, _E.KAFKA_STORAGE_ERROR, _E.LISTENER_NOT_FOUND, _E.FENCED_LEADER_EPOCH,
        _E.UNKNOWN_LEADER_EPOCH, _E.UNKNOWN_TOPIC_ID, _E.INCONSISTENT_TOPIC_ID, _E.PREFERRED_LEADER_NOT_AVAILABLE,
        _E.ELIGIBLE_LEADERS_NOT_AVAILABLE,
    )
)  # fmt: skip
"""Errors that call for a metadata update before the retry."""

ADVICE: dict[ErrorCode, str] = {
    _E.UNKNOWN_TOPIC_OR_PARTITION: "Create the topic first, or set auto.create.topics.enable=true on the broker.",
    _E.UNKNOWN_TOPIC_ID: "The topic was deleted or recreated; refresh metadata.",
    _E.INVALID_TOPIC_EXCEPTION: "Topic names have 1 to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-'.",
    _E.TOPIC_ALREADY_EXISTS: "Use it, pick another name, or delete it first.",
    _E.MESSAGE_TOO_LARGE: "Send smaller records, or raise max.message.bytes of the topic and max.request.size here.",
    _E.RECORD_LIST_TOO_LARGE: "Make batch.size smaller than the broker's segment.bytes.",
    _E.REQUEST_TIMED_OUT: "Check that the brokers are reachable and not overloaded, then retry.",
    _E.NETWORK_EXCEPTION: "Check that the broker is running and reachable, then retry.",
    _E.NOT_ENOUGH_REPLICAS: "Restart the missing replicas, or lower the topic's min.insync.replicas.",
    _E.TOPIC_AUTHORIZATION_FAILED: "Request access to this topic.",
    _E.GROUP_AUTHORIZATION_FAILED: "Request access to this group.",
    _E.CLUSTER_AUTHORIZATION_FAILED: "Request this permission on the cluster.",
    _E.INVALID_PARTITIONS: "Partitions can only be added; pass a larger count than the current one.",
    _E.INVALID_REPLICATION_FACTOR: "Use a replication factor between 1 and the number of brokers.",
    _E.INVALID_CONFIG: "Correct the config that the message names.",
    _E.OFFSET_OUT_OF_RANGE: "Use an offset between the partition's beginning and end.",
    _E.UNSUPPORTED_VERSION: "The broker is too old for this request; upgrade it.",
    _E.NON_EMPTY_GROUP: "Stop the members of the group first.",
    _E.GROUP_ID_NOT_FOUND: "List the groups to see the existing ones.",
    _E.GROUP_SUBSCRIBED_TO_TOPIC: "Stop the members that subscribe to the topic first.",
    _E.PRODUCER_FENCED: "A newer producer replaced this one; create a new producer.",
    _E.INVALID_PRODUCER_EPOCH: "A newer producer replaced this one; create a new producer.",
    _E.OUT_OF_ORDER_SEQUENCE_NUMBER: "Earlier records were lost; to send them again, create a new producer.",
    _E.INVALID_TIMESTAMP: "Use a timestamp within message.timestamp.before.max.ms and .after.max.ms of the broker's.",
    _E.INVALID_RECORD: "The broker rejected the record; compacted topics, for example, require keys.",
    _E.UNSUPPORTED_COMPRESSION_TYPE: "Use another compression.type.",
    _E.ELECTION_NOT_NEEDED: "Nothing to do: the partition already has this leader.",
    _E.UNKNOWN_MEMBER_ID: "The group rebalanced without this member; rejoin it.",
    _E.SECURITY_DISABLED: "The broker runs without an authorizer.",
}


class ClientError(Exception):
    """Base class of the client's exceptions. `code` is Kafka's error code, `advice` says what to do next."""

    default_code = ErrorCode.UNKNOWN_SERVER_ERROR

    def __init__(self, message: str, *, code: ErrorCode | None = None, advice: str | None = None) -> None:
        self.code = self.default_code if code is None else code
        self.advice = ADVICE.get(self.code, "") if advice is None else advice
        self.message = message
        super().__init__(f"{message} {self.advice}".strip())

    @property
    def name(self) -> str:
        """Kafka's name for the error."""
        return self.code.name

    @property
    def is_retriable(self) -> bool:
        return self.code in RETRIABLE


class ConfigError(ClientError, ValueError):
    """A config with an unknown name or an invalid value."""

    default_code = ErrorCode.INVALID_CONFIG

    def __init__(self, message: str) -> None:
        super().__init__(message, advice="")


class BrokerError(ClientError):
    """An error code in a broker's response."""


class BrokerUnreachableError(ClientError):
    """Connecting to a broker failed."""

    default_code = ErrorCode.NETWORK_EXCEPTION


class BootstrapError(BrokerUnreachableError):
    """No broker in `bootstrap.servers` could be reached."""


class DisconnectedError(ClientError):
    """The connection was lost before the response arrived. The broker may or may not have executed the request."""

    default_code = ErrorCode.NETWORK_EXCEPTION


class ClientTimeoutError(ClientError):
    """A call or a delivery exceeded its timeout."""

    default_code = ErrorCode.REQUEST_TIMED_OUT


class BufferExhaustedError(ClientTimeoutError):
    """`buffer.memory` stayed full for `max.block.ms`."""


class UnknownTopicOrPartitionError(BrokerError):
    """The topic, or the partition of it, does not exist."""

    default_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class RecordTooLargeError(BrokerError):
    """A record exceeds the size limit of a request or of its topic."""

    default_code = ErrorCode.MESSAGE_TOO_LARGE


class ProducerFencedError(BrokerError):
    """A newer producer replaced this one."""

    default_code = ErrorCode.PRODUCER_FENCED


class OutOfOrderSequenceError(BrokerError):
    """Earlier records of this producer are missing on the broker."""

    default_code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class UnsupportedVersionError(ClientError):
    """The broker does not support an API, or has no version of it in common with this client."""

    default_code = ErrorCode.UNSUPPORTED_VERSION


class ClientClosedError(ClientError):
    """The client was closed."""

    def __init__(self, message: str = "The client is closed.") -> None:
        super().__init__(message, advice="Create a new one.")


class PartialFailureError(ClientError):
    """Some items of a call failed. `errors` maps them to their errors, `results` has the results of the others."""

    def __init__(self, what: str, results: Mapping[Any, Any], errors: Mapping[Any, ClientError]) -> None:
        self.results = dict(results)
        self.errors = dict(errors)
        first = next(iter(errors.values()))
        reasons = " ".join(error.message for error in errors.values())
        super().__init__(
            f"{what}: {len(errors)} of {len(errors) + len(results)} failed. {reasons}",
            code=first.code,
            advice=first.advice,
        )


# Consumers only


class NoOffsetForPartitionError(ClientError):
    """Partitions have no committed offset, and `auto.offset.reset=none`."""

    default_code = ErrorCode.OFFSET_OUT_OF_RANGE

    def __init__(self, partitions: "Sequence[TopicPartition]") -> None:
        self.partitions = tuple(partitions)
        names = ", ".join(map(str, partitions))
        super().__init__(
            f"No committed offset for {names}, and auto.offset.reset is none.",
            advice="Seek to a start position.",
        )


class OffsetOutOfRangeError(ClientError):
    """The position is outside the log, and `auto.offset.reset=none`."""

    default_code = ErrorCode.OFFSET_OUT_OF_RANGE

    def __init__(self, partition: "TopicPartition", offset: int | None) -> None:
        self.partition, self.offset = partition, offset
        super().__init__(
            f"{partition} has no offset {offset}, and auto.offset.reset is none.",
            advice="Seek to an offset between the beginning and the end.",
        )


class LogTruncationError(ClientError):
    """Records that were read are no longer in the log: it was truncated after a leader change."""

    default_code = ErrorCode.OFFSET_OUT_OF_RANGE

    def __init__(self, partition: "TopicPartition", offset: int, end_offset: int) -> None:
        self.partition, self.offset, self.end_offset = partition, offset, end_offset
        super().__init__(
            f"{partition} was truncated: position is {offset}, "
            f"but the new leader's log diverges at offset {end_offset}.",
            advice="Seek to the point of divergence and read on from there.",
        )


class WakeupError(ClientError):
    """`wakeup()` was called from another thread."""

    def __init__(self) -> None:
        super().__init__("The consumer was woken up.", advice="")


class FencedInstanceIdError(ClientError):
    """Another consumer with the same `group.instance.id` replaced this one."""

    default_code = ErrorCode.FENCED_INSTANCE_ID

    def __init__(self, instance_id: str | None) -> None:
        super().__init__(
            f"Another consumer with group.instance.id {instance_id!r} replaced this one.",
            advice="Close this consumer, and give each consumer its own instance id.",
        )


class CommitFailedError(ClientError):
    """The group rebalanced without this member: other members own its partitions now."""

    default_code = ErrorCode.UNKNOWN_MEMBER_ID

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(
            "Offsets were not committed: the group rebalanced without this consumer.",
            code=code,
            advice="Poll more often, raise max.poll.interval.ms, or lower max.poll.records.",
        )


_CLASSES: dict[ErrorCode, type[BrokerError]] = {
    _E.UNKNOWN_TOPIC_OR_PARTITION: UnknownTopicOrPartitionError,
    _E.UNKNOWN_TOPIC_ID: UnknownTopicOrPartitionError,
    _E.MESSAGE_TOO_LARGE: RecordTooLargeError,
    _E.RECORD_LIST_TOO_LARGE: RecordTooLargeError,
    _E.PRODUCER_FENCED: ProducerFencedError,
    _E.INVALID_PRODUCER_EPOCH: ProducerFencedError,
    _E.OUT_OF_ORDER_SEQUENCE_NUMBER: OutOfOrderSequenceError,
    _E.UNKNOWN_PRODUCER_ID: OutOfOrderSequenceError,
}


def error_code(number: int) -> ErrorCode:
    """Return the error code; unknown numbers, from newer brokers, become UNKNOWN_SERVER_ERROR."""
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def broker_error(number: int, message: str | None = None, *, about: str = "") -> BrokerError:
    """Return the exception for an error code in a response. `about` names its subject, such as "topic 'orders'"."""
    code = error_code(number)
    text = message or code.name.replace("_", " ").capitalize()
    if not text.endswith((".", "!", "?")):
        text += "."
    shown = code.name if code != ErrorCode.UNKNOWN_SERVER_ERROR or number == -1 else f"error {number}"
    subject = f" ({about})" if about else ""
    return _CLASSES.get(code, BrokerError)(f"{shown}{subject}: {text}", code=code)


def raise_for(number: int, message: str | None = None, *, about: str = "") -> None:
    """Raise the exception for an error code other than 0."""
    if number:
        raise broker_error(number, message, about=about)
