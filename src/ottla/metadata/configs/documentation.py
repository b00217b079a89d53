"""One sentence about each config, read only when someone asks for documentation."""

from ottla.metadata.configs.definition import Definition


def sentence(definition: Definition) -> str | None:
    return None
