"""Feature levels: those that this version supports, and those of a new cluster."""

from collections.abc import Mapping

from ottla.metadata.image import ELIGIBLE_LEADER_REPLICAS_VERSION, METADATA_VERSION, VersionRange

KRAFT_VERSION = "kraft.version"
METADATA_VERSION_MIN = 7
METADATA_VERSION_4_3 = 30

DIRECTORY_IDS_MIN_VERSION = 17
ELR_MIN_VERSION = 23
CORDONED_DIRECTORIES_MIN_VERSION = 30
"""Metadata versions that introduced these."""


def supported_features() -> dict[str, VersionRange]:
    """Return the feature levels a node registers with.

    Features not implemented yet (transactions, groups) are not included.
    """
    return {
        ELIGIBLE_LEADER_REPLICAS_VERSION: VersionRange(0, 1),
        METADATA_VERSION: VersionRange(METADATA_VERSION_MIN, METADATA_VERSION_4_3),
    }


def bootstrap_features() -> dict[str, int]:
    """Return the levels of a new cluster. Features that are not listed are at level 0."""
    return {METADATA_VERSION: METADATA_VERSION_4_3, ELIGIBLE_LEADER_REPLICAS_VERSION: 1}


def unsupported_features(finalized: Mapping[str, int]) -> dict[str, int]:
    """Return finalized levels that this version does not support. They are logged at startup and not served."""
    supported = supported_features()
    return {
        name: level for name, level in sorted(finalized.items()) if name not in supported or level > supported[name].max
    }
