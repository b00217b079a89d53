"""Dynamic configs: AlterConfigs, IncrementalAlterConfigs, and configs of new topics."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ottla.base.decision import Decision
from ottla.base.errors import ApiError, ErrorCode
from ottla.controller.config_checks import (
    MIN_INSYNC_REPLICAS,
    check_broker_configs,
    check_min_insync_change,
    check_resource_configs,
    check_topic_configs,
    list_default,
)
from ottla.controller.elections import ElectionRules, RulesOf
from ottla.controller.settings import ControllerSettings, check_record_count
from ottla.metadata.configs import TOPIC_CONFIGS, parse
from ottla.metadata.image import ClusterImage, ConfigResource, ResourceType
from ottla.wire.messages import alter_configs as legacy
from ottla.wire.messages import incremental_alter_configs as incremental
from ottla.wire.messages.create_topics import CreatableTopic
from ottla.wire.records.metadata import ClearElrRecord, ConfigRecord

OP_SET, OP_DELETE, OP_APPEND, OP_SUBTRACT = range(4)
UNCLEAN_ELECTION = "unclean.leader.election.enable"

Changes = dict[str, str | None]
"""New values by name; None deletes the value."""
ChangesOf = Callable[[ConfigResource, Any], Changes]
"""Returns the changes requested for a resource. Raises ApiError if they are invalid."""


def new_topic_config_records(
    image: ClusterImage, topic: CreatableTopic, settings: ControllerSettings
) -> tuple[dict[str, str], list[ConfigRecord]]:
    """Return a new topic's overrides and their records. If a name is repeated the last value wins."""
    missing = [config.name for config in topic.configs if config.value is None]
    if missing:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"configs without a value: {', '.join(missing)}")
    overrides = {config.name: config.value for config in topic.configs if config.value is not None}
    check_topic_configs(image, overrides, settings)
    return overrides, [ConfigRecord(ResourceType.TOPIC, topic.name, name, value) for name, value in overrides.items()]


def incremental_alter_configs(
    image: ClusterImage, request: incremental.IncrementalAlterConfigsRequest, settings: ControllerSettings
) -> Decision:
    def changes_of(resource: ConfigResource, requested: Any) -> Changes:
        stored = image.configs.get(resource, {})
        return {
            config.name: _apply_operation(resource, config, stored.get(config.name)) for config in requested.configs
        }

    records, results = _alter(image, request.resources, settings, changes_of, nullable_operation=OP_DELETE)
    responses = [
        incremental.AlterConfigsResourceResponse(
            error.code, error.message, requested.resource_type, requested.resource_name
        )
        for requested, error in results
    ]
    return Decision(
        () if request.validate_only else tuple(records), incremental.IncrementalAlterConfigsResponse(0, responses)
    )


def alter_configs(image: ClusterImage, request: legacy.AlterConfigsRequest, settings: ControllerSettings) -> Decision:
    """Replace all configs of each resource: configs that are not named are deleted."""

    def changes_of(resource: ConfigResource, requested: Any) -> Changes:
        changes: Changes = {config.name: config.value for config in requested.configs}
        return changes | {name: None for name in image.configs.get(resource, {}) if name not in changes}

    records, results = _alter(image, request.resources, settings, changes_of, nullable_operation=None)
    responses = [
        legacy.AlterConfigsResourceResponse(error.code, error.message, requested.resource_type, requested.resource_name)
        for requested, error in results
    ]
    return Decision(() if request.validate_only else tuple(records), legacy.AlterConfigsResponse(0, responses))


def _alter(
    image: ClusterImage,
    resources: Iterable[Any],
    settings: ControllerSettings,
    changes_of: ChangesOf,
    *,
    nullable_operation: int | None,
) -> tuple[list[Any], list[tuple[Any, ApiError]]]:
    """Apply each resource's changes completely or not at all. Results are in request order."""
    counts: dict[ConfigResource, int] = {}
    for requested in resources:
        resource = ConfigResource(requested.resource_type, requested.resource_name)
        counts[resource] = counts.get(resource, 0) + 1
    records: list[Any] = []
    cleared: list[ClearElrRecord] = []
    results = []
    for requested in resources:
        resource = ConfigResource(requested.resource_type, requested.resource_name)
        try:
            if counts[resource] > 1:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST,
                    f"duplicate resource in request: type {resource.type}, name {resource.name!r}",
                )
            _check_entries(requested, nullable_operation)
            if resource.type == ResourceType.BROKER_LOGGER and nullable_operation is not None:
                _check_broker_loggers(resource, requested, settings)
                changed: list[ConfigRecord] = []
            else:
                changed = _config_records(image, resource, requested, changes_of, settings)
        except ApiError as error:
            results.append((requested, error))
        else:
            records += changed
            cleared += _clear_elr(image, resource, changed)
            results.append((requested, ApiError(ErrorCode.NONE)))
    try:
        check_record_count(records)
    except ApiError as error:
        return [], [(requested, error) for requested in resources]
    return records + cleared, results


def _check_entries(requested: Any, nullable_operation: int | None) -> None:
    names = [config.name for config in requested.configs]
    if len(set(names)) != len(names):
        raise ApiError(ErrorCode.INVALID_REQUEST, "duplicate config name in resource")
    missing = [
        config.name
        for config in requested.configs
        if config.value is None and (nullable_operation is None or config.config_operation != nullable_operation)
    ]
    if missing:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"configs without a value: {', '.join(missing)}")


def _check_broker_loggers(resource: ConfigResource, requested: Any, settings: ControllerSettings) -> None:
    if resource.name != str(settings.node_id):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"unknown broker {resource.name!r}; loggers can be set on {settings.node_id} only",
        )
    if requested.configs:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"unknown logger {requested.configs[0].name!r}")


def _config_records(
    image: ClusterImage, resource: ConfigResource, requested: Any, changes_of: ChangesOf, settings: ControllerSettings
) -> list[ConfigRecord]:
    """Return the records of one resource.

    A broker's unchanged values are written too: they make it reload its key stores.
    """
    if resource.type not in (ResourceType.TOPIC, ResourceType.BROKER, ResourceType.GROUP, ResourceType.CLIENT_METRICS):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"unsupported resource type {resource.type}")
    is_broker = resource.type == ResourceType.BROKER
    if is_broker and resource.name:
        _check_broker_name(image, resource.name)
    changes = changes_of(resource, requested)
    stored = image.configs.get(resource, {})
    changes = {name: value for name, value in changes.items() if is_broker or value != stored.get(name)}
    after = {name: value for name, value in {**stored, **changes}.items() if value is not None}
    if is_broker:
        check_broker_configs(image, resource, after, settings)
    check_resource_configs(image, resource, after, settings)
    check_min_insync_change(image, resource, changes)
    return [ConfigRecord(resource.type, resource.name, name, value) for name, value in changes.items()]


def _check_broker_name(image: ClusterImage, name: str) -> None:
    digits = name[1:] if name[:1] in ("-", "+") else name
    if not digits.isdecimal() or not digits.isascii() or int(name) not in image.brokers:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{name!r} is not the id of a registered broker")


def _apply_operation(resource: ConfigResource, config: incremental.AlterableConfig, current: str | None) -> str | None:
    operation = config.config_operation
    if operation == OP_SET:
        return config.value
    if operation == OP_DELETE:
        return None
    if operation not in (OP_APPEND, OP_SUBTRACT):
        # As in Kafka: the controller fails without a message, the broker's own check has one.
        if resource.type == ResourceType.BROKER:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"unknown config operation {operation}")
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    default = list_default(resource, config.name)
    members = [member for member in ((default if current is None else current) or "").split(",") if member]
    assert config.value is not None
    for member in _split(config.value):
        if operation == OP_APPEND and member not in members:
            members.append(member)
        elif operation == OP_SUBTRACT and member in members:
            members.remove(member)
    return ",".join(members)


def _split(text: str) -> list[str]:
    """Split like Java's `String.split`: drop trailing empty members; a text without a comma is one member."""
    members = text.split(",")
    while len(members) > 1 and not members[-1]:
        members.pop()
    return [] if members == [""] and text else members


def _clear_elr(image: ClusterImage, resource: ConfigResource, changed: list[ConfigRecord]) -> list[ClearElrRecord]:
    """Clear eligible leader replicas if min.insync.replicas changed: they were determined with the old value."""
    if not image.elr_enabled or not any(record.name == MIN_INSYNC_REPLICAS for record in changed):
        return []
    return [ClearElrRecord(resource.name if resource.type == ResourceType.TOPIC else "")]


def election_rules(image: ClusterImage, settings: ControllerSettings) -> RulesOf:
    """Return a lookup of the election-related configs by topic."""
    broker = settings.layers(image).merged()

    def value(overrides: Mapping[str, str], name: str) -> Any:
        definition = TOPIC_CONFIGS[name]
        text = overrides.get(name, broker.get(name, definition.default))
        assert text is not None
        return parse(definition, text)

    def rules(topic: str) -> ElectionRules:
        overrides = image.topic_configs(topic)
        return ElectionRules(value(overrides, MIN_INSYNC_REPLICAS), value(overrides, UNCLEAN_ELECTION))

    return rules
