"""What may be set: the rules behind AlterConfigs, IncrementalAlterConfigs and the configs of new topics."""

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
"""Group configs whose bounds have other names than they have themselves."""
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
"""How often a client-metrics subscription may have clients send."""


def list_default(resource: ConfigResource, name: str) -> str | None:
    """What a list holds where nothing is set, for APPEND and SUBTRACT to start from; ApiError if the config is no list."""
    definition = _DEFINITIONS[resource.type].get(name)
    # The metrics of a client-metrics resource are a list to those who read them, but not to these two operations.
    if definition is None or definition.type is not ConfigType.LIST or resource.type == ResourceType.CLIENT_METRICS:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"{name} is no list: nothing can be appended to it or taken from it")
    return definition.default


def check_topic_configs(image: ClusterImage, overrides: Mapping[str, str | None], settings: ControllerSettings) -> None:
    """ApiError unless a topic may have all of these together."""
    try:
        validate_topic_configs(overrides, settings.layers(image).merged())
    except InvalidConfig as error:
        raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from None


def check_broker_configs(
    image: ClusterImage, resource: ConfigResource, values: Mapping[str, str], settings: ControllerSettings
) -> None:
    """What a broker checks before it asks the controller. Unknown names pass: they may mean something to a plugin."""
    fixed = [name for name in values if name in BROKER_CONFIGS and not BROKER_CONFIGS[name].dynamic]
    if fixed:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"these configs can be set in a broker's file only: {', '.join(fixed)}"
        )
    if not resource.name:
        own = [name for name in values if _is_per_broker(name)]
        if own:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"these configs can be set for one broker, not for all: {', '.join(own)}"
            )
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
    """Kafka changes the size of a pool by a factor of two at most, and clients rely on the answer, whatever runs underneath."""
    current = settings.layers(image).merged()
    for name in _THREAD_COUNTS:
        if name in values:
            now, wanted = broker_value(name, current), parse(BROKER_CONFIGS[name], values[name])
            assert isinstance(now, int)
            assert isinstance(wanted, int)
            if not max(now // 2, 1) <= wanted <= now * 2:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST,
                    f"{name} is {now}: one change may halve or double it, not make it {wanted}",
                )


def check_resource_configs(
    image: ClusterImage, resource: ConfigResource, values: Mapping[str, str], settings: ControllerSettings
) -> None:
    """ApiError unless the resource may hold these values, and is there to hold them."""
    match resource.type:
        case ResourceType.TOPIC:
            if not resource.name:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST, "topics have no defaults of their own: set them for all brokers instead"
                )
            check_topic_name(resource.name)
            check_topic_configs(image, values, settings)
            if resource.name not in image.topics_by_name:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"the topic {resource.name!r} does not exist")
        case ResourceType.GROUP:
            if not resource.name:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST, "groups have no defaults of their own: set them for all brokers instead"
                )
            _check_known(GROUP_CONFIGS, values, unknown=ErrorCode.INVALID_CONFIG)
            _check_group_limits(values, settings.layers(image).merged())
        case ResourceType.CLIENT_METRICS:
            if not resource.name:
                raise ApiError(ErrorCode.INVALID_REQUEST, "a client-metrics subscription needs a name")
            _check_known(CLIENT_METRICS_CONFIGS, values, unknown=ErrorCode.INVALID_REQUEST)
            _check_client_metrics(values)


def _check_known(definitions: Mapping[str, Definition], values: Mapping[str, str], *, unknown: ErrorCode) -> None:
    for name, value in values.items():
        if name not in definitions:
            raise ApiError(unknown, f"{name} is not a config of this kind of resource")
        try:
            parse(definitions[name], value)
        except InvalidConfig as error:
            raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from None


def _check_group_limits(values: Mapping[str, str], broker: Mapping[str, str]) -> None:
    """A group may choose within what its brokers allow."""
    for name, text in values.items():
        wanted = parse(GROUP_CONFIGS[name], text)
        kind, _, what = name.partition(".")
        what = _GROUP_LIMIT_NAMES.get(name, what)
        lowest, highest = (
            broker_value(bound, broker) if bound in BROKER_CONFIGS else None
            for bound in (f"group.{kind}.min.{what}", f"group.{kind}.max.{what}")
        )
        if isinstance(wanted, int) and (
            (isinstance(lowest, int) and wanted < lowest) or (isinstance(highest, int) and wanted > highest)
        ):
            raise ApiError(ErrorCode.INVALID_CONFIG, f"{name} is {wanted}: the brokers allow {lowest} to {highest}")
    for kind in ("consumer", "share", "streams"):
        pair = [
            parse(GROUP_CONFIGS[name], values[name]) if name in values else broker_value(f"group.{name}", broker)
            for name in (f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms")
        ]
        session_ms, heartbeat_ms = pair
        assert isinstance(session_ms, int)
        assert isinstance(heartbeat_ms, int)
        if session_ms <= heartbeat_ms:
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                f"a {kind} group's session of {session_ms} ms must outlast its heartbeat interval, {heartbeat_ms} ms",
            )


def _check_client_metrics(values: Mapping[str, str]) -> None:
    """How often clients send, and which: `client_id=...` and the like, each with a regular expression."""
    if "interval.ms" in values:
        interval = parse(CLIENT_METRICS_CONFIGS["interval.ms"], values["interval.ms"])
        assert isinstance(interval, int)
        if not INTERVAL_MIN_MS <= interval <= INTERVAL_MAX_MS:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"interval.ms is {interval}: from {INTERVAL_MIN_MS} to {INTERVAL_MAX_MS} is allowed",
            )
    patterns = parse(CLIENT_METRICS_CONFIGS["match"], values.get("match", ""))
    assert isinstance(patterns, tuple)
    for pattern in patterns:
        what, *texts = pattern.split("=")
        text = texts[0].strip() if len(texts) == 1 else ""
        if what.strip() not in _CLIENT_MATCH_FIELDS or not text or not _is_regex(text):
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                f"{pattern!r} does not match clients: NAME=EXPRESSION does, where NAME is one of "
                f"{', '.join(_CLIENT_MATCH_FIELDS)}",
            )


def _is_regex(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return True


def check_min_insync_change(image: ClusterImage, resource: ConfigResource, changes: Mapping[str, str | None]) -> None:
    """Eligible leader replicas are reckoned with one number for all brokers: it must be there, and no broker has its own."""
    if not image.elr_enabled or resource.type != ResourceType.BROKER or MIN_INSYNC_REPLICAS not in changes:
        return
    if resource.name:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"with eligible leader replicas {MIN_INSYNC_REPLICAS} is set for all brokers, not for one",
        )
    if changes[MIN_INSYNC_REPLICAS] is None:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"with eligible leader replicas {MIN_INSYNC_REPLICAS} can be changed but not removed",
        )
