"""UpdateFeatures. Nothing is changed: valid updates are sent with validate_only, from version 1 on."""

from ottla.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.compat.catalog.case import Call, Case

ELR, METADATA = "eligible.leader.replicas.version", "metadata.version"
UPGRADE, SAFE, UNSAFE = 1, 2, 3
Update = tuple[str, int, int]


def update(*updates: Update) -> Call:
    def request(version: int) -> UpdateFeaturesRequest:
        return UpdateFeaturesRequest(
            feature_updates=[key(version, *entry) for entry in updates], validate_only=version > 0
        )

    return Call(request)


def key(version: int, name: str, level: int, kind: int) -> FeatureUpdateKey:
    if version == 0:
        return FeatureUpdateKey(feature=name, max_version_level=level, allow_downgrade=kind != UPGRADE)
    return FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)


ALL, CHECKED = (0, 1, 2), (1, 2)
CASES = [
    Case("empty request", (update(),), versions=ALL),
    Case("unknown feature", (update(("no.such.feature", 1, UPGRADE)),), versions=ALL),
    Case("unknown feature, level 0", (update(("no.such.feature", 0, SAFE)),), versions=ALL),
    Case("empty feature name", (update(("", 1, UPGRADE)),), versions=ALL),
    Case(
        "current level",
        (update((METADATA, 30, UPGRADE)), update((METADATA, 30, SAFE)), update((ELR, 1, UPGRADE))),
        versions=ALL,
    ),
    Case("current level, unsafe downgrade", (update((METADATA, 30, UNSAFE)),), versions=CHECKED),
    Case("unsupported newer level", (update((METADATA, 31, UPGRADE)), update((ELR, 2, UPGRADE))), versions=ALL),
    Case("unsupported older level", (update((METADATA, 6, SAFE)), update((METADATA, 0, SAFE))), versions=ALL),
    Case("negative level", (update((METADATA, -1, UPGRADE)), update((ELR, -1, SAFE))), versions=ALL),
    Case("lower level, upgrade only", (update((METADATA, 29, UPGRADE)), update((ELR, 0, UPGRADE))), versions=ALL),
    Case("downgrade", (update((ELR, 0, SAFE)), update((ELR, 0, UNSAFE))), versions=CHECKED),
    Case("downgrade of metadata.version", (update((METADATA, 29, SAFE)), update((METADATA, 24, SAFE))), versions=ALL),
    Case(
        "unsafe downgrade of metadata.version",
        (update((METADATA, 29, UNSAFE)), update((METADATA, 24, UNSAFE))),
        versions=CHECKED,
    ),
    Case(
        "unknown upgrade type",
        (update((METADATA, 30, 0)), update((METADATA, 30, 9)), update((METADATA, 30, -1))),
        versions=CHECKED,
    ),
    Case("same feature twice", (update((METADATA, 30, UPGRADE), (METADATA, 30, UPGRADE)),), versions=ALL),
    Case(
        "valid and invalid update",
        (update((ELR, 0, SAFE), (METADATA, 31, UPGRADE)), update(("no", 1, UPGRADE), (ELR, 0, SAFE))),
        versions=CHECKED,
    ),
    Case(
        "kraft.version",
        (update(("kraft.version", 0, UPGRADE)), update(("kraft.version", 2, UPGRADE))),
        versions=ALL,
    ),
]
