"""Config entries match responses recorded from Apache Kafka 4.3."""

import json
import pathlib
import subprocess
import sys
from typing import Any

import pytest

from ottla.metadata.configs import BrokerLayers
from ottla.metadata.configs.describe import (
    ConfigEntry,
    created_topic_configs,
    describe_broker,
    describe_client_metrics,
    describe_cluster,
    describe_group,
    describe_topic,
)

RECORDED = json.loads((pathlib.Path(__file__).parents[2] / "data" / "describe_configs.json").read_text())
RESOURCES = [
    pytest.param(node, resource, id=f"{position}-{resource['type']}-{number}")
    for position, node in enumerate(RECORDED["nodes"])
    for number, resource in enumerate(node["resources"])
]


def layers(node: dict[str, Any]) -> BrokerLayers:
    return BrokerLayers(node["static"] | {"broker.id": node["static"]["node.id"]}, node["cluster"], node["broker"])


def describe(node: dict[str, Any], resource: dict[str, Any], names: list[str] | None = None) -> list[ConfigEntry]:
    match resource["type"]:
        case "topic":
            return describe_topic(resource["overrides"], layers(node), names)
        case "broker":
            return describe_broker(layers(node), names)
        case "cluster":
            return describe_cluster(layers(node), names)
        case "group":
            return describe_group(resource["overrides"], layers(node), names)
        case _:
            return describe_client_metrics(resource["overrides"], names)


def row(entry: ConfigEntry) -> list[Any]:
    synonyms = [[synonym.name, synonym.value, synonym.source] for synonym in entry.synonyms]
    return [entry.name, entry.value, entry.source, entry.read_only, entry.is_sensitive, entry.type, synonyms]


@pytest.mark.parametrize(("node", "resource"), RESOURCES)
def test_described_entries_match_kafka(node: dict[str, Any], resource: dict[str, Any]) -> None:
    assert [row(entry) for entry in describe(node, resource)] == resource["entries"]


@pytest.mark.parametrize(("node", "resource"), RESOURCES)
def test_names_select_entries(node: dict[str, Any], resource: dict[str, Any]) -> None:
    everything = describe(node, resource)
    chosen = everything[::3]
    assert describe(node, resource, []) == everything
    assert describe(node, resource, [entry.name for entry in chosen] + ["no.such.config"]) == chosen


@pytest.mark.parametrize("created", RECORDED["created"], ids=range(len(RECORDED["created"])))
def test_created_topic_configs_match_kafka(created: dict[str, Any]) -> None:
    entries = created_topic_configs(created["overrides"], layers(RECORDED["nodes"][created["node"]]))
    assert [
        [entry.name, entry.value, entry.source, entry.read_only, entry.is_sensitive] for entry in entries
    ] == created["entries"]


def test_every_config_has_one_sentence_of_documentation() -> None:
    """Only if requested, and for every config of the catalog."""
    node = RECORDED["nodes"][0]
    for resource in node["resources"]:
        assert {entry.documentation for entry in describe(node, resource)} == {None}
    entries = [
        *describe_topic({"internal.segment.bytes": "1"}, layers(node), documentation=True),
        *describe_broker(BrokerLayers(dict.fromkeys(("group.max.size",), "1")), documentation=True),
        *describe_group({}, layers(node), documentation=True),
        *describe_client_metrics({}, documentation=True),
        *describe_cluster(BrokerLayers({}, {"log.retention.ms": "5"}), documentation=True),
    ]
    for entry in entries:
        assert entry.documentation is not None, entry.name
        assert entry.documentation.endswith("."), entry.name
        assert "\n" not in entry.documentation


def test_documentation_covers_exactly_the_definitions() -> None:
    from ottla.metadata.configs import BROKER_CONFIGS
    from ottla.metadata.configs.documentation import broker_documentation

    assert sorted(broker_documentation()) == sorted(BROKER_CONFIGS)


def test_unknown_dynamic_config_has_no_documentation_or_value() -> None:
    (entry,) = describe_broker(BrokerLayers({}, {}, {"my.own": "secret"}), ["my.own"], documentation=True)
    assert (entry.value, entry.is_sensitive, entry.documentation, entry.is_default) == (None, True, None, False)


def test_config_reference_is_up_to_date() -> None:
    """`docs/CONFIGS.md` is what `tools/document_configs.py` writes."""
    root = pathlib.Path(__file__).parents[3]
    assert (
        subprocess.run([sys.executable, str(root / "tools" / "document_configs.py"), "--check"], check=False).returncode
        == 0
    )


def test_supported_configs_exist() -> None:
    from ottla.metadata.configs import BROKER_CONFIGS, TOPIC_CONFIGS, support

    assert sorted(support.SUPPORTED_BROKER_CONFIGS - BROKER_CONFIGS.keys()) == []
    assert sorted(support.SUPPORTED_TOPIC_CONFIGS - TOPIC_CONFIGS.keys()) == []
    assert sorted(support.INAPPLICABLE_CONFIGS - BROKER_CONFIGS.keys()) == []
    assert sorted(support.INAPPLICABLE_CONFIGS & support.SUPPORTED_BROKER_CONFIGS) == []
