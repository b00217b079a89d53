"""What a new cluster starts with, and what a controller writes first when it takes over."""

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
    """What formatting puts into `bootstrap.checkpoint`: the features that a new cluster starts at."""
    return [FeatureLevelRecord(name, level) for name, level in bootstrap_features().items()]


def activate(image: ClusterImage, bootstrap: Sequence[Any], settings: ControllerSettings) -> Decision:
    """A transaction that the last controller left open is given up; an empty log gets the bootstrap records, all or none."""
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
            # Eligible leader replicas need this number to be the same for all brokers, so that it goes into the log.
            value = str(settings.number(MIN_INSYNC_REPLICAS))
            records.append(ConfigRecord(ResourceType.BROKER, "", MIN_INSYNC_REPLICAS, value))
        records.append(EndTransactionRecord())
    return Decision(tuple(records))
