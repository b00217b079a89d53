"""Record versions by metadata version, so that every node of the cluster can read what is written."""

from typing import Any

from ottla.metadata.features import CORDONED_DIRECTORIES_MIN_VERSION, DIRECTORY_IDS_MIN_VERSION, ELR_MIN_VERSION
from ottla.wire.records.metadata import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
)

_MIGRATION_MIN_VERSION = 8


def record_version(record: Any, metadata_version: int) -> int:
    """Return the version to write a record in. Most record types have only version 0."""
    record_type = type(record)
    if record_type is PartitionRecord or record_type is PartitionChangeRecord:
        if metadata_version >= ELR_MIN_VERSION:
            return 2
        return 1 if metadata_version >= DIRECTORY_IDS_MIN_VERSION else 0
    if record_type is RegisterBrokerRecord:
        if metadata_version >= CORDONED_DIRECTORIES_MIN_VERSION:
            return 4
        if metadata_version >= DIRECTORY_IDS_MIN_VERSION:
            return 3
        return 2 if metadata_version >= _MIGRATION_MIN_VERSION else 1
    if record_type is BrokerRegistrationChangeRecord:
        return _registration_change_version(record)
    return 0


def _registration_change_version(record: BrokerRegistrationChangeRecord) -> int:
    """Return the lowest version that has all fields that are set."""
    if record.cordoned_log_dirs is not None:
        return 3
    if record.log_dirs:
        return 2
    return 1 if record.in_controlled_shutdown else 0
