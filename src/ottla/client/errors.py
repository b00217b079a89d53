"""One family of exceptions: what happened, by Kafka's name for it, whether to try again helps, and what to do next."""

from ottla.base.errors import ErrorCode

_E = ErrorCode

RETRIABLE: frozenset[ErrorCode] = frozenset(
    (
        _E.CORRUPT_MESSAGE, _E.UNKNOWN_TOPIC_OR_PARTITION, _E.LEADER_NOT_AVAILABLE, _E.NOT_LEADER_OR_FOLLOWER, _E.REQUEST_TIMED_OUT,
        _E.REPLICA_NOT_AVAILABLE, _E.NETWORK_EXCEPTION, _E.COORDINATOR_LOAD_IN_PROGRESS, _E.COORDINATOR_NOT_AVAILABLE,
        _E.NOT_COORDINATOR, _E.NOT_ENOUGH_REPLICAS, _E.NOT_ENOUGH_REPLICAS_AFTER_APPEND, _E.NOT_CONTROLLER, _E.KAFKA_STORAGE_ERROR,
        _E.FETCH_SESSION_ID_NOT_FOUND, _E.INVALID_FETCH_SESSION_EPOCH, _E.LISTENER_NOT_FOUND, _E.FENCED_LEADER_EPOCH,
        _E.UNKNOWN_LEADER_EPOCH, _E.OFFSET_NOT_AVAILABLE, _E.PREFERRED_LEADER_NOT_AVAILABLE, _E.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        _E.UNSTABLE_OFFSET_COMMIT, _E.THROTTLING_QUOTA_EXCEEDED, _E.CONCURRENT_TRANSACTIONS, _E.UNKNOWN_TOPIC_ID,
        _E.INCONSISTENT_TOPIC_ID, _E.FETCH_SESSION_TOPIC_ID_ERROR,
    )
)  # fmt: skip
"""Errors that pass: the same request may succeed a moment later."""

STALE_METADATA: frozenset[ErrorCode] = frozenset(
    (
        _E.UNKNOWN_TOPIC_OR_PARTITION, _E.LEADER_NOT_AVAILABLE, _E.NOT_LEADER_OR_FOLLOWER, _E.REPLICA_NOT_AVAILABLE,
        _E.NETWORK_EXCEPTION, _E.KAFKA_STORAGE_ERROR, _E.LISTENER_NOT_FOUND, _E.FENCED_LEADER_EPOCH, _E.UNKNOWN_LEADER_EPOCH,
        _E.UNKNOWN_TOPIC_ID, _E.INCONSISTENT_TOPIC_ID, _E.PREFERRED_LEADER_NOT_AVAILABLE, _E.ELIGIBLE_LEADERS_NOT_AVAILABLE,
    )
)  # fmt: skip
"""Errors that say: what this client knows of the cluster is out of date."""

ADVICE: dict[ErrorCode, str] = {
    _E.UNKNOWN_TOPIC_OR_PARTITION: "Create the topic first, or let the broker do it (auto.create.topics.enable=true).",
    _E.UNKNOWN_TOPIC_ID: "The topic was deleted, perhaps made again: look it up anew.",
    _E.INVALID_TOPIC_EXCEPTION: "A topic's name has 1 to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-'.",
    _E.TOPIC_ALREADY_EXISTS: "Use it, pick another name, or delete it first.",
    _E.MESSAGE_TOO_LARGE: "Send smaller records, or raise max.message.bytes of the topic and max.request.size here.",
    _E.RECORD_LIST_TOO_LARGE: "Make batch.size smaller than the broker's segment.bytes.",
    _E.REQUEST_TIMED_OUT: "Look whether the brokers are reachable and how busy they are, then try again.",
    _E.NETWORK_EXCEPTION: "Look whether the broker runs and is reachable from here, then try again.",
    _E.NOT_ENOUGH_REPLICAS: "Bring replicas back, or lower min.insync.replicas of the topic.",
    _E.TOPIC_AUTHORIZATION_FAILED: "Ask for the right to use this topic.",
    _E.GROUP_AUTHORIZATION_FAILED: "Ask for the right to use this group.",
    _E.CLUSTER_AUTHORIZATION_FAILED: "Ask for the right to do this to the cluster.",
    _E.INVALID_PARTITIONS: "Partitions can only be added: name a count above the present one.",
    _E.INVALID_REPLICATION_FACTOR: "Name a factor from 1 up to the number of brokers.",
    _E.INVALID_CONFIG: "Correct the config that the message names.",
    _E.OFFSET_OUT_OF_RANGE: "Ask for an offset between the beginning and the end of the partition.",
    _E.UNSUPPORTED_VERSION: "The broker is older than this needs: use a newer one, or do without.",
    _E.NON_EMPTY_GROUP: "Stop the members of the group first.",
    _E.GROUP_ID_NOT_FOUND: "List the groups to see which there are.",
    _E.GROUP_SUBSCRIBED_TO_TOPIC: "Stop the members that read the topic first.",
    _E.PRODUCER_FENCED: "Another producer has taken this one's place: make a new one.",
    _E.INVALID_PRODUCER_EPOCH: "Another producer has taken this one's place: make a new one.",
    _E.OUT_OF_ORDER_SEQUENCE_NUMBER: "Records before these were lost: decide whether to send them again, with a new producer.",
    _E.INVALID_TIMESTAMP: "The record's time is too far from the broker's: see message.timestamp.before.max.ms and its sibling.",
    _E.INVALID_RECORD: "The broker refused the record: a compacted topic, for one, needs keys.",
    _E.UNSUPPORTED_COMPRESSION_TYPE: "Choose another compression.type.",
    _E.ELECTION_NOT_NEEDED: "Nothing is to be done: the partition has this leader already.",
    _E.UNKNOWN_MEMBER_ID: "The group has gone on without this member: it has to join again.",
    _E.SECURITY_DISABLED: "The broker runs without an authorizer.",
}


class ClientError(Exception):
    """The root of the family. `code` is Kafka's error, `advice` says what to do next."""

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
    """A config that does not exist, or cannot have this value."""

    default_code = ErrorCode.INVALID_CONFIG

    def __init__(self, message: str) -> None:
        super().__init__(message, advice="")


class BrokerError(ClientError):
    """A broker answered with an error code."""


class BrokerUnreachableError(ClientError):
    """No connection to a broker could be made."""

    default_code = ErrorCode.NETWORK_EXCEPTION


class BootstrapError(BrokerUnreachableError):
    """None of `bootstrap.servers` could be reached."""


class DisconnectedError(ClientError):
    """The connection ended before the answer came: whether the request was carried out is unknown."""

    default_code = ErrorCode.NETWORK_EXCEPTION


class ClientTimeoutError(ClientError):
    """What was asked for did not happen within its time."""

    default_code = ErrorCode.REQUEST_TIMED_OUT


class BufferExhaustedError(ClientTimeoutError):
    """`buffer.memory` stayed full for `max.block.ms`."""


class UnknownTopicOrPartitionError(BrokerError):
    """There is no such topic, or no such partition of it."""

    default_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class RecordTooLargeError(BrokerError):
    """A record that does not fit into a request, or into what the topic allows."""

    default_code = ErrorCode.MESSAGE_TOO_LARGE


class ProducerFencedError(BrokerError):
    """Another producer has taken this one's place."""

    default_code = ErrorCode.PRODUCER_FENCED


class OutOfOrderSequenceError(BrokerError):
    """The broker misses records that came before these."""

    default_code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class UnsupportedVersionError(ClientError):
    """The broker does not speak an API, or no version of it that this client speaks."""

    default_code = ErrorCode.UNSUPPORTED_VERSION


class ClientClosedError(ClientError):
    """The client was closed."""

    def __init__(self, message: str = "The client is closed.") -> None:
        super().__init__(message, advice="Make a new one.")


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
    """A number that a newer broker sends and this client does not know is an unknown error."""
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def broker_error(number: int, message: str | None = None, *, about: str = "") -> BrokerError:
    """The exception for an error code in an answer; `about` names what it is about, for example "topic 'orders'"."""
    code = error_code(number)
    text = message or code.name.replace("_", " ").capitalize()
    if not text.endswith((".", "!", "?")):
        text += "."
    shown = code.name if code != ErrorCode.UNKNOWN_SERVER_ERROR or number == -1 else f"error {number}"
    subject = f" ({about})" if about else ""
    return _CLASSES.get(code, BrokerError)(f"{shown}{subject}: {text}", code=code)


def raise_for(number: int, message: str | None = None, *, about: str = "") -> None:
    """Nothing for 0, else the exception."""
    if number:
        raise broker_error(number, message, about=about)
