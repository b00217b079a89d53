"""AlterConfigs and IncrementalAlterConfigs. The error codes were recorded from Apache Kafka 4.3."""

from typing import Any

import pytest

from ottla.base.decision import Decision
from ottla.base.errors import ErrorCode
from ottla.metadata.image import ConfigResource, ResourceType
from ottla.wire.messages import alter_configs as legacy
from ottla.wire.messages import incremental_alter_configs as incremental
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.records.metadata import ClearElrRecord, ConfigRecord, FeatureLevelRecord

TOPIC, BROKER, LOGGER, METRICS, GROUP = (
    ResourceType.TOPIC,
    ResourceType.BROKER,
    ResourceType.BROKER_LOGGER,
    ResourceType.CLIENT_METRICS,
    ResourceType.GROUP,
)
SET, DELETE, APPEND, SUBTRACT = range(4)
Operation = tuple[str, int, str | None]


@pytest.fixture
def topics(cluster: Any) -> Any:
    """A cluster with topics a and b."""
    cluster.do(CreateTopicsRequest([CreatableTopic("a", 1, 1), CreatableTopic("b", 1, 1)]))
    return cluster


def change(
    *resources: tuple[int, str, list[Operation]], validate_only: bool = False
) -> incremental.IncrementalAlterConfigsRequest:
    return incremental.IncrementalAlterConfigsRequest(
        [
            incremental.AlterConfigsResource(
                resource_type, name, [incremental.AlterableConfig(*operation) for operation in operations]
            )
            for resource_type, name, operations in resources
        ],
        validate_only,
    )


def replace(
    *resources: tuple[int, str, list[tuple[str, str | None]]], validate_only: bool = False
) -> legacy.AlterConfigsRequest:
    return legacy.AlterConfigsRequest(
        [
            legacy.AlterConfigsResource(resource_type, name, [legacy.AlterableConfig(*pair) for pair in pairs])
            for resource_type, name, pairs in resources
        ],
        validate_only,
    )


def outcomes(decision: Decision) -> list[tuple[int, bool]]:
    return [(response.error_code, response.error_message is not None) for response in decision.response.responses]


def test_value_is_set_and_deleted(topics: Any) -> None:
    """An unchanged value is not written."""
    request = change((TOPIC, "a", [("retention.ms", SET, "77")]))
    response = incremental.IncrementalAlterConfigsResponse(
        0, [incremental.AlterConfigsResourceResponse(0, None, TOPIC, "a")]
    )
    assert topics.do(request) == Decision((ConfigRecord(TOPIC, "a", "retention.ms", "77"),), response)
    assert topics.image.topic_configs("a") == {"retention.ms": "77"}
    assert topics.do(request) == Decision((), response)
    removal = change((TOPIC, "a", [("retention.ms", DELETE, "ignored")]))
    assert topics.do(removal) == Decision((ConfigRecord(TOPIC, "a", "retention.ms", None),), response)
    assert topics.do(removal) == Decision((), response)
    assert topics.do(change((TOPIC, "a", [("no.such.config", DELETE, None)]))) == Decision((), response)


def test_validate_only_writes_nothing(topics: Any) -> None:
    decision = topics.decide(change((TOPIC, "a", [("retention.ms", SET, "77")]), validate_only=True))
    assert (decision.records, outcomes(decision)) == ((), [(ErrorCode.NONE, False)])


@pytest.mark.parametrize(
    ("stored", "operation", "expected"),
    [
        (None, ("cleanup.policy", APPEND, "compact"), "delete,compact"),
        ("delete,compact", ("cleanup.policy", APPEND, "compact"), "delete,compact"),
        ("delete,compact", ("cleanup.policy", SUBTRACT, "delete"), "compact"),
        ("compact", ("cleanup.policy", SUBTRACT, "compact"), ""),
        ("compact", ("cleanup.policy", SUBTRACT, "delete"), "compact"),
        ("compact", ("cleanup.policy", APPEND, ","), "compact"),
        ("compact", ("cleanup.policy", APPEND, "compact,delete"), "compact,delete"),
        (None, ("cleanup.policy", APPEND, " compact"), "delete, compact"),
        (None, ("leader.replication.throttled.replicas", APPEND, "0:1"), "0:1"),
    ],
)
def test_append_and_subtract_of_list_config(
    topics: Any, stored: str | None, operation: Operation, expected: str
) -> None:
    """Starts from the current value or the default; an empty list is still a value."""
    name = operation[0]
    if stored is not None:
        topics.do(change((TOPIC, "a", [(name, SET, stored)])))
    assert outcomes(topics.do(change((TOPIC, "a", [operation])))) == [(ErrorCode.NONE, False)]
    assert topics.image.topic_configs("a").get(name, stored) == expected


@pytest.mark.parametrize(
    ("resource", "code", "has_message"),
    [
        ((TOPIC, "a", [("retention.ms", SET, None)]), ErrorCode.INVALID_REQUEST, True),
        ((TOPIC, "a", [("retention.ms", APPEND, "8")]), ErrorCode.INVALID_CONFIG, True),
        ((TOPIC, "a", [("cleanup.policy", APPEND, None)]), ErrorCode.INVALID_REQUEST, True),
        ((TOPIC, "a", [("cleanup.policy", APPEND, "")]), ErrorCode.INVALID_CONFIG, True),
        ((TOPIC, "a", [("cleanup.policy", SUBTRACT, "")]), ErrorCode.NONE, False),
        ((TOPIC, "a", [("cleanup.policy", SET, "foo")]), ErrorCode.INVALID_CONFIG, True),
        ((TOPIC, "a", [("foo", SET, "x")]), ErrorCode.INVALID_CONFIG, True),
        ((TOPIC, "a", [("foo", APPEND, "x")]), ErrorCode.INVALID_CONFIG, True),
        ((TOPIC, "a", [("retention.ms", 9, "8")]), ErrorCode.UNKNOWN_SERVER_ERROR, False),
        ((TOPIC, "a", [("retention.ms", SET, "1"), ("retention.ms", SET, "2")]), ErrorCode.INVALID_REQUEST, True),
        ((TOPIC, "a", [("min.insync.replicas", SET, "0")]), ErrorCode.INVALID_CONFIG, True),
        ((TOPIC, "none", [("retention.ms", SET, "1")]), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True),
        ((TOPIC, "none", []), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True),
        ((TOPIC, "none", [("foo", SET, "1")]), ErrorCode.INVALID_CONFIG, True),
        ((TOPIC, "", [("retention.ms", SET, "1")]), ErrorCode.INVALID_REQUEST, True),
        ((TOPIC, "..", [("retention.ms", SET, "1")]), ErrorCode.INVALID_TOPIC_EXCEPTION, True),
        ((9, "a", [("retention.ms", SET, "1")]), ErrorCode.INVALID_REQUEST, True),
        ((0, "a", [("retention.ms", SET, "1")]), ErrorCode.INVALID_REQUEST, True),
        ((LOGGER, "1", [("kafka", SET, "INFO")]), ErrorCode.INVALID_CONFIG, True),
        ((LOGGER, "2", [("kafka", SET, "INFO")]), ErrorCode.INVALID_REQUEST, True),
        ((LOGGER, "", [("kafka", SET, "INFO")]), ErrorCode.INVALID_REQUEST, True),
        ((LOGGER, "1", []), ErrorCode.NONE, False),
        ((METRICS, "m", [("interval.ms", SET, "1000")]), ErrorCode.NONE, False),
        ((METRICS, "m", [("foo", SET, "1000")]), ErrorCode.INVALID_REQUEST, True),
        ((METRICS, "m", [("interval.ms", SET, "x")]), ErrorCode.INVALID_CONFIG, True),
        ((METRICS, "m", [("metrics", APPEND, "a.b")]), ErrorCode.INVALID_CONFIG, True),
        ((METRICS, "", [("interval.ms", SET, "1000")]), ErrorCode.INVALID_REQUEST, True),
        ((GROUP, "g", [("consumer.session.timeout.ms", SET, "50000")]), ErrorCode.NONE, False),
        ((GROUP, "g", [("foo", SET, "5")]), ErrorCode.INVALID_CONFIG, True),
        ((GROUP, "g", [("consumer.session.timeout.ms", SET, "x")]), ErrorCode.INVALID_CONFIG, True),
        ((GROUP, "", [("consumer.session.timeout.ms", SET, "50000")]), ErrorCode.INVALID_REQUEST, True),
        ((BROKER, "1", [("log.cleaner.threads", SET, "2")]), ErrorCode.NONE, False),
        ((BROKER, "", [("log.cleaner.threads", SET, "2")]), ErrorCode.NONE, False),
        ((BROKER, "2", [("log.cleaner.threads", SET, "2")]), ErrorCode.INVALID_REQUEST, True),
        ((BROKER, "x", [("log.cleaner.threads", SET, "2")]), ErrorCode.INVALID_REQUEST, True),
        ((BROKER, "-1", [("log.cleaner.threads", SET, "2")]), ErrorCode.INVALID_REQUEST, True),
        ((BROKER, "1", [("broker.id", SET, "2")]), ErrorCode.INVALID_REQUEST, True),
        ((BROKER, "", [("broker.id", SET, "2")]), ErrorCode.INVALID_REQUEST, True),
        ((BROKER, "1", [("broker.id", DELETE, None)]), ErrorCode.NONE, False),
        ((BROKER, "", [("num.io.threads", SET, "x")]), ErrorCode.INVALID_REQUEST, True),
        ((BROKER, "1", [("num.io.threads", SET, "3")]), ErrorCode.INVALID_REQUEST, True),
        ((BROKER, "1", [("num.io.threads", SET, "4")]), ErrorCode.NONE, False),
        ((BROKER, "1", [("num.io.threads", SET, "16")]), ErrorCode.NONE, False),
        ((BROKER, "1", [("num.io.threads", SET, "17")]), ErrorCode.INVALID_REQUEST, True),
        ((BROKER, "1", [("num.network.threads", SET, "9")]), ErrorCode.INVALID_REQUEST, True),
        ((BROKER, "1", [("background.threads", SET, "100")]), ErrorCode.INVALID_REQUEST, True),
        ((BROKER, "1", [("num.replica.fetchers", SET, "9")]), ErrorCode.INVALID_REQUEST, True),
        ((BROKER, "1", [("log.cleaner.threads", SET, "9")]), ErrorCode.INVALID_REQUEST, True),
        ((BROKER, "1", [("num.io.threads", 9, "8")]), ErrorCode.INVALID_REQUEST, True),
        ((BROKER, "1", [("num.io.threads", APPEND, "8")]), ErrorCode.INVALID_CONFIG, True),
        ((BROKER, "", [("foo.bar", SET, "x")]), ErrorCode.NONE, False),
        ((BROKER, "1", [("log.retention.ms", SET, "100")]), ErrorCode.NONE, False),
        ((BROKER, "", [("listeners", SET, "PLAINTEXT://:1")]), ErrorCode.INVALID_REQUEST, True),
        ((BROKER, "", [("cordoned.log.dirs", SET, "*")]), ErrorCode.INVALID_REQUEST, True),
        ((BROKER, "", [("log.cleanup.policy", APPEND, "compact")]), ErrorCode.NONE, False),
        ((BROKER, "", [("log.cleanup.policy", SET, "bad")]), ErrorCode.INVALID_REQUEST, True),
        ((BROKER, "", [("min.insync.replicas", DELETE, None)]), ErrorCode.INVALID_CONFIG, True),
        ((BROKER, "", [("min.insync.replicas", SET, "2")]), ErrorCode.NONE, False),
        ((BROKER, "", [("min.insync.replicas", SET, "0")]), ErrorCode.INVALID_REQUEST, True),
        ((BROKER, "1", [("min.insync.replicas", SET, "2")]), ErrorCode.INVALID_CONFIG, True),
        ((BROKER, "1", [("min.insync.replicas", DELETE, None)]), ErrorCode.INVALID_CONFIG, True),
    ],
)
def test_incremental_alter_errors(topics: Any, resource: Any, code: ErrorCode, has_message: bool) -> None:
    decision = topics.decide(change(resource))
    assert outcomes(decision) == [(code, has_message)]
    assert code == ErrorCode.NONE or decision.records == ()


@pytest.mark.parametrize(
    ("resource", "code", "has_message"),
    [
        ((TOPIC, "a", [("retention.ms", "5")]), ErrorCode.NONE, False),
        ((TOPIC, "a", []), ErrorCode.NONE, False),
        ((TOPIC, "a", [("retention.ms", None)]), ErrorCode.INVALID_REQUEST, True),
        ((TOPIC, "a", [("foo", "5")]), ErrorCode.INVALID_CONFIG, True),
        ((TOPIC, "none", [("retention.ms", "5")]), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True),
        ((TOPIC, "a", [("retention.ms", "5"), ("retention.ms", "6")]), ErrorCode.INVALID_REQUEST, True),
        ((TOPIC, "", [("retention.ms", "5")]), ErrorCode.INVALID_REQUEST, True),
        ((TOPIC, "..", []), ErrorCode.INVALID_TOPIC_EXCEPTION, True),
        ((7, "x", []), ErrorCode.INVALID_REQUEST, True),
        ((LOGGER, "1", []), ErrorCode.INVALID_REQUEST, True),
        ((BROKER, "1", [("foo", "5")]), ErrorCode.NONE, False),
        ((BROKER, "2", [("log.retention.ms", "500000")]), ErrorCode.INVALID_REQUEST, True),
        ((BROKER, "", [("log.retention.ms", "500000")]), ErrorCode.INVALID_CONFIG, True),
        ((BROKER, "", []), ErrorCode.INVALID_CONFIG, True),
    ],
)
def test_legacy_alter_errors(topics: Any, resource: Any, code: ErrorCode, has_message: bool) -> None:
    """With eligible leader replicas the new cluster configs must include min.insync.replicas."""
    decision = topics.decide(replace(resource))
    assert outcomes(decision) == [(code, has_message)]
    assert code == ErrorCode.NONE or decision.records == ()


def test_legacy_alter_replaces_all_configs(topics: Any) -> None:
    """New values are written before deletions."""
    topics.do(change((TOPIC, "a", [("cleanup.policy", SET, "compact"), ("retention.ms", SET, "1")])))
    decision = topics.do(replace((TOPIC, "a", [("retention.bytes", "5"), ("retention.ms", "1")]), (TOPIC, "none", [])))
    assert decision == Decision(
        (ConfigRecord(TOPIC, "a", "retention.bytes", "5"), ConfigRecord(TOPIC, "a", "cleanup.policy", None)),
        legacy.AlterConfigsResponse(
            0,
            [
                legacy.AlterConfigsResourceResponse(0, None, TOPIC, "a"),
                legacy.AlterConfigsResourceResponse(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, decision.response.responses[1].error_message, TOPIC, "none"
                ),
            ],
        ),
    )


def test_unchanged_broker_configs_are_written(topics: Any) -> None:
    """They make the broker reload the files that the value names."""
    for _ in range(2):
        assert topics.do(change((BROKER, "1", [("log.retention.ms", SET, "1000")]))).records == (
            ConfigRecord(BROKER, "1", "log.retention.ms", "1000"),
        )
    assert topics.do(replace((BROKER, "1", []))).records == (ConfigRecord(BROKER, "1", "log.retention.ms", None),)


@pytest.mark.parametrize("make_request", [change, replace])
def test_duplicate_resource_is_rejected_each_time(topics: Any, make_request: Any) -> None:
    """Results are in request order; other resources are not affected."""
    decision = topics.decide(make_request((TOPIC, "a", []), (TOPIC, "b", []), (TOPIC, "a", []), (TOPIC, "none", [])))
    assert outcomes(decision) == [
        (ErrorCode.INVALID_REQUEST, True),
        (ErrorCode.NONE, False),
        (ErrorCode.INVALID_REQUEST, True),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True),
    ]


def test_min_insync_change_clears_elr(topics: Any) -> None:
    """ClearElrRecords come after all config records, for one topic or for all."""
    decision = topics.do(
        change(
            (TOPIC, "b", [("min.insync.replicas", SET, "1")]),
            (TOPIC, "a", [("min.insync.replicas", SET, "3"), ("retention.ms", SET, "44")]),
            (BROKER, "", [("min.insync.replicas", SET, "2")]),
        )
    )
    assert decision.records == (
        ConfigRecord(TOPIC, "b", "min.insync.replicas", "1"),
        ConfigRecord(TOPIC, "a", "min.insync.replicas", "3"),
        ConfigRecord(TOPIC, "a", "retention.ms", "44"),
        ConfigRecord(BROKER, "", "min.insync.replicas", "2"),
        ClearElrRecord("b"),
        ClearElrRecord("a"),
        ClearElrRecord(""),
    )
    assert topics.image.configs[ConfigResource(BROKER, "")] == {"min.insync.replicas": "2"}


def test_min_insync_per_broker_without_elr(topics: Any) -> None:
    topics.replay(Decision((FeatureLevelRecord("eligible.leader.replicas.version", 0),)))
    decision = topics.do(
        change(
            (BROKER, "", [("min.insync.replicas", DELETE, None)]), (BROKER, "1", [("min.insync.replicas", SET, "2")])
        )
    )
    assert decision.records == (
        ConfigRecord(BROKER, "", "min.insync.replicas", None),
        ConfigRecord(BROKER, "1", "min.insync.replicas", "2"),
    )


def test_alter_with_too_many_records_fails(topics: Any) -> None:
    pairs: list[Operation] = [(f"plugin.{number}", SET, "x") for number in range(10_001)]
    decision = topics.decide(change((BROKER, "1", pairs), (TOPIC, "a", [("retention.ms", SET, "1")])))
    assert (decision.records, outcomes(decision)) == ((), [(ErrorCode.POLICY_VIOLATION, True)] * 2)


def test_topic_configs_are_validated_together(topics: Any) -> None:
    """Current and new values together."""
    topics.do(change((TOPIC, "a", [("max.compaction.lag.ms", SET, "10")])))
    assert outcomes(topics.decide(change((TOPIC, "a", [("min.compaction.lag.ms", SET, "11")])))) == [
        (ErrorCode.INVALID_CONFIG, True)
    ]
    assert outcomes(topics.decide(change((TOPIC, "a", [("min.compaction.lag.ms", SET, "10")])))) == [
        (ErrorCode.NONE, False)
    ]
