"""Validation of configs in AlterConfigs, IncrementalAlterConfigs and CreateTopics."""

import re
from collections.abc import Mapping

from ottla.base.errors import ApiError, ErrorCode
from ottla.controller.settings import ControllerSettings
from ottla.metadata.configs import (
    BROKER_CONFIGS,
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    TOPIC_CONFIGS,
    ConfigType,
    Definition,
    InvalidConfig,
    broker_definition,
    broker_value,
    parse,
    validate_topic_configs,
)
from ottla.metadata.image import ClusterImage, ConfigResource, ResourceType
from ottla.metadata.topic_names import check_topic_name

MIN_INSYNC_REPLICAS = "min.insync.replicas"
_DEFINITIONS: dict[int, Mapping[str, Definition]] = {
    ResourceType.TOPIC: TOPIC_CONFIGS,
    ResourceType.BROKER: BROKER_CONFIGS,
    ResourceType.GROUP: GROUP_CONFIGS,
    ResourceType.CLIENT_METRICS: CLIENT_METRICS_CONFIGS,
}
_THREAD_COUNTS = (
    "background.threads",
    "log.cleaner.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
)
_LISTENER_PREFIX = "listener.name."
_GROUP_LIMIT_NAMES = {"streams.num.standby.replicas": "standby.replicas"}
"""Group configs whose broker limits are named differently."""
_CLIENT_MATCH_FIELDS = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
INTERVAL_MIN_MS = 100
INTERVAL_MAX_MS = 3_600_000
"""Limits of the push interval of a client-metrics subscription."""


def list_default(resource: ConfigResource, name: str) -> str | None:
    """Return the default of a list config, for APPEND and SUBTRACT. Raises ApiError if the config is not a list."""
    definition = _DEFINITIONS[resource.type].get(name)
    # As in Kafka, `metrics` of a client-metrics resource is described as a list, but cannot be appended to.
    if definition is None or definition.type is not ConfigType.LIST or resource.type == ResourceType.CLIENT_METRICS:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"{name} is not a list; APPEND and SUBTRACT need a list config")
    return definition.default


def check_topic_configs(image: ClusterImage, overrides: Mapping[str, str | None], settings: ControllerSettings) -> None:
    """Raise ApiError unless a topic may have these values together."""
    try:
        validate_topic_configs(overrides, settings.layers(image).merged())
    except InvalidConfig as error:
        raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from None


def check_broker_configs(
    image: ClusterImage, resource: ConfigResource, values: Mapping[str, str], settings: ControllerSettings
) -> None:
    """Checks that Kafka's broker makes before it forwards the request. Unknown names pass: plugins may define them."""
    read_only = [name for name in values if name in BROKER_CONFIGS and not BROKER_CONFIGS[name].dynamic]
    if read_only:
        names = ", ".join(read_only)
        raise ApiError(ErrorCode.INVALID_REQUEST, f"read-only configs; set them in the broker's config file: {names}")
    if not resource.name:
        per_broker = [name for name in values if _is_per_broker(name)]
        if per_broker:
            names = ", ".join(per_broker)
            raise ApiError(ErrorCode.INVALID_REQUEST, f"per-broker configs; set them for a single broker: {names}")
    try:
        for name, value in values.items():
            definition = broker_definition(name)
            if definition is not None:
                parse(definition, value)
    except InvalidConfig as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from None
    _check_thread_counts(image, values, settings)


def _is_per_broker(name: str) -> bool:
    definition = BROKER_CONFIGS.get(name)
    return name.startswith(_LISTENER_PREFIX) or (definition is not None and definition.update == "broker")


def _check_thread_counts(image: ClusterImage, values: Mapping[str, str], settings: ControllerSettings) -> None:
    """Kafka limits one change of a thread pool to a factor of two; clients depend on that error."""
    current = settings.layers(image).merged()
    for name in _THREAD_COUNTS:
        if name in values:
            old, new = broker_value(name, current), parse(BROKER_CONFIGS[name], values[name])
            assert isinstance(old, int)
            assert isinstance(new, int)
            if not max(old // 2, 1) <= new <= old * 2:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST,
                    f"{name} is {old} and may be at most halved or doubled by one change, got {new}",
                )


def check_resource_configs(
    image: ClusterImage, resource: ConfigResource, values: Mapping[str, str], settings: ControllerSettings
) -> None:
    """Raise ApiError unless the resource exists and may have these values."""
    match resource.type:
        case ResourceType.TOPIC:
            if not resource.name:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST, "default topic configs are not supported; set the broker default instead"
                )
            check_topic_name(resource.name)
            check_topic_configs(image, values, settings)
            if resource.name not in image.topics_by_name:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {resource.name!r} does not exist")
        case ResourceType.GROUP:
            if not resource.name:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST, "default group configs are not supported; set the broker default instead"
                )
            _check_known(GROUP_CONFIGS, values, unknown=ErrorCode.INVALID_CONFIG)
            _check_group_limits(values, settings.layers(image).merged())
        case ResourceType.CLIENT_METRICS:
            if not resource.name:
                raise ApiError(ErrorCode.INVALID_REQUEST, "client-metrics resource has no name")
            _check_known(CLIENT_METRICS_CONFIGS, values, unknown=ErrorCode.INVALID_REQUEST)
            _check_client_metrics(values)


def _check_known(definitions: Mapping[str, Definition], values: Mapping[str, str], *, unknown: ErrorCode) -> None:
    for name, value in values.items():
        if name not in definitions:
            raise ApiError(unknown, f"{name} is not a config of this resource type")
        try:
            parse(definitions[name], value)
        except InvalidConfig as error:
            raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from None


def _check_group_limits(values: Mapping[str, str], broker: Mapping[str, str]) -> None:
    """Check group configs against the brokers' minimum and maximum."""
    for name, text in values.items():
        new = parse(GROUP_CONFIGS[name], text)
        group_type, _, what = name.partition(".")
        what = _GROUP_LIMIT_NAMES.get(name, what)
        lowest, highest = (
            broker_value(bound, broker) if bound in BROKER_CONFIGS else None
            for bound in (f"group.{group_type}.min.{what}", f"group.{group_type}.max.{what}")
        )
        if isinstance(new, int) and (
            (isinstance(lowest, int) and new < lowest) or (isinstance(highest, int) and new > highest)
        ):
            raise ApiError(ErrorCode.INVALID_CONFIG, f"{name} must be from {lowest} to {highest}, got {new}")
    for group_type in ("consumer", "share", "streams"):
        pair = [
            parse(GROUP_CONFIGS[name], values[name]) if name in values else broker_value(f"group.{name}", broker)
            for name in (f"{group_type}.session.timeout.ms", f"{group_type}.heartbeat.interval.ms")
        ]
        session_ms, heartbeat_ms = pair
        assert isinstance(session_ms, int)
        assert isinstance(heartbeat_ms, int)
        if session_ms <= heartbeat_ms:
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                f"{group_type}.session.timeout.ms must be larger than {group_type}.heartbeat.interval.ms, "
                f"got {session_ms} and {heartbeat_ms}",
            )


def _check_client_metrics(values: Mapping[str, str]) -> None:
    """Check the push interval and the client match patterns, such as `client_id=REGEX`."""
    if "interval.ms" in values:
        interval = parse(CLIENT_METRICS_CONFIGS["interval.ms"], values["interval.ms"])
        assert isinstance(interval, int)
        if not INTERVAL_MIN_MS <= interval <= INTERVAL_MAX_MS:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"interval.ms must be from {INTERVAL_MIN_MS} to {INTERVAL_MAX_MS}, got {interval}",
            )
    patterns = parse(CLIENT_METRICS_CONFIGS["match"], values.get("match", ""))
    assert isinstance(patterns, tuple)
    for pattern in patterns:
        what, *texts = pattern.split("=")
        text = texts[0].strip() if len(texts) == 1 else ""
        if what.strip() not in _CLIENT_MATCH_FIELDS or not text or not _is_regex(text):
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                f"invalid match pattern {pattern!r}; expected NAME=REGEX, where NAME is one of "
                f"{', '.join(_CLIENT_MATCH_FIELDS)}",
            )


def _is_regex(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return True


def check_min_insync_change(image: ClusterImage, resource: ConfigResource, changes: Mapping[str, str | None]) -> None:
    """With eligible leader replicas, min.insync.replicas must be set for the cluster and cannot be set per broker."""
    if not image.elr_enabled or resource.type != ResourceType.BROKER or MIN_INSYNC_REPLICAS not in changes:
        return
    if resource.name:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"{MIN_INSYNC_REPLICAS} cannot be set per broker while eligible leader replicas are enabled",
        )
    if changes[MIN_INSYNC_REPLICAS] is None:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"{MIN_INSYNC_REPLICAS} cannot be removed while eligible leader replicas are enabled",
        )
