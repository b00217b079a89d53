"""Records of a new cluster, and records that a controller writes when it becomes active."""

from collections.abc import Sequence
from typing import Any

from ottla.base.decision import Decision
from ottla.controller.config_checks import MIN_INSYNC_REPLICAS
from ottla.controller.settings import ControllerSettings
from ottla.metadata.features import bootstrap_features
from ottla.metadata.image import ELIGIBLE_LEADER_REPLICAS_VERSION, ClusterImage, ResourceType
from ottla.wire.records.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)

BOOTSTRAP_TRANSACTION = "Bootstrap records"


def bootstrap_records() -> list[FeatureLevelRecord]:
    """Return the records of `bootstrap.checkpoint`: the feature levels of a new cluster."""
    return [FeatureLevelRecord(name, level) for name, level in bootstrap_features().items()]


def activate(image: ClusterImage, bootstrap: Sequence[Any], settings: ControllerSettings) -> Decision:
    """Abort a transaction left open by the previous controller. In an empty log, write the bootstrap records as one."""
    records: list[Any] = []
    if image.open_transaction is not None:
        records.append(AbortTransactionRecord("Controller failover"))
    if not image.features:
        records += [BeginTransactionRecord(BOOTSTRAP_TRANSACTION), *bootstrap]
        if any(
            isinstance(record, FeatureLevelRecord)
            and record.name == ELIGIBLE_LEADER_REPLICAS_VERSION
            and record.feature_level > 0
            for record in bootstrap
        ):
            # Eligible leader replicas require the same value on all brokers, so it is stored in the log.
            value = str(settings.number(MIN_INSYNC_REPLICAS))
            records.append(ConfigRecord(ResourceType.BROKER, "", MIN_INSYNC_REPLICAS, value))
        records.append(EndTransactionRecord())
    return Decision(tuple(records))
