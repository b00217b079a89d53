"""In which version a metadata record is written, so that every node of a cluster at some metadata version can read it."""

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
    """Most records have one version only; a record that is not understood keeps its own."""
    kind = type(record)
    if kind is PartitionRecord or kind is PartitionChangeRecord:
        if metadata_version >= ELR_MIN_VERSION:
            return 2
        return 1 if metadata_version >= DIRECTORY_IDS_MIN_VERSION else 0
    if kind is RegisterBrokerRecord:
        if metadata_version >= CORDONED_DIRECTORIES_MIN_VERSION:
            return 4
        if metadata_version >= DIRECTORY_IDS_MIN_VERSION:
            return 3
        return 2 if metadata_version >= _MIGRATION_MIN_VERSION else 1
    if kind is BrokerRegistrationChangeRecord:
        return _registration_change_version(record)
    return 0


def _registration_change_version(record: BrokerRegistrationChangeRecord) -> int:
    """The lowest that carries what is said."""
    if record.cordoned_log_dirs is not None:
        return 3
    if record.log_dirs:
        return 2
    return 1 if record.in_controlled_shutdown else 0
