"""DescribeConfigs responds as recorded from Apache Kafka 4.3."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.base.ids import Uuid
from ottla.io.clock import RealClock
from ottla.metadata.image import CLUSTER_DEFAULTS, ClusterImage, ConfigResource, ResourceType, TopicImage
from ottla.runtime.broker import Broker
from ottla.runtime.slice_scheduler import SliceScheduler
from ottla.server.api import describe_configs
from ottla.server.api.describe_configs import handle
from ottla.wire.errors import MalformedMessage
from ottla.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from ottla.wire.schema import encode, run_to_end

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = (kind.value for kind in ResourceType)


@pytest.fixture
async def broker() -> Broker:
    topic = TopicImage("a", Uuid(bytes(16)), {})
    image = ClusterImage(
        cluster_id="c",
        topics_by_name={"a": topic},
        configs={
            ConfigResource(TOPIC, "a"): {"retention.ms": "1000"},
            ConfigResource(GROUP, "g"): {"share.session.timeout.ms": "46000"},
            CLUSTER_DEFAULTS: {"min.insync.replicas": "1"},
        },
    )
    settings = SimpleNamespace(
        node_id=1, static_configs={"node.id": "1", "broker.id": "1", "ssl.keystore.password": "x"}
    )
    return cast(
        Broker,
        SimpleNamespace(
            image=image, settings=settings, scheduler=SliceScheduler(asyncio.get_running_loop(), RealClock())
        ),
    )


def describe(
    broker: Broker, *resources: tuple[int, str, list[str] | None], version: int = 4, **options: bool
) -> list[DescribeConfigsResult]:
    request = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(*resource) for resource in resources], **options
    )
    response = run_to_end(cast(Any, handle(broker, cast(RequestContext, None), request, version)))
    assert isinstance(response, DescribeConfigsResponse)
    assert response.throttle_time_ms == 0
    return response.results


@pytest.mark.parametrize(
    ("kind", "name", "code", "has_message"),
    [
        (TOPIC, "nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False),
        (TOPIC, "bad name!", ErrorCode.INVALID_TOPIC_EXCEPTION, True),
        (TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION, True),
        (BROKER, "2", ErrorCode.INVALID_REQUEST, True),
        (BROKER, "x", ErrorCode.INVALID_REQUEST, True),
        (BROKER, " 1", ErrorCode.INVALID_REQUEST, True),
        (BROKER, "1" * 5000, ErrorCode.INVALID_REQUEST, True),
        (LOGGER, "1", ErrorCode.INVALID_REQUEST, True),
        (CLIENT_METRICS, "", ErrorCode.INVALID_REQUEST, True),
        (GROUP, "", ErrorCode.INVALID_REQUEST, True),
        (0, "a", ErrorCode.INVALID_REQUEST, True),
        (3, "a", ErrorCode.INVALID_REQUEST, True),
        (99, "a", ErrorCode.INVALID_REQUEST, True),
        (-1, "a", ErrorCode.INVALID_REQUEST, True),
    ],
)
def test_errors(broker: Broker, kind: int, name: str, code: ErrorCode, has_message: bool) -> None:
    (result,) = describe(broker, (kind, name, None))
    assert (result.resource_type, result.resource_name, result.error_code, result.configs) == (kind, name, code, [])
    assert result.error_message is not None
    assert bool(result.error_message) is has_message


@pytest.mark.parametrize(
    ("kind", "name", "names", "count"),
    [
        (TOPIC, "a", None, 33),
        (TOPIC, "a", [], 33),
        (TOPIC, "a", ["retention.ms", "nope", "internal.segment.bytes", "retention.ms"], 1),
        (BROKER, "1", None, 340),
        (BROKER, "01", ["log.dir"], 1),
        (BROKER, "+1", ["log.dir"], 1),
        (BROKER, "1", ["unstable.api.versions.enable", "log.dir", "leader.replication.throttled.rate"], 1),
        (BROKER, "", None, 1),
        (CLIENT_METRICS, "any", None, 3),
        (CLIENT_METRICS, "any", ["nope"], 0),
        (GROUP, "any", None, 17),
    ],
)
def test_number_of_configs(broker: Broker, kind: int, name: str, names: list[str] | None, count: int) -> None:
    (result,) = describe(broker, (kind, name, names))
    assert (result.error_code, result.error_message, len(result.configs)) == (0, "", count)


def test_synonyms_and_documentation_are_returned_on_request_only(broker: Broker) -> None:
    (plain,) = describe(broker, (TOPIC, "a", ["retention.ms"]))
    expected: dict[str, Any] = {
        "name": "retention.ms",
        "value": "1000",
        "read_only": False,
        "config_source": 1,
        "is_sensitive": False,
    }
    assert plain.configs == [DescribeConfigsResourceResult(**expected, synonyms=[], config_type=5, documentation=None)]
    (full,) = describe(broker, (TOPIC, "a", ["retention.ms"]), include_synonyms=True, include_documentation=True)
    assert full.configs[0].synonyms == [DescribeConfigsSynonym("retention.ms", "1000", 1)]
    assert (
        full.configs[0].documentation
        == "Segments whose newest record is older than this are deleted; -1 means no limit."
    )


def test_results_keep_the_order_of_resources(broker: Broker) -> None:
    results = describe(
        broker, (TOPIC, "a", ["retention.ms"]), (TOPIC, "a", ["segment.ms"]), (TOPIC, "nope", None), (GROUP, "g", None)
    )
    assert [(result.error_code, len(result.configs)) for result in results] == [(0, 1), (0, 1), (3, 0), (0, 17)]
    sources = {entry.name: (entry.value, entry.config_source) for entry in results[3].configs}
    assert sources["share.session.timeout.ms"] == ("46000", 8)
    assert describe(broker) == []


def test_secrets_are_not_returned(broker: Broker) -> None:
    (result,) = describe(broker, (BROKER, "1", ["ssl.keystore.password"]), include_synonyms=True)
    (entry,) = result.configs
    assert (entry.value, entry.is_sensitive, entry.synonyms) == (
        None,
        True,
        [DescribeConfigsSynonym("ssl.keystore.password", None, 4)],
    )


@pytest.mark.parametrize("version", [1, 3, 4])
@pytest.mark.parametrize("keys", [None, ["retention.ms", "node.id"]])
async def test_many_resources_get_the_same_results_as_one(broker: Broker, version: int, keys: list[str] | None) -> None:
    """With configs of one topic, or of none, with errors between them, and with duplicates."""
    names = [
        *((TOPIC, name) for name in ("a", "b", "c", "no", "b")),
        *((BROKER, name) for name in ("1", "2", "")),
        (GROUP, "g"),
    ]
    resources = [(kind, name, keys) for kind, name in names]
    broker.image.topics_by_name.update({name: TopicImage(name, Uuid(name.encode() * 16), {}) for name in "bc"})  # type: ignore[attr-defined]
    options = {"include_synonyms": True, "include_documentation": version >= 3}
    alone = [result for resource in resources for result in describe(broker, resource, version=version, **options)]
    request = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(*resource) for resource in resources], **options
    )
    body, errors = run_to_end(cast(Any, handle(broker, cast(RequestContext, None), request, version)))
    plain = encode(DescribeConfigsResponse(results=alone), version)
    assert body == plain
    assert errors == 2


async def test_response_size_is_limited(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(describe_configs, "RESPONSE_BYTES_MAX", 100_000)
    request = DescribeConfigsRequest(resources=[DescribeConfigsResource(BROKER, "1", None)] * 100)
    with pytest.raises(MalformedMessage):
        run_to_end(cast(Any, handle(broker, cast(RequestContext, None), request, 4)))
