"""UpdateFeatures: the levels that the cluster works at are raised, or lowered where that loses nothing."""

from typing import Any

from ottla.base.decision import Decision
from ottla.base.errors import ApiError, ErrorCode
from ottla.controller.config_checks import MIN_INSYNC_REPLICAS
from ottla.controller.settings import ControllerSettings
from ottla.metadata.features import KRAFT_VERSION, supported_features
from ottla.metadata.image import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    METADATA_VERSION,
    ClusterImage,
    ResourceType,
    VersionRange,
)
from ottla.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from ottla.wire.records.metadata import ConfigRecord, FeatureLevelRecord

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
DONE = "NONE"


def update_features(image: ClusterImage, request: UpdateFeaturesRequest, settings: ControllerSettings) -> Decision:
    """All of them or none: one that is rejection names the reason for all."""
    records: list[Any] = []
    try:
        for update in request.feature_updates:
            records += _update(image, update, settings)
    except ApiError as error:
        return Decision((), UpdateFeaturesResponse(error_code=error.code, error_message=error.message))
    results = [UpdatableFeatureResult(update.feature, ErrorCode.NONE, DONE) for update in request.feature_updates]
    response = UpdateFeaturesResponse(error_message=None, results=results)
    return Decision(() if request.validate_only else tuple(records), response)


def _update(image: ClusterImage, update: FeatureUpdateKey, settings: ControllerSettings) -> list[Any]:
    name, level, current = update.feature, update.max_version_level, image.features.get(update.feature, 0)
    upgrade_type = SAFE_DOWNGRADE if update.allow_downgrade else update.upgrade_type
    if upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        raise _rejected(
            update,
            f"there is no update of type {upgrade_type}: 1 raises a level, 2 lowers one and 3 lowers one unsafely",
        )
    supported = _supported(image, name)
    if supported is None:
        raise _rejected(update, "this cluster has no such feature")
    if not supported.min <= level <= supported.max:
        raise _rejected(update, f"its nodes work at the levels {supported.min} to {supported.max}")
    if level == current:
        return []
    if level < current and upgrade_type == UPGRADE:
        raise _rejected(update, f"it is at level {current}, and an upgrade does not lower it")
    if level < current and name == METADATA_VERSION:
        raise _rejected(update, f"it is at level {current}, and records of that level may be in the log")
    records: list[Any] = [FeatureLevelRecord(name, level)]
    if name == ELIGIBLE_LEADER_REPLICAS_VERSION and level > 0:
        records += _cluster_min_insync_records(image, settings)
    return records


def _rejected(update: FeatureUpdateKey, reason: str) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"no feature was changed: {update.feature!r} to {update.max_version_level}: {reason}",
    )


def _supported(image: ClusterImage, name: str) -> VersionRange | None:
    """The levels that every node can work at; None where one does not know the feature."""
    if name == KRAFT_VERSION:
        return VersionRange(0, 0)
    nodes = [
        supported_features(),
        *(node.features for node in image.brokers.values()),
        *(node.features for node in image.controllers.values()),
    ]
    ranges = [features[name] for features in nodes if name in features]
    if len(ranges) < len(nodes):
        return None
    return VersionRange(max(levels.min for levels in ranges), min(levels.max for levels in ranges))


def _cluster_min_insync_records(image: ClusterImage, settings: ControllerSettings) -> list[ConfigRecord]:
    """Eligible leader replicas are reckoned with one number for all brokers: it is written down, and those of single brokers go."""
    records = []
    if MIN_INSYNC_REPLICAS not in image.cluster_configs():
        records.append(
            ConfigRecord(ResourceType.BROKER, "", MIN_INSYNC_REPLICAS, str(settings.number(MIN_INSYNC_REPLICAS)))
        )
    for resource, configs in image.configs.items():
        if resource.type == ResourceType.BROKER and resource.name and MIN_INSYNC_REPLICAS in configs:
            records.append(ConfigRecord(ResourceType.BROKER, resource.name, MIN_INSYNC_REPLICAS, None))
    return records
