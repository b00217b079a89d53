"""The features of a cluster: which levels this version works at, and which of them a new cluster starts with."""

from collections.abc import Mapping

from ottla.metadata.image import ELIGIBLE_LEADER_REPLICAS_VERSION, METADATA_VERSION, VersionRange

KRAFT_VERSION = "kraft.version"
METADATA_VERSION_MIN = 7
METADATA_VERSION_4_3 = 30

DIRECTORY_IDS_MIN_VERSION = 17
ELR_MIN_VERSION = 23
CORDONED_DIRECTORIES_MIN_VERSION = 30
"""Since which metadata version a cluster knows of these."""


def supported_features() -> dict[str, VersionRange]:
    """What a node says of itself when it registers. Features that are not built yet (transactions, groups) are not among them."""
    return {
        ELIGIBLE_LEADER_REPLICAS_VERSION: VersionRange(0, 1),
        METADATA_VERSION: VersionRange(METADATA_VERSION_MIN, METADATA_VERSION_4_3),
    }


def bootstrap_features() -> dict[str, int]:
    """Finalised from the first record on; a feature that is not named is at level 0."""
    return {METADATA_VERSION: METADATA_VERSION_4_3, ELIGIBLE_LEADER_REPLICAS_VERSION: 1}


def unsupported_features(finalized: Mapping[str, int]) -> dict[str, int]:
    """What the log has finalized and this version cannot do: to be named at start, and not served."""
    supported = supported_features()
    return {
        name: level for name, level in sorted(finalized.items()) if name not in supported or level > supported[name].max
    }
