"""UpdateFeatures: complete decisions."""

from typing import Any

from ottla.base.decision import Decision
from ottla.base.errors import ErrorCode
from ottla.metadata.image import VersionRange
from ottla.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from ottla.wire.records.metadata import ConfigRecord, FeatureLevelRecord

ELR, METADATA = "eligible.leader.replicas.version", "metadata.version"
UPGRADE, SAFE, UNSAFE = 1, 2, 3


def update(name: str, level: int, upgrade_type: int = UPGRADE, *, validate_only: bool = False) -> UpdateFeaturesRequest:
    key = FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=upgrade_type)
    return UpdateFeaturesRequest(feature_updates=[key], validate_only=validate_only)


def done(name: str) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(error_message=None, results=[UpdatableFeatureResult(name, ErrorCode.NONE, "NONE")])


def is_rejected(decision: Decision) -> bool:
    response = decision.response
    assert (decision.records, response.results, bool(response.error_message)) == ((), [], True)
    return bool(response.error_code == ErrorCode.INVALID_UPDATE_VERSION)


def test_feature_downgrade_and_upgrade(cluster: Any) -> None:
    """With eligible leader replicas, min.insync.replicas is the same for all brokers."""
    level = cluster.image.features[ELR]
    assert cluster.do(update(ELR, 0, SAFE)) == Decision((FeatureLevelRecord(ELR, 0),), done(ELR))
    assert not cluster.image.elr_enabled
    cluster.replay(Decision((ConfigRecord(4, "1", "min.insync.replicas", "3"),)))
    decision = cluster.do(update(ELR, level))
    removed = ConfigRecord(4, "1", "min.insync.replicas", None)
    assert decision == Decision((FeatureLevelRecord(ELR, level), removed), done(ELR))
    assert cluster.image.elr_enabled
    assert cluster.image.broker_configs(1) == {}


def test_validate_only_changes_nothing(cluster: Any) -> None:
    assert cluster.do(update(ELR, 0, SAFE, validate_only=True)) == Decision((), done(ELR))
    assert cluster.image.elr_enabled


def test_current_level_writes_nothing(cluster: Any) -> None:
    assert cluster.do(update(METADATA, cluster.image.features[METADATA])) == Decision((), done(METADATA))


def test_metadata_version_cannot_be_downgraded(cluster: Any) -> None:
    level = cluster.image.features[METADATA]
    cluster.replay(Decision((FeatureLevelRecord(METADATA, level - 2),)))
    assert is_rejected(cluster.decide(update(METADATA, level - 3, UNSAFE)))
    assert cluster.do(update(METADATA, level)) == Decision((FeatureLevelRecord(METADATA, level),), done(METADATA))


def test_level_must_be_supported_by_all_nodes(cluster: Any) -> None:
    cluster.do(update(ELR, 0, SAFE))
    cluster.add_broker(7, features={METADATA: VersionRange(7, 30), ELR: VersionRange(0, 0)})
    assert is_rejected(cluster.decide(update(ELR, 1)))


def test_one_invalid_update_rejects_all(cluster: Any) -> None:
    both = UpdateFeaturesRequest(
        feature_updates=[
            FeatureUpdateKey(feature=ELR, max_version_level=0, upgrade_type=SAFE),
            FeatureUpdateKey(feature="no", max_version_level=1),
        ]
    )
    assert is_rejected(cluster.decide(both))


def test_missing_cluster_min_insync_is_written(cluster: Any) -> None:
    cluster.do(update(ELR, 0, SAFE))
    cluster.replay(Decision((ConfigRecord(4, "", "min.insync.replicas", None),)))
    decision = cluster.do(update(ELR, 1))
    assert decision.records == (FeatureLevelRecord(ELR, 1), ConfigRecord(4, "", "min.insync.replicas", "1"))
