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
    Case("nothing", (update(),), versions=ALL),
    Case("an unknown feature", (update(("no.such.feature", 1, UPGRADE)),), versions=ALL),
    Case("an unknown feature, down to nothing", (update(("no.such.feature", 0, SAFE)),), versions=ALL),
    Case("a feature without a name", (update(("", 1, UPGRADE)),), versions=ALL),
    Case(
        "to the level it has",
        (update((METADATA, 30, UPGRADE)), update((METADATA, 30, SAFE)), update((ELR, 1, UPGRADE))),
        versions=ALL,
    ),
    Case("to the level it has, unsafely", (update((METADATA, 30, UNSAFE)),), versions=CHECKED),
    Case("to a level that is not known", (update((METADATA, 31, UPGRADE)), update((ELR, 2, UPGRADE))), versions=ALL),
    Case(
        "to a level that is no longer known", (update((METADATA, 6, SAFE)), update((METADATA, 0, SAFE))), versions=ALL
    ),
    Case("to a negative level", (update((METADATA, -1, UPGRADE)), update((ELR, -1, SAFE))), versions=ALL),
    Case("down by an upgrade", (update((METADATA, 29, UPGRADE)), update((ELR, 0, UPGRADE))), versions=ALL),
    Case("down", (update((ELR, 0, SAFE)), update((ELR, 0, UNSAFE))), versions=CHECKED),
    Case("the metadata down", (update((METADATA, 29, SAFE)), update((METADATA, 24, SAFE))), versions=ALL),
    Case(
        "the metadata down, unsafely",
        (update((METADATA, 29, UNSAFE)), update((METADATA, 24, UNSAFE))),
        versions=CHECKED,
    ),
    Case(
        "by an unknown type",
        (update((METADATA, 30, 0)), update((METADATA, 30, 9)), update((METADATA, 30, -1))),
        versions=CHECKED,
    ),
    Case("one twice", (update((METADATA, 30, UPGRADE), (METADATA, 30, UPGRADE)),), versions=ALL),
    Case(
        "one right and one wrong",
        (update((ELR, 0, SAFE), (METADATA, 31, UPGRADE)), update(("no", 1, UPGRADE), (ELR, 0, SAFE))),
        versions=CHECKED,
    ),
    Case(
        "the quorum's feature",
        (update(("kraft.version", 0, UPGRADE)), update(("kraft.version", 2, UPGRADE))),
        versions=ALL,
    ),
]
