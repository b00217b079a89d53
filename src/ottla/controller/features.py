"""UpdateFeatures: upgrade feature levels, or downgrade them if that is lossless."""

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
    """Apply all updates or none. If one is rejected its error is the response."""
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
            f"unknown upgrade type {upgrade_type}; supported are 1 (upgrade), 2 (safe downgrade), 3 (unsafe downgrade)",
        )
    supported = _supported(image, name)
    if supported is None:
        raise _rejected(update, "unknown feature, or not supported by all nodes")
    if not supported.min <= level <= supported.max:
        raise _rejected(update, f"the nodes support levels {supported.min} to {supported.max}")
    if level == current:
        return []
    if level < current and upgrade_type == UPGRADE:
        raise _rejected(update, f"an upgrade cannot lower the current level, {current}")
    if level < current and name == METADATA_VERSION:
        raise _rejected(update, f"cannot downgrade from level {current}; the log may contain records of that level")
    records: list[Any] = [FeatureLevelRecord(name, level)]
    if name == ELIGIBLE_LEADER_REPLICAS_VERSION and level > 0:
        records += _cluster_min_insync_records(image, settings)
    return records


def _rejected(update: FeatureUpdateKey, reason: str) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"cannot set {update.feature!r} to {update.max_version_level}, no feature was changed: {reason}",
    )


def _supported(image: ClusterImage, name: str) -> VersionRange | None:
    """Return the levels that all nodes support; None if a node does not know the feature."""
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
    """Set min.insync.replicas for the cluster and delete per-broker values, as eligible leader replicas require."""
    records = []
    if MIN_INSYNC_REPLICAS not in image.cluster_configs():
        records.append(
            ConfigRecord(ResourceType.BROKER, "", MIN_INSYNC_REPLICAS, str(settings.number(MIN_INSYNC_REPLICAS)))
        )
    for resource, configs in image.configs.items():
        if resource.type == ResourceType.BROKER and resource.name and MIN_INSYNC_REPLICAS in configs:
            records.append(ConfigRecord(ResourceType.BROKER, resource.name, MIN_INSYNC_REPLICAS, None))
    return records
